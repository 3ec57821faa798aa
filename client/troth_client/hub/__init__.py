"""A hub: an untrusted relay for members whom nobody can reach from outside.

Owns: following a run read-only, bounded folders, metrics. Never: holds a key, or is believed:
every byte that it serves is checked by whoever asked.
Next: `process.py`.
"""
