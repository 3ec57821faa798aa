"""The history on chain: records of audits, cases and slashes.

Owns: records that are read from accounts and events. Never: believes a participant.
Next: `cases.py`, `history.py`, `slashes.py`.
"""
