"""Taking turns at something heavy: one at a time, first come, first served.

Owns: the line of those who wait. Never: computes. Unlike `asyncio.Lock`, waiting here is idle for
the runtime, so stepped time goes on while somebody else has the turn.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from troth_client.runtime.base import Runtime


class Turn:
    """A permit that one holder has at a time."""

    def __init__(self) -> None:
        self._is_taken = False
        self._line: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def take(self, runtime: Runtime) -> AsyncIterator[None]:
        """Hold the turn inside the block; wait for it first."""
        if self._is_taken:
            await self._stand_in_line(runtime)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

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

    def _pass_on(self) -> None:
        """Give the turn to the next in line; it is never free in between."""
        self._is_taken = bool(self._line)
        if self._line:
            self._line.popleft().set_result(None)
