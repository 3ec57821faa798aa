"""The auditor of a whole run: replays what the ledger tells, and names what does not fit.

Owns: every rule that can be checked from events and public bytes. Never: a key, or a vote.
Next: `told.py` for what events tell, `findings.py` for what the auditor says.
"""
