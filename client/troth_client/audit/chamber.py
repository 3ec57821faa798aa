"""Where a judge works: beside the round that goes on.

Owns: what is under way, by matter, and what came of it for as long as somebody asks.
Never: holds up a round. A recomputation may take longer than a phase (a witness on a processor
among trainers on accelerators), and who waited for it would miss attestations.
Next: `seat.py` and `juror.py`, which bring the matters.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Chamber:
    """All matters at once: one whose openings nobody serves keeps no other from being heard.

    Who recomputes does it inside `turn`, first come, first served: two at once would each take
    twice as long.
    """

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._work: dict[Hashable, asyncio.Task[Any]] = {}
        self._asked: set[Hashable] = set()
        self._fruitless: set[Hashable] = set()

    def hear(self, matter: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return what the work on a matter came to, None while there is nothing; ask at any slot.

        Begins with it if it was not begun or came to None. What `work` raised is raised here, once.
        `matter` names all that the finding depends on.
        """
        self._asked.add(matter)
        task = self._work.pop(matter, None)
        if task is not None and task.done() and task.result() is None:
            self._fruitless.add(matter)
            task = None
        if task is None:
            task = asyncio.create_task(_begin(work))
            task.add_done_callback(_look_away)
        self._work[matter] = task
        found: T | None = task.result() if task.done() else None
        return found

    def was_in_vain(self, matter: Hashable) -> bool:
        """Tell whether the work on a matter has come to None before."""
        return matter in self._fruitless

    def tidy(self) -> None:
        """End and forget what nobody has asked for since the last call.

        Its window has closed, what was found is said, or a fork took the draw back.
        """
        for matter in self._work.keys() - self._asked:
            self._work.pop(matter).cancel()
        self._fruitless &= self._asked
        self._asked.clear()

    async def close(self) -> None:
        """End what is under way; its findings are lost."""
        tasks = list(self._work.values())
        self._asked.clear()
        self.tidy()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _begin(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Make the coroutine when its task begins: one that is ended before leaves none behind."""
    return await work()


def _look_away(work: asyncio.Task[Any]) -> None:
    """Mark what a task raised as seen, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()
