"""The watcher of the chain: it looks once a slot and hands the view to all who wait.

Owns: the newest view, the waiters for the next one, and patience with RPC nodes that do not answer
or show what cannot be: it has no end. Never: sends, or decides what a view asks for.
Next: `reading.py` for what a look reads; `chain.py`; `troth_coordinator/chain/failover.py` backs
off and asks others.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from solders.pubkey import Pubkey

from troth_client.network.reading import Reader, WholeReader
from troth_client.runtime.base import Runtime
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import (
    AccountError,
    AccountMissingError,
    BlockhashExpiredError,
    ProgramIdError,
    RpcDisagreementError,
    RpcError,
    UnconfirmedError,
)
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

RPC_FAILURES = (
    RpcError,
    AccountError,
    ProgramIdError,
    UnconfirmedError,
    BlockhashExpiredError,
)
"""Errors of an RPC node that is away, late or overloaded, or shows what cannot be.

The same call can be tried again. A participant that has begun has read its run and its program. If
one of them is missing later, or belongs to others, that is a bad answer of an RPC node.
"""
GONE_LOOKS = 150
"""So many looks in a row (a minute) must miss a finished run before it counts as closed."""


class ChainWatcher:
    """The views of one run on chain, at confirmed finality.

    reader: what a look reads; everything, if none is given. newest_slot: the highest slot of any
    view so far; that of the latest is lower where an RPC node lags.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        run: Pubkey,
        runtime: Runtime,
        events: EventSink,
        reader: Reader | None = None,
    ) -> None:
        self._reader = reader or WholeReader(client, run)
        self._runtime = runtime
        self._events = events
        self._next: asyncio.Future[NetworkView] | None = None
        self._latest: NetworkView | None = None
        self.newest_slot = 0
        self._num_failures = self._num_gone = 0

    @property
    def latest(self) -> NetworkView:
        """The newest view; only after the first `look`."""
        if self._latest is None:
            raise RuntimeError("nothing was read yet: call look() first")
        return self._latest

    @property
    def slot(self) -> int:
        """The slot of the newest view; 0 before the first `look`."""
        return 0 if self._latest is None else self._latest.slot

    async def look(self) -> NetworkView:
        """Read the chain now; all waiters get this view too."""
        return self._hand_out(await self._reader.read())

    async def recent(self) -> NetworkView:
        """Return a view that is good enough for waiting: at most some seconds old.

        Where it is the latest one again, nobody is woken: no slot has passed, and nothing was read.
        """
        view = await self._reader.newest()
        return view if view is self._latest else self._hand_out(view)

    def expect_change(self) -> None:
        """Let the next view be a fresh one: an act of ours has landed."""
        self._reader.expect_change()

    def _hand_out(self, view: NetworkView) -> NetworkView:
        self._num_failures = self._num_gone = 0
        self._latest, self.newest_slot = view, max(self.newest_slot, view.slot)
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
        await self._runtime.wait_for_others(waiting)
        return waiting.result()

    async def until(self, holds: Callable[[NetworkView], bool]) -> NetworkView:
        """Return the first view for which `holds` is true, beginning with a recent one."""
        view = await self.recent()
        while not holds(view):
            view = await self.next()
        return view

    async def follow(self) -> NoReturn:
        """Look once a slot and when a push calls, for ever, however long the RPC nodes are away.

        Raises AccountMissingError once a finished run has been closed: then its account is gone.
        """
        while True:
            await self._runtime.wait(self._reader.early())
            try:
                await self.recent()
            except RPC_FAILURES as error:
                self._num_failures += 1
                self._check_gone(error)
                if is_power_of_two(self._num_failures):
                    self.report(error, self._num_failures)

    def _check_gone(self, error: Exception) -> None:
        latest = self._latest
        is_over = latest is not None and latest.run.phase == Phase.FINISHED
        self._num_gone = self._num_gone + 1 if isinstance(error, AccountMissingError) else 0
        if is_over and self._num_gone >= GONE_LOOKS:
            raise error

    def report(self, error: Exception, count: int = 1) -> None:
        """Report that the RPC node failed `count` times in a row; the caller tries again later."""
        if isinstance(error, RpcDisagreementError):
            self._events.emit("rpc_disagreement", reason=str(error))
        self._events.emit("chain_unreachable", count=max(1, count), reason=str(error))


def is_power_of_two(count: int) -> bool:
    """Tell whether a count that grows by one has doubled since it last did: 1, 2, 4, 8, ..."""
    return count & (count - 1) == 0
