"""Whole runs in one process, cheats and experiments.

Owns: stepped time, runs without processes, and participants that cheat. Never: a rule of the
protocol. Next: `in_process.py`, `cheats/`.
"""
