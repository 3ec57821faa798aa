"""Time, threads and files: what differs between a process and a simulation."""
