"""Audits seen from home: what a trainer must be able to open, and the opening sets it shows.

Owns: the kept residuals and the desk of opening sets. Never: talks to the chain, judges work.
Next: `residuals.py`, `openings_desk.py`.
"""
