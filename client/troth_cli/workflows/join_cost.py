"""The money that an owner needs to join.

Owns: the sum, for whoever joins or asks about it. Never: reads a balance.
Next: `join_checks.py` and `doctor_run.py`, which compare.
"""

from typing import Final

FEE_RESERVE_LAMPORTS: Final = 10_000_000
"""The cost of joining beside stake and session: rent of the Participant account and fees."""


def join_lamports(stake: int, session: int) -> int:
    """Return stake, session funding, rent and fees together."""
    return stake + session + FEE_RESERVE_LAMPORTS
