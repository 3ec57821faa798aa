"""How long the next rounds take, by the last ones: their median and quartiles.

Owns: how many rounds make an estimate. Never: knows whether they are measured in slots or seconds.
Next: `own_board.py`; `troth_cli/observe/time_left.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

LEAST_ROUNDS: Final = 3
"""So many measured rounds make an estimate."""
RECENT_ROUNDS: Final = 16
"""The last rounds, by which the next ones are judged."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The length of a round: quarter of the rounds are below `low`, a quarter above `high`."""

    low: float
    middle: float
    high: float


def spread_of(lengths: Sequence[float]) -> Spread | None:
    """Return the spread of the last rounds; None for too few. One long round moves it little."""
    recent = lengths[-RECENT_ROUNDS:]
    if len(recent) < LEAST_ROUNDS:
        return None
    low, _, high = quantiles(recent, n=4, method="inclusive")
    return Spread(low, float(median(recent)), high)
