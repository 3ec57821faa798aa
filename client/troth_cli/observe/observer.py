"""`Observer`: follows a run as an outsider, and hands out the newest `Observation`.

Owns: what is read when, in the background, and patience with RPC nodes that are away.
Never: waits for a slow holder or a dead node before it answers: it shows what it last knew.
Next: `record.py` for the answer; `reads.py`, `headers.py` for what is read.

    async with Observer(client, run, ObserverSettings(rpc_urls=urls)) as observer:
        while not observer.latest().is_gone:
            show(observer.latest())
            await observer.changed(1.0)

A look reads Run and Round when something changed, or after some seconds (`network/reading.py`).
Beside that it reads each round once after its close, endpoints once a minute, audits and slashes
after events that may change them. Headers come from members, hubs and stores.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from solders.pubkey import Pubkey

from troth_audit.rounds import closed_round
from troth_audit.slashes import slashes_of
from troth_cli.observe.fold import all_warnings, participants_seen, run_seen
from troth_cli.observe.headers import HeaderReader
from troth_cli.observe.losses import PATIENCE
from troth_cli.observe.reads import AccountReads, VaultReads
from troth_cli.observe.record import Observation
from troth_cli.observe.round_book import RoundBook
from troth_cli.observe.time_left import Position, SlotPace, estimate
from troth_cli.slot_time import slot_time
from troth_cli.view.amounts import number_or_none
from troth_client.network.reading import LeanReader
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import end
from troth_client.telemetry.printable import one_line
from troth_client.transport.base import Transport
from troth_client.transport.endpoint import is_store
from troth_client.transport.exchange import Exchange
from troth_client.transport.http import http_reader
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_cluster
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.chain.subscription import RunPushes, websocket_url
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.oversight import oversight, recent_rounds
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

LOOK_SECONDS: Final = 0.4
"""A look so often; most of them ask nobody."""
GONE_SECONDS: Final = 5.0
"""A finished run whose account is missing for so long was closed; else it is a bad answer."""
GONE_EARLY_SECONDS: Final = 30.0
"""The same for a run that was not seen to finish."""
MOST_ROUNDS: Final = 2_048
"""Closed rounds in the record: some 2 MB as JSON."""
MOST_TRANSACTIONS: Final = 1_000
"""Transactions of the vault that are looked through: more would take a public node minutes."""


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """How to observe. `rpc_urls`: nodes whose websockets say when the run changes; () to poll.

    `others`: hubs and object stores to ask for headers beside members. `allow_private`: connect to
    private addresses of members on a public cluster too. `follows`: go on looking until the end of
    the block; else one look is all.
    """

    rpc_urls: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    allow_private: bool = False
    follows: bool = True
    most_rounds: int = MOST_ROUNDS
    most_transactions: int = MOST_TRANSACTIONS


class Observer:
    """One run, observed inside an `async with` block.

    Entering raises RpcError, and AccountError without such a run. Later RPC trouble only shows in
    `Observation.trouble`. `transport` replaces the one over HTTP; the block opens and closes it.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        run: Pubkey,
        settings: ObserverSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        transport: Transport | None = None,
    ) -> None:
        self._settings = settings or ObserverSettings()
        self._client = client
        self._clock = clock
        self._transport = transport
        urls = [websocket_url(url) for url in dict.fromkeys(self._settings.rpc_urls)]
        self._pushes = RunPushes(urls, run)
        self._has_pushes = bool(urls)
        self._reader = LeanReader(client, run, self._pushes, clock)
        self._book = RoundBook(self._settings.most_rounds)
        self._accounts = AccountReads(client, run, clock)
        self._vault = VaultReads(client, run, self._settings.most_transactions, clock)
        self._headers: HeaderReader | None = None
        self._pace = SlotPace()
        self._view: NetworkView | None = None
        self._looked_at = 0.0
        self._missing_since: float | None = None
        self._trouble, self._is_gone = "", False
        self._revision = self._told = 0
        self._news = asyncio.Event()
        self._following: list[asyncio.Task[None]] = []
        self._beside: dict[str, asyncio.Task[None]] = {}
        self._open = contextlib.AsyncExitStack()
        self._looking = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Look once, and go on in the background if that is asked for."""
        async with contextlib.AsyncExitStack() as stack:
            transport = await stack.enter_async_context(await self._made_transport())
            self._headers = HeaderReader(transport, self._book, self._settings.others, self._clock)
            stack.push_async_callback(self._stop)
            self._pace.before = await slot_time(self._client.rpc)
            await self._look()
            if self._settings.follows:
                self._following.append(asyncio.create_task(self._follow(), name="observer"))
                if self._has_pushes:
                    self._following.append(asyncio.create_task(self._pushes.follow()))
            self._open = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is under way."""
        await self._open.aclose()

    def latest(self) -> Observation:
        """Return what is known now; asks nobody. Raises the error that ended the observer."""
        self._check()
        view, now = self._seen, self._clock()
        tempo = self._pace.slot_time
        ahead = (now - self._looked_at) * 1e6 / tempo.micros if tempo.is_measured else 0
        slot = view.slot if self._trouble or self._is_gone else Slot(view.slot + int(ahead))
        view = replace(view, slot=slot)
        seen = oversight(view, self._accounts.recent(recent_rounds(view)))
        ends, rounds = number_or_none(view.run.phase_end_slot), self._book.all()
        left = None if ends is None else max(0, ends - slot)
        opened = None if view.round is None else view.round.open_slot
        phase, run = view.run.phase, view.run
        position = Position(phase, run.round, run.params.max_rounds, slot, opened, left)
        losses = {} if self._headers is None else self._headers.last_losses
        slashes = slashes_of(self._vault.found, self._accounts.cases)
        still_open = {case.key for case in self._accounts.cases}
        notes = (*all_warnings(view, seen), *self._vault.warnings)
        return Observation(
            slot=slot,
            slots_left=left,
            run=run_seen(view, seen, self._accounts.newest_closed),
            rounds=rounds,
            first_round=self._book.first,
            num_dropped=self._book.num_dropped,
            participants=participants_seen(view, self._accounts.participants, losses),
            cases=self._accounts.cases,
            closed=tuple(case for case in self._vault.closed if case.key not in still_open),
            is_closed_cut=self._vault.is_closed_cut,
            slashes=tuple(slashes),
            is_slash_record_cut=self._vault.is_cut,
            warnings=notes,
            time_left=estimate(position, [one.chain for one in rounds], tempo),
            age_seconds=max(0.0, now - self._looked_at),
            trouble=self._trouble,
            is_gone=self._is_gone,
            revision=self._revision,
        )

    async def changed(self, seconds: float) -> bool:
        """Wait until something but the slot has changed since this last returned True.

        Returns False after so many seconds without a change.
        """
        has_changed = await self.wait_beyond(self._told, seconds)
        self._told = self._revision
        return has_changed

    async def wait_beyond(self, revision: int, seconds: float) -> bool:
        """Wait for a later revision; several callers may wait. Returns False without one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while revision == self._revision:
                    self._check()
                    await self._news.wait()
        return revision != self._revision

    async def settle(self, seconds: float) -> None:
        """Wait until the vault's events are read, and for so long at most until headers are.

        A look that is under way ends first: it may have shown the run's end and not its rounds.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._looking:
                pass
        running = [work for name, work in self._beside.items() if name != "headers"]
        headers = self._beside.get("headers")
        if headers is not None:
            await asyncio.wait([headers], timeout=seconds)
        if running:
            await asyncio.wait(running)
        self._check()

    @property
    def _seen(self) -> NetworkView:
        if self._view is None:
            raise RuntimeError("nothing was read yet: use `async with`")
        return self._view

    async def _made_transport(self) -> Transport:
        if self._transport is not None:
            return self._transport
        is_public = await public_cluster(self._client.rpc) is not None
        made: Exchange = http_reader(
            PATIENCE, is_guarded=is_public and not self._settings.allow_private
        )
        made.use_stores(filter(is_store, self._settings.others), signs=True)
        return made

    async def _follow(self) -> None:
        while not self._is_gone:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                async with self._looking:
                    await self._look()
            except RPC_FAILURES as error:
                self._failed(error)

    async def _look(self) -> None:
        """Read what is due, and begin beside it what takes longer."""
        view, before = await self._reader.newest(), self._view
        if self._reader.read_at != self._looked_at or before is None:
            self._pace.observe(self._reader.read_at, view.slot)
            self._view, self._looked_at = view, self._reader.read_at
            if before is None or replace(view, slot=before.slot) != before:
                self._note_change()
        if await self._accounts.read(self._seen):
            self._note_change()
        if self._trouble:
            self._trouble = ""
            self._note_change()
        self._missing_since = None
        self._begin()

    def _begin(self) -> None:
        self._check()
        view, closed, headers = self._seen, self._accounts.take_closed(), self._headers
        if self._book.add(map(closed_round, closed)):
            self._note_change()
        if headers is not None:
            headers.want(closed)
            headers.use_holders(self._accounts.endpoints)
            if headers.is_due and self._is_free("headers"):
                self._start("headers", headers.read(view.run.config_hash, self._note_change))
        if self._vault.is_due(view) and self._is_free("vault"):
            self._start("vault", self._vault.read(view, self._note_change))

    def _is_free(self, name: str) -> bool:
        return name not in self._beside

    def _start(self, name: str, work: Coroutine[None, None, None]) -> None:
        self._beside[name] = asyncio.create_task(work, name=f"observer: {name}")

    def _failed(self, error: Exception) -> None:
        """Remember why looks fail; a run whose account stays away was closed."""
        now, trouble = self._clock(), one_line(error)
        if trouble != self._trouble:
            self._trouble = trouble
            self._note_change()
        if not isinstance(error, AccountMissingError):
            self._missing_since = None
            return
        self._missing_since = now if self._missing_since is None else self._missing_since
        is_over = self._seen.run.phase == Phase.FINISHED
        if now - self._missing_since >= (GONE_SECONDS if is_over else GONE_EARLY_SECONDS):
            self._is_gone = True
            self._note_change()

    def _note_change(self) -> None:
        self._revision += 1
        # Everybody who waits holds this event; those who wait later hold the next one.
        self._news.set()
        self._news = asyncio.Event()

    def _check(self) -> None:
        """Raise the error with which background work has ended."""
        for name, work in list(self._beside.items()):
            if work.done():
                del self._beside[name]
                work.result()
        for work in self._following:
            if work.done():
                work.result()

    async def _stop(self) -> None:
        await end(*self._following, *self._beside.values())
