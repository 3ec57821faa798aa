"""Time, threads, tasks and files: the parts that differ between a process and a simulation.

Owns: the port `Runtime`, and atomic files. Never: knows the protocol. Next: `base.py`, `files.py`.
"""
