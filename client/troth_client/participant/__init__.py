"""One participant as a whole: its start, its supervisor and the sibling tasks.

Owns: everything that runs around rounds and audits. Never: a step of a round or an audit.
Next: `supervisor.py`, then `rounds.py`, `audits.py`, `housekeeping.py`.
"""
