"""Waiting and computing: the two things that differ between a real process and a stepped run.

Owns how a participant waits for slots, where its heavy functions run, and what a stopwatch shows.
Never knows the protocol.
Time in the protocol is slots read from the chain; a clock only says when to look again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Work = Collection[asyncio.Task[T]]
"""Tasks that are under way beside the waiting."""


class Clock(Protocol):
    """How a participant lets time pass."""

    async def wait(self, work: Work[T] = ()) -> None:
        """Return when it is worth looking at the chain again, about one slot later.

        With `work`, return as soon as all of it is done, if that is earlier.
        """

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a heavy function and return its result."""
        ...

    async def beside(self, work: Awaitable[T]) -> T:
        """Do work in a task of its own, beside the waiting."""
        ...

    def seconds(self) -> float | None:
        """Return a stopwatch reading for the time of steps; None where time means nothing."""
        ...


class PollingClock:
    """For real processes: sleeps about a slot, computes in a thread so that the server answers."""

    def __init__(self, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds

    async def wait(self, work: Work[T] = ()) -> None:
        """Sleep for one polling interval, or until the work is done."""
        if work:
            await asyncio.wait(work, timeout=self._poll_seconds)
        else:
            await asyncio.sleep(self._poll_seconds)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a worker thread."""
        return await asyncio.to_thread(function, *args, **kwargs)

    async def beside(self, work: Awaitable[T]) -> T:
        """Do the work; time goes on."""
        return await work

    def seconds(self) -> float:
        """Return the process's monotonic time."""
        return time.perf_counter()


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

    async def wait(self, work: Work[T] = ()) -> None:
        """Wait for the next slot, or, with work, only for the work: it needs no time here."""
        if work:
            await asyncio.wait(work)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._step_if_all_wait()
        await future

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function here and now: one thread, one order."""
        return function(*args, **kwargs)

    async def beside(self, work: Awaitable[T]) -> T:
        """Do the work before the slot advances: how long it takes must not decide a run."""
        self.join()
        try:
            return await work
        finally:
            self.leave()

    def seconds(self) -> None:
        """Return None: all members share one thread, so a step's duration says nothing."""
        return

    def _step_if_all_wait(self) -> None:
        # A waiter that was cancelled (a participant killed by the test) no longer counts.
        self._waiting = [future for future in self._waiting if not future.done()]
        if self._waiting and len(self._waiting) >= self._members:
            self._advance()
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
