"""A file that nobody seems to need is forgotten late: no view alone costs a proof that we owe.

Owns: how many views in a row must agree. Never: deletes, or decides what is needed.
Next: `../participant/housekeeping.py` for opening sets and verdicts; `../hub/keeping.py`.

An RPC node that lags, or lists too little, shows an open audit as if there were none. A deleted
opening set or verdict may never come back, and its lack is fined.
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

NUM_VIEWS = 64
"""So many views in a row, each of another slot, must show that a file is not needed."""
Key = TypeVar("Key", bound=Hashable)


class Unneeded(Generic[Key]):
    """The keys that the last views have all called unneeded, and how many views did so."""

    def __init__(self) -> None:
        self._views: dict[Key, int] = {}
        self._slot = -1

    def ripe(self, unneeded: Iterable[Key], slot: int) -> list[Key]:
        """Take what a view calls unneeded; return what `NUM_VIEWS` before it did, too.

        Views are counted, not slots: an RPC node may make one up.
        """
        num, self._slot = int(slot != self._slot), slot
        self._views = {key: self._views.get(key, 0) + num for key in unneeded}
        return [key for key, views in self._views.items() if views > NUM_VIEWS]
