"""Answers of the Python rules to the golden vectors in tests/golden."""
