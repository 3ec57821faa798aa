"""Waiting and computing: the two things that differ between a real process and a stepped run.

Owns how a participant waits for slots and where its heavy functions run. Never knows the protocol.
Time in the protocol is slots read from the chain; a clock only says when to look again.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    """How a participant lets time pass."""

    async def wait(self) -> None:
        """Return when it is worth looking at the chain again, about one slot later."""

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a heavy function and return its result."""
        ...


class PollingClock:
    """For real processes: sleeps about a slot, computes in a thread so that the server answers."""

    def __init__(self, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds

    async def wait(self) -> None:
        """Sleep for one polling interval."""
        await asyncio.sleep(self._poll_seconds)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a worker thread."""
        return await asyncio.to_thread(function, *args, **kwargs)


class SteppedClock:
    """For whole runs inside one process: the slot advances when every participant waits for it.

    Nothing depends on wall time, so a run is the same each time it is repeated.
    """

    def __init__(self, advance: Callable[[], None]) -> None:
        self._advance = advance
        self._members = 0
        self._waiting: list[asyncio.Future[None]] = []

    def join(self) -> None:
        """Count one more participant that has to wait before the slot advances."""
        self._members += 1

    def leave(self) -> None:
        """Count one participant less; the others go on."""
        self._members -= 1
        self._step_if_all_wait()

    async def wait(self) -> None:
        """Wait for the next slot."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._step_if_all_wait()
        await future

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function here and now: one thread, one order."""
        return function(*args, **kwargs)

    def _step_if_all_wait(self) -> None:
        # A waiter that was cancelled (a participant killed by the test) no longer counts.
        self._waiting = [future for future in self._waiting if not future.done()]
        if self._waiting and len(self._waiting) >= self._members:
            self._advance()
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                future.set_result(None)
