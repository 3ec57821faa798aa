"""Asyncio tasks by name, at most one of each, beside the rounds of a participant.

Owns: starting and ending them, and their errors. An RPC failure, or memory that does not suffice,
is reported, and the owner may start the same name again. Any other error is raised to the owner at
once.
Never: knows what they do. Next: `participant/audits.py`, `participant/housekeeping.py`.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Hashable, Mapping
from typing import Any, TypeVar

from troth_client.network.chain import RunChain
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import end
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.train.memory import TRYING, give_back

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, None]]


class NamedTasks:
    """The asyncio tasks of one owner, which learns of their errors in `until`."""

    def __init__(self, chain: RunChain, kind: str) -> None:
        self._chain = chain
        self._kind = kind
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._short: set[Hashable] = set()

    def start(self, name: Hashable, work: Work) -> None:
        """Start this work unless its name is under way."""
        if name not in self._tasks:
            self._tasks[name] = self._chain.runtime.start(work(), self._kind)

    async def keep(self, names: Collection[Hashable]) -> None:
        """End everything whose name is not among these."""
        self._forget_ended()
        over = [name for name in self._tasks if name not in names]
        await end(*(self._tasks.pop(name) for name in over))

    async def until(self, *futures: "asyncio.Future[Any]") -> None:
        """Wait for one of the futures. Raises the error of work that failed meanwhile.

        RPC failures and a lack of memory are reported instead.
        """
        self._forget_ended()
        while not any(future.done() for future in futures):
            await self._chain.runtime.wait_for_others(*futures, *self._tasks.values())
            self._forget_ended()

    async def close(self) -> None:
        """End everything, whatever it came to."""
        tasks, self._tasks = list(self._tasks.values()), {}
        await end(*tasks)

    def _forget_ended(self) -> None:
        for name, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[name]
                self._take_result(name, task)

    def _take_result(self, name: Hashable, task: "asyncio.Task[None]") -> None:
        try:
            with as_memory_error():
                task.result()
        except RPC_FAILURES as error:
            self._chain.watch.report(error)
        except MemoryError as error:
            self._report_memory(name, error)
        else:
            self._short.discard(name)

    def _report_memory(self, name: Hashable, error: MemoryError) -> None:
        """Say once that memory does not suffice for this work, until it has succeeded."""
        give_back()
        if name not in self._short:
            self._short.add(name)
            self._chain.events.emit("out_of_memory", reason=first_line(error), advice=TRYING)


async def run_beside(
    chain: RunChain, work: Coroutine[Any, Any, T], others: Mapping[str, Work]
) -> T:
    """Return the result of the work; the others are under way beside it and end with it.

    One of them that has ended begins again at the next look. Raises what the work raises, and what
    `NamedTasks.until` raises of the others: that ends the work.
    """
    tasks, doing = NamedTasks(chain, "beside"), chain.runtime.start(work, "work")
    try:
        while not doing.done():
            for name, other in others.items():
                tasks.start(name, other)
            await tasks.until(doing, chain.watch.upcoming())
        return doing.result()
    finally:
        await end(doing)
        await tasks.close()
