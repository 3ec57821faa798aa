"""Where a judge works: one matter at a time, beside the round that goes on.

Owns: the recomputation under way, and findings until somebody asks for them.
Never: holds up a round. A recomputation may take longer than a phase (a witness on a processor
among trainers on accelerators), and who waited for it would miss attestations.
Next: `seat.py` and `juror.py`, which bring the matters.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
MAX_UNASKED = 16
"""Findings that nobody asks for are of windows that closed, or of draws that a fork took back."""


class Chamber:
    """One judgement under way at most: two at once would each take twice as long.

    Who has waited longest is next. Otherwise two matters that come to nothing, because their
    openings are not served, would take turns and keep a third from being heard.
    """

    def __init__(self) -> None:
        self._matter: Hashable = None
        self._work: asyncio.Task[Any] | None = None
        self._found: dict[Hashable, asyncio.Task[Any]] = {}
        self._num_asked = 0
        self._queue: dict[Hashable, int] = {}

    def hear(self, matter: Hashable, judge: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return the finding on a matter, None while there is none; ask again at any slot.

        Begins with the matter if nothing is under way and none waits longer. What `judge` raised is
        raised here. `matter` names all that the finding depends on.
        """
        self._num_asked += 1
        self._collect()
        if matter in self._found:
            finding: T | None = self._found.pop(matter).result()
            return finding
        if self._work is None and self._is_next(matter):
            self._queue.pop(matter, None)
            self._matter, self._work = matter, asyncio.create_task(judge())
        elif matter != self._matter:
            self._queue[matter] = self._num_asked
        return None

    async def close(self) -> None:
        """End what is under way; its finding is lost."""
        if self._work is not None:
            self._work.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._work
        self._collect()
        for work in self._found.values():
            _look_away(work)
        self._found.clear()

    def _is_next(self, matter: Hashable) -> bool:
        """Tell whether nobody who still asks has waited longer."""
        asked_before = self._queue.get(matter, self._num_asked)
        for other, asked in list(self._queue.items()):
            if other == matter:
                return True
            if asked > asked_before or matter not in self._queue:
                return False
            del self._queue[other]  # not asked for since we asked last: its window has closed
        return True

    def _collect(self) -> None:
        if self._work is None or not self._work.done():
            return
        self._found[self._matter], self._work, self._matter = self._work, None, None
        if len(self._found) > MAX_UNASKED:
            _look_away(self._found.pop(next(iter(self._found))))


def _look_away(work: asyncio.Task[Any]) -> None:
    """Mark what a task raised as seen, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()
