"""The order in which to ask holders, from how each one behaved.

Owns: a number of faults per endpoint. Never: excludes a holder: the worst may be the only one left.
Next: `exchange.py`, which asks in this order.
"""

from collections.abc import Iterable

from troth_client.transport.errors import (
    HolderError,
    HolderLacksError,
    HolderLiedError,
    HolderRefusedError,
)

_LIE = 8.0
_FAILURE = 2.0
_SLOW = 1.0
_MOST = 64.0
_FORGIVENESS = 0.5


class HolderScores:
    """Faults per holder: 0 is best; a lie costs four failures, a delivery halves the number."""

    def __init__(self) -> None:
        self._faults: dict[str, float] = {}

    def faults(self, holder: str) -> float:
        """Return how badly a holder has behaved so far."""
        return self._faults.get(holder, 0.0)

    def delivered(self, holder: str) -> None:
        """Note a delivery that passed all checks."""
        self._faults[holder] = self.faults(holder) * _FORGIVENESS

    def failed(self, holder: str, error: HolderError) -> None:
        """Note a failure; not to have something yet is none, nor is to refuse a push."""
        if isinstance(error, HolderLacksError | HolderRefusedError):
            return
        cost = _LIE if isinstance(error, HolderLiedError) else _FAILURE
        self._faults[holder] = min(_MOST, self.faults(holder) + cost)

    def was_slow(self, holder: str) -> None:
        """Note that another holder, asked later or beside it, delivered first."""
        self._faults[holder] = min(_MOST, self.faults(holder) + _SLOW)

    def ranked(self, holders: Iterable[str]) -> list[str]:
        """Return the holders without repetition, best first, else in the given order."""
        return sorted(dict.fromkeys(holders), key=self.faults)
