"""A quota: how many bytes one address may push until the quota is renewed.

Owns: the count per address. Pieces of weights and data have a count of their own, so that a large
push of them takes nothing from what its sender needs for the round.
Never: knows what the bytes are: refused ones count as well, because they were received.
Next: `server.py`, which asks before it reads a body.
"""

from collections import Counter
from typing import Final

_MOST_ADDRESSES: Final = 65_536
"""The memory of a quota is bounded: beyond so many addresses it begins anew."""


class Quota:
    """At most `max_bytes` for each address between two renewals, and as many in pieces."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._used: Counter[tuple[str, bool]] = Counter()

    def take(self, caller: str, num_bytes: int, *, is_piece: bool = False) -> bool:
        """Count bytes that an address wants to send; False if that is more than it may."""
        count = caller, is_piece
        if self._used[count] + num_bytes > self._max_bytes:
            return False
        if len(self._used) >= _MOST_ADDRESSES:
            self._used.clear()
        self._used[count] += num_bytes
        return True

    def renew(self) -> None:
        """Forget what was used."""
        self._used.clear()
