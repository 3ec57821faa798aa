"""The state of a participant: weights, residual, openings, verdicts.

Owns: the records that steps hand on, and everything that outlives a round. Never: talks to the
chain, except through what its caller passes in. Next: `round_state.py`, `audit_state.py`.
"""
