"""Stepped time: the slot advances when every task of every participant waits for it.

Owns: the waiting tasks and their conditions. Never: reads a clock; equal seeds give equal runs.
Next: `in_process.py`, which runs a whole network on it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from troth_client.runtime.base import Work
from troth_client.runtime.memory import as_memory_error

P = ParamSpec("P")
T = TypeVar("T")


class SteppedRuntime:
    """The runtime of all participants of a run inside one process.

    A task counts from `start`, or `join`, until it ends, or `leave`. It is idle while it waits for
    the next slot or for another task. When all are idle, the slot advances.
    """

    def __init__(self, advance: Callable[[], None]) -> None:
        self._advance = advance
        self._num_tasks = 0
        self._sleepers: list[asyncio.Future[None]] = []
        self._listeners: list[tuple[asyncio.Future[Any], ...]] = []

    def join(self) -> None:
        """Count one more task that has to wait before the slot advances."""
        self._num_tasks += 1

    def leave(self) -> None:
        """Count one task less; the others go on."""
        self._num_tasks -= 1
        self._step_if_all_idle()

    async def wait(self, work: Work[T] = ()) -> None:
        """Wait for the next slot. With work, wait only for the work: it takes no time here."""
        if work:
            await asyncio.wait(work)
            return
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append(sleeper)
        self._step_if_all_idle()
        await sleeper

    async def wait_for_others(self, *futures: "asyncio.Future[Any]") -> None:
        """Wait, idle, until another task completes one of the futures."""
        if not any(future.done() for future in futures):
            self._listeners.append(futures)
            try:
                self._step_if_all_idle()
                await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._listeners.remove(futures)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function here and now: one thread, one order."""
        with as_memory_error():
            return function(*args, **kwargs)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Start a task; the slot does not advance before it, too, is idle."""
        task = asyncio.create_task(work, name=name)
        self.join()
        # Not a `finally` in the task: one that is cancelled before its first step never enters it.
        task.add_done_callback(lambda _task: self.leave())
        return task

    def seconds(self) -> None:
        """Return None: all members share one thread, so a step's duration says nothing."""
        return

    def _step_if_all_idle(self) -> None:
        # A sleeper that was cancelled (a participant killed by the test) no longer counts.
        self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper.done()]
        num_waiting = len(self._sleepers) + len(self._listeners)
        if self._sleepers and not self._has_awake(num_waiting - self._num_tasks):
            self._advance()
            sleepers, self._sleepers = self._sleepers, []
            for sleeper in sleepers:
                if not sleeper.done():
                    sleeper.set_result(None)

    def _has_awake(self, num_spare: int) -> bool:
        """Tell whether more than so many listeners are about to run: their future is done.

        They run in the order in which they began to listen, so the first ones nearly always tell.
        """
        if num_spare < 0:
            return True
        for futures in self._listeners:
            if any(future.done() for future in futures):
                if not num_spare:
                    return True
                num_spare -= 1
        return False
