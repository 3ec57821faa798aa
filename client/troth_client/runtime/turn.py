"""Taking turns at something heavy: one at a time, first come, first served.

Owns: the line of those who wait, and how long a turn lasts. Never: decides what is computed. Unlike
`asyncio.Lock`, waiting here is idle for the runtime, so stepped time goes on while somebody else
has the turn.

A thread cannot be cancelled. So the turn of a holder that is cancelled lasts until its thread has
ended: two computations at once would each take twice as long.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, ParamSpec, TypeVar

from troth_client.runtime.base import Runtime

P = ParamSpec("P")
T = TypeVar("T")


class Turn:
    """A permit that one holder has at a time."""

    def __init__(self) -> None:
        self._is_taken = False
        self._line: deque[asyncio.Future[None]] = deque()
        self._computing: asyncio.Task[Any] | None = None

    @contextlib.asynccontextmanager
    async def take(self, runtime: Runtime) -> AsyncIterator[None]:
        """Hold the turn inside the block, and as long as its `compute` lasts; wait for it first."""
        if self._is_taken:
            await self._stand_in_line(runtime)
        self._is_taken = True
        try:
            yield
        finally:
            computing, self._computing = self._computing, None
            if computing is None or computing.done():
                self._pass_on()
            else:
                computing.add_done_callback(self._outlived)

    async def compute(
        self, runtime: Runtime, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a heavy function for the holder; raises as `Runtime.compute`.

        A holder that is cancelled does not wait for its end; the next one in line does.
        """
        work = runtime.compute(function, *args, **kwargs)
        computing: asyncio.Task[T] = runtime.start(work, "compute")
        self._computing = computing
        await runtime.wait_for_others(computing)
        return computing.result()

    async def _stand_in_line(self, runtime: Runtime) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            await runtime.wait_for_others(place)
        except BaseException:
            if place.done():
                self._pass_on()
            else:
                self._line.remove(place)
            raise

    def _outlived(self, computing: asyncio.Task[Any]) -> None:
        """End a turn whose holder was cancelled: nobody asks for the result any more."""
        if not computing.cancelled():
            computing.exception()
        self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the next in line; it is never free in between."""
        self._is_taken = bool(self._line)
        if self._line:
            self._line.popleft().set_result(None)
