"""A transport that measures what opening sets cost outside of a member's own computations.

Owns: the meter's names for a pushed set, a fetched set and one that is read, and their seconds.
Never: changes what a transport does, but for one hash of a fetched set that is computed twice.
Next: `verification.py`.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from troth_client.transport.base import BlobId, BlobKind, Check, OpeningSets, Transport

T = TypeVar("T")

JUDGED, KEPT, SHOWN = "OpeningSets.judge", "OpeningSets.accept", "OpeningSets.shown"
FETCHED = "OpeningsStore.fetch"


class Tally:
    """Processor seconds and calls by function."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def timed(self, name: str, call: Callable[[], T]) -> T:
        """Return what a call returns, and count its seconds in this thread."""
        begun = time.thread_time()
        try:
            return call()
        finally:
            self.add(name, time.thread_time() - begun)

    def add(self, name: str, seconds: float) -> None:
        """Count one call."""
        self.seconds[name] += seconds
        self.calls[name] += 1


class MeteredTransport:
    """A transport whose opening sets are measured; it does all else as the one that it wraps."""

    def __init__(self, transport: Transport, tally: Tally) -> None:
        self._transport = transport
        self._tally = tally

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def show(self, sets: OpeningSets) -> None:
        """Serve opening sets, and measure what others ask of them."""
        self._transport.show(_MeteredSets(sets, self._tally))

    async def fetch(
        self, blob: BlobId, holders: Sequence[str], num_bytes: int, check: Check[T]
    ) -> T:
        """Fetch, and measure the root and the check of an opening set."""

        def counted(data: bytes) -> T:
            # The transport has compared the root already, where nothing can be measured.
            return self._tally.timed(FETCHED, lambda: (blob.matches(data), check(data))[1])

        is_counted = blob.kind is BlobKind.OPENINGS
        return await self._transport.fetch(
            blob, holders, num_bytes, counted if is_counted else check
        )


class _MeteredSets:
    """Opening sets, and what a push or a reader costs."""

    def __init__(self, sets: OpeningSets, tally: Tally) -> None:
        self._sets = sets
        self._tally = tally

    def shown(self, root: bytes) -> bytes | None:
        return self._tally.timed(SHOWN, lambda: self._sets.shown(root))

    def welcome(self, root: bytes) -> Collection[int]:
        return self._sets.welcome(root)

    def judge(self, root: bytes, data: bytes) -> None:
        self._tally.timed(JUDGED, lambda: self._sets.judge(root, data))

    def accept(self, root: bytes, data: bytes) -> None:
        self._tally.timed(KEPT, lambda: self._sets.accept(root, data))
