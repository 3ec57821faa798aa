"""What a command does in several steps: create, join, close, cancel, update, accuse."""
