"""Time, threads and tasks: the parts that differ between a real process and a stepped run.

Owns: the port, and its form for real processes. Never: knows the protocol.
Next: `troth_simulation/stepped.py` for whole runs in one process.

Time in the protocol is slots read from the chain; a runtime only says when to look again.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

from troth_client.runtime.memory import as_memory_error

P = ParamSpec("P")
T = TypeVar("T")

Work = Collection[asyncio.Future[T]]
"""Futures that are under way beside the waiting."""


class Runtime(Protocol):
    """How a participant lets time pass, computes, and does several things at once."""

    async def wait(self, work: Work[T] = ()) -> None:
        """Return when it is worth looking at the chain again, about one slot later.

        With `work`, return as soon as all of it is done, if that is earlier.
        """

    async def wait_for_others(self, *futures: "asyncio.Future[Any]") -> None:
        """Return when one of these is done; other tasks of this runtime complete them."""

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a heavy function and return its result.

        Raises what it raises, and MemoryError for every lack of memory.
        """
        ...

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task beside the others; its owner awaits or cancels it."""
        ...

    def seconds(self) -> float | None:
        """Return a stopwatch reading for the time of steps; None where time means nothing."""
        ...


class ProcessRuntime:
    """For real processes: sleeps about a slot, computes in a thread so that the server answers."""

    def __init__(self, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds

    async def wait(self, work: Work[T] = ()) -> None:
        """Sleep for one polling interval, or until the work is done."""
        if work:
            await asyncio.wait(work, timeout=self._poll_seconds)
        else:
            await asyncio.sleep(self._poll_seconds)

    async def wait_for_others(self, *futures: "asyncio.Future[Any]") -> None:
        """Wait until one of the futures is done."""
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a thread."""
        with as_memory_error():
            return await asyncio.to_thread(function, *args, **kwargs)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task of the event loop."""
        return asyncio.create_task(work, name=name)

    def seconds(self) -> float:
        """Return the process's monotonic time."""
        return time.perf_counter()


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks and wait until they have ended; their errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
