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
_FORGOTTEN = 0.25
MOST_HOLDERS = 1_024
"""Beyond so many faulty holders the one that was noted longest ago is forgotten."""


class HolderScores:
    """Faults per holder: 0 is best; a lie costs four failures, a delivery halves the number."""

    def __init__(self) -> None:
        self._faults: dict[str, float] = {}

    def faults(self, holder: str) -> float:
        """Return how badly a holder has behaved so far."""
        return self._faults.get(holder, 0.0)

    def delivered(self, holder: str) -> None:
        """Note a delivery that passed all checks."""
        self._note(holder, self.faults(holder) * _FORGIVENESS)

    def failed(self, holder: str, error: HolderError) -> None:
        """Note a failure; not to have something yet is none, nor is to refuse a push."""
        if isinstance(error, HolderLacksError | HolderRefusedError):
            return
        cost = _LIE if isinstance(error, HolderLiedError) else _FAILURE
        self._note(holder, self.faults(holder) + cost)

    def was_slow(self, holder: str) -> None:
        """Note that another holder, asked later or beside it, delivered first."""
        self._note(holder, self.faults(holder) + _SLOW)

    def ranked(self, holders: Iterable[str]) -> list[str]:
        """Return the holders without repetition, best first, else in the given order."""
        return sorted(dict.fromkeys(holders), key=self.faults)

    def _note(self, holder: str, faults: float) -> None:
        """Keep the number; endpoints change, and a long run must not remember all of them."""
        self._faults.pop(holder, None)
        if faults >= _FORGOTTEN:
            self._faults[holder] = min(_MOST, faults)
        if len(self._faults) > MOST_HOLDERS:
            del self._faults[next(iter(self._faults))]
