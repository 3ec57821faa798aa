"""What runs around rounds: the supervisor of one participant."""
