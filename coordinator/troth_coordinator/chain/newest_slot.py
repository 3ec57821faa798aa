"""`NewestSlot`: the newest slot that an address has shown, at which its word on a send must be.

Owns: for how long a slot is insisted on. Never: asks a node.
Next: http_rpc.py, which sends it along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LAG_SECONDS: Final = 7.5
"""A node that lags catches up within this time; else the slot was never true."""


class NewestSlot:
    """The newest confirmed slot of one address, behind which several nodes may be. In seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slot = 0
        self._refused_at: float | None = None

    def saw(self, slot: int) -> None:
        """Take note of the slot of an answer."""
        self._slot = max(self._slot, slot)

    @property
    def config(self) -> dict[str, int]:
        """The part of a request's config that has a node of an older slot refuse it."""
        return {"minContextSlot": self._slot} if self._slot else {}

    def told(self, *, is_behind: bool) -> None:
        """Take note of a word on a send. Where all have been refusals for long, forget the slot."""
        now = self._clock()
        if not is_behind:
            self._refused_at = None
        elif self._refused_at is None:
            self._refused_at = now
        elif now - self._refused_at >= LAG_SECONDS:
            self._slot, self._refused_at = 0, None
