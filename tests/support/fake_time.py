"""An event loop whose clock jumps: timeouts of seconds pass at once, in their order.

Owns: the loop. Never: reads a wall clock or waits. Next: the tests of limits in seconds.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Instead of waiting, moves the clock of its loop to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("every task waits, and no timer is set")
        self.now += max(0.0, timeout)
        return super().select(0)


class FakeTimeLoop(asyncio.SelectorEventLoop):
    """A loop on a clock that begins at 1 000 seconds."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return 1_000.0 + self._jumping.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a fake clock."""
    with asyncio.Runner(loop_factory=FakeTimeLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Return the reading of the running loop's clock."""
    return asyncio.get_running_loop().time()
