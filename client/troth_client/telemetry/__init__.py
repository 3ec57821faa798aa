"""Events out of the client: JSON lines, and a display that is fed by nothing else."""
