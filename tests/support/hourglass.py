"""Computations that take slots in a stepped run, while other tasks go on.

Owns: the hourglass and the runtime that waits for it. Never: decides what is slow.
Next: runs.py for the runs.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from solders.pubkey import Pubkey

from troth_client.runtime.base import Runtime
from troth_localnet.history import LandedTransaction
from troth_localnet.svm import Chain


class Hourglass:
    """Futures that are done so many slots after they were asked for."""

    def __init__(self, chain: Chain) -> None:
        self.num_turned = 0
        self._chain = chain
        self._due: list[tuple[int, asyncio.Future[None]]] = []
        chain.observers.append(self)

    def slot_opened(self, slot: int, parent: int) -> None:
        for until, future in self._due:
            if slot >= until and not future.done():
                future.set_result(None)

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Only slots count."""

    def turned(self, slots: int) -> "asyncio.Future[None]":
        self.num_turned += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._due.append((self._chain.slot + slots, future))
        return future


class SlowRuntime:
    """A runtime on which one function takes so many slots."""

    def __init__(
        self, runtime: Runtime, hourglass: Hourglass, slow: Callable[..., Any], slots: int
    ) -> None:
        self._runtime = runtime
        self._hourglass = hourglass
        self._slow = slow
        self._slots = slots

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def compute(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # A judge computes a partial function inside another one, which watches it.
        if any(_called(one) is self._slow for one in (function, *args)):
            await self._runtime.wait_for_others(self._hourglass.turned(self._slots))
        return await self._runtime.compute(function, *args, **kwargs)


def _called(function: Any) -> Any:
    """Return the function that a partial function or a method calls in the end."""
    inner = function.func if isinstance(function, partial) else function
    return getattr(inner, "__func__", inner)
