"""Whole runs in one process, cheats and experiments."""
