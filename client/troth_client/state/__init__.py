"""What a participant holds: weights, residual, openings, verdicts."""
