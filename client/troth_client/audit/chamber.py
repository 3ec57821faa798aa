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
    """One judgement under way at most: two at once would each take twice as long."""

    def __init__(self) -> None:
        self._matter: Hashable = None
        self._work: asyncio.Task[Any] | None = None
        self._found: dict[Hashable, asyncio.Task[Any]] = {}

    def hear(self, matter: Hashable, judge: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return the finding on a matter, None while there is none; ask again at any slot.

        Begins with the matter if nothing is under way. What `judge` raised is raised here.
        `matter` names all that the finding depends on.
        """
        self._collect()
        if matter in self._found:
            finding: T | None = self._found.pop(matter).result()
            return finding
        if self._work is None:
            self._matter, self._work = matter, asyncio.create_task(judge())
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

    def _collect(self) -> None:
        if self._work is None or not self._work.done():
            return
        self._found[self._matter], self._work = self._work, None
        if len(self._found) > MAX_UNASKED:
            _look_away(self._found.pop(next(iter(self._found))))


def _look_away(work: asyncio.Task[Any]) -> None:
    """Mark what a task raised as seen, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()
