"""Audits from the side of a participant: the openings it shows, the work it judges, what it sends.

Owns: openings of its own work, its seats and votes, the transitions that anyone may send.
Never: a rule of judging or a penalty; `troth_attestation` has those.
Next: `../audit_round.py` for the order; `evidence.py`, `verdicts.py`, `votes.py`, `transitions.py`.
"""
