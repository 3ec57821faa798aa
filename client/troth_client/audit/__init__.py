"""Audits as a participant lives through them: what it shows, what it judges, what it sends.

Owns: the opening sets of its own work, its seats and votes, the steps that anyone may take.
Never: a rule of judging or a penalty; `troth_attestation` has those.
Next: `tracker.py` for what is known; then `target.py`, `seat.py`, `juror.py`, `steps.py`.
"""
