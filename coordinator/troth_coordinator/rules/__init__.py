"""The rules of a run as pure functions: no clock, no randomness, no I/O, no rounding.

Owns: hashing, ids, frozen views of the accounts, phases, assignment, schedule, exact constants,
votes, membership, money, the hash of the chain of rounds, and the run configuration.
Never: reads a clock, a file, an environment variable or a float that could round.
Next: `view.py` (what the chain shows), `phase.py` (when a phase may end), `root.py` (who decides).
The same golden vectors (`tests/golden`) run here and in the Rust program.
"""
