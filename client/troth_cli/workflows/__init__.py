"""Commands of several steps: create, join, close, cancel, update, accuse.

Owns: the order of checks and transactions. Never: prints. Next: `create.py`, `join.py`.
"""
