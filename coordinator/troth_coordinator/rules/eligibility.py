"""Witnesses that may be seated in a round (protocol section 7), by the rounds that they served.

Owns: the service that earns a seat, the fill of small runs, whether a target can be audited.
Never: looks at status or roles; the caller passes the witnesses that may judge at all.
Next: `membership.py` for the sets of a round.
"""

from collections.abc import Callable

from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.ids import Bitmap

FULL_BENCH = 5
"""A run with fewer eligible witnesses than this takes in those that served most."""


def has_earned_seat(rounds_served: int, joined_round: int, seat_after: int) -> bool:
    """Tell whether a witness has earned a seat: after `seat_after` rounds served.

    Or after as many as there were before it joined: who was there before the first round is
    eligible at once.
    """
    return rounds_served >= min(seat_after, joined_round)


def fill_bench(earned: int, witnesses: int, rounds_served: Callable[[int], int]) -> Bitmap:
    """Return the eligible witnesses of a round: those that `earned` a seat.

    Where they are fewer than five, those of `witnesses` that served most (equal ones by lower
    index) are added until they are five. All three are bitmaps or go by index.
    """
    bench = earned & witnesses
    waiting = sorted(
        bitmaps.indices_of(witnesses & ~bench), key=lambda index: (-rounds_served(index), index)
    )
    num_wanted = max(0, FULL_BENCH - bitmaps.count(bench))
    return Bitmap(bench | bitmaps.from_indices(waiting[:num_wanted]))


def can_be_audited(eligible: int, index: int) -> bool:
    """Tell whether three eligible witnesses other than participant `index` could judge its work."""
    return bitmaps.count(eligible & ~(1 << index)) >= FIRST_SEATS
