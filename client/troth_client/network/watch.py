"""The watcher of the chain: it reads the chain once per look and hands the view to all who wait.

Owns: the newest view, the waiters for the next one, and patience with an RPC node that does not
answer. Never: sends, or decides what a view asks for. Next: `chain.py`.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from solders.pubkey import Pubkey

from troth_client.runtime.base import Runtime
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import BlockhashExpiredError, RpcError, UnconfirmedError
from troth_coordinator.rules.view import NetworkView

MAX_FAILURES = 30
"""How often in a row the RPC node may fail before the participant gives up."""
RPC_FAILURES = (RpcError, UnconfirmedError, BlockhashExpiredError)
"""Errors of an RPC node that is away, late or overloaded; the same call can be tried again."""


class ChainWatcher:
    """The views of one run on chain, at confirmed finality."""

    def __init__(
        self, client: CoordinatorClient, run: Pubkey, runtime: Runtime, events: EventSink
    ) -> None:
        self._client = client
        self._run = run
        self._runtime = runtime
        self._events = events
        self._next: asyncio.Future[NetworkView] | None = None
        self._latest: NetworkView | None = None
        self._num_failures = 0
        self._num_waiting = 0

    @property
    def latest(self) -> NetworkView:
        """The newest view; only after the first `look`."""
        if self._latest is None:
            raise RuntimeError("nothing was read yet: call look() first")
        return self._latest

    async def look(self) -> NetworkView:
        """Read the chain now; all waiters get this view too."""
        view = await self._client.snapshot(self._run)
        self._num_failures = 0
        self._latest = view
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(view)
        return view

    def upcoming(self) -> "asyncio.Future[NetworkView]":
        """Return the future of the next view that anybody's look brings."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    async def next(self) -> NetworkView:
        """Return the next view that anybody's look brings, within about a slot."""
        waiting = self.upcoming()
        self._num_waiting += 1
        try:
            await self._runtime.wait_for_others(waiting)
        finally:
            self._num_waiting -= 1
        return waiting.result()

    async def until(self, holds: Callable[[NetworkView], bool]) -> NetworkView:
        """Return the first view for which `holds` is true, beginning with a fresh one."""
        view = await self.look()
        while not holds(view):
            view = await self.next()
        return view

    async def follow(self) -> NoReturn:
        """Look once a slot, for ever. When patience is over, raises the RPC node's last error.

        Only failures while a round waits for the chain count. During a long gradient the RPC node
        may be away for as long as the gradient takes.
        """
        while True:
            await self._runtime.wait()
            try:
                await self.look()
            except RPC_FAILURES as error:
                self._num_failures += self._num_waiting > 0
                if self._num_failures > MAX_FAILURES:
                    raise
                self.report(error, self._num_failures)

    def report(self, error: Exception, count: int = 1) -> None:
        """Report that the RPC node failed `count` times in a row; the caller tries again later."""
        self._events.emit("chain_unreachable", count=max(1, count), reason=str(error))
