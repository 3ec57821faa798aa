"""An archive as a process: a reader of the chain and of members, with a folder of its own.

Owns: the order of start and end, and what a signal does. Never: listens, holds a key, or prints;
events show what happens.
Next: `keeper.py`.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_client.archive.fetching import Fetching
from troth_client.archive.folder import MISSING_FILE, ArchiveFolder, ByteStore
from troth_client.archive.keeper import Keeper, Ports
from troth_client.archive.mirror import Mirror
from troth_client.archive.room import Keeping
from troth_client.archive.store_ledger import take_up
from troth_client.archive.stored import StoredBytes
from troth_client.network.watch import is_power_of_two
from troth_client.runtime.base import ProcessRuntime, end
from troth_client.runtime.files import FolderLock
from troth_client.runtime.memory import first_line
from troth_client.runtime.signals import at_stop_signals
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import Transport
from troth_client.transport.endpoint import is_store
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader
from troth_client.transport.store import StoreWire
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.errors import TrothError
from troth_coordinator.ledger.file import LedgerFile, LedgerHead

PATIENCE: Final = Patience(grace_seconds=2.0, hedge_seconds=0.5)
"""A slow holder is passed over soon: one look waits for all that it asks for."""
STORE_SECONDS: Final = 30.0
"""So long a store may be silent."""
LAST_SECONDS: Final = 15.0
"""So long a stop waits for what is new on chain."""
PASSING: Final = (AccountMissingError, OSError, MemoryError)
"""Errors of a look beside a participant, which has read the run: the next look may succeed."""


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The settings of an archive. `others` are asked beside the members, signed where a store is.

    `copy_to` is an object store that gets a copy of everything, "" for none. `store` is one that
    holds the bytes instead of the folder; ledger and lists are worked on there, and copied.

    On a public cluster only public addresses are connected to, unless `allow_private`.
    """

    run: Pubkey
    folder: Path
    keeping: Keeping = field(default_factory=Keeping)
    others: tuple[str, ...] = ()
    allow_private: bool = False
    poll_seconds: float = 1.0
    copy_to: str = ""
    store: str = ""


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive as it was left. `is_over`: the run is, and nothing more was to be got."""

    round: int
    num_bytes: int
    num_missing: int
    is_over: bool


async def keep_archive(
    settings: ArchiveSettings, client: CoordinatorClient, events: EventSink
) -> Archived:
    """Keep an archive until the run is over, or SIGINT or SIGTERM. A restart goes on.

    Raises ArchiveFolderError, FolderInUseError, LedgerFileError for another run's folder,
    StoreLedgerError for another ledger in the store, StoreInUseError for another process that
    writes there, AccountMissingError without the run. Before it has begun it raises what RPC nodes
    raise; then trouble with an RPC node or a member ends nothing, nor does a full disk.
    """
    await _check_run(settings, client)
    genesis = bytes(await client.rpc.genesis_hash())
    is_guarded = public_name(genesis) is not None and not settings.allow_private
    stopped = asyncio.Event()
    transport = http_reader(PATIENCE, is_guarded=is_guarded)
    transport.use_stores(filter(is_store, settings.others), signs=True)
    with at_stop_signals(stopped.set):
        async with transport, _opened(settings, client, transport, events, genesis, True) as keeper:
            await _follow(keeper, stopped, settings.poll_seconds)
    found = Archived(keeper.round, keeper.num_bytes, keeper.num_missing, keeper.is_done)
    events.emit("archive_ended", round=found.round, missing=found.num_missing, over=found.is_over)
    return found


async def _check_run(settings: ArchiveSettings, client: CoordinatorClient) -> None:
    """Leave no folder for a run that is not there; one that was closed since may be completed."""
    folder = ArchiveFolder(settings.folder)
    if not folder.ledger.exists():
        await client.read_run(settings.run)


@contextlib.asynccontextmanager
async def archive_beside(
    settings: ArchiveSettings,
    client: CoordinatorClient,
    transport: Transport,
    events: EventSink,
    genesis: bytes,
) -> AsyncIterator[None]:
    """Keep an archive while the block runs, with the transport of a participant.

    The participant's own bytes cost no traffic, and its transport forgets by rules of its own. An
    archive that cannot go on is reported: it never ends the participant. Raises ArchiveFolderError
    at the start.
    """
    ArchiveFolder(settings.folder)
    stopped = asyncio.Event()
    work = _keep_beside(settings, client, transport, events, genesis, stopped)
    keeping = asyncio.create_task(work)
    keeping.add_done_callback(functools.partial(_report, events))
    try:
        yield
    finally:
        stopped.set()
        await asyncio.wait({keeping}, timeout=LAST_SECONDS)
        await end(keeping)


async def _keep_beside(  # as above, and the end
    settings: ArchiveSettings,
    client: CoordinatorClient,
    transport: Transport,
    events: EventSink,
    genesis: bytes,
    stopped: asyncio.Event,
) -> None:
    """Follow the run until the stop. Raises as `_opened` and Keeper.look."""
    async with _opened(settings, client, transport, events, genesis, False) as keeper:
        await _look_often(keeper, events, stopped, settings.poll_seconds)


async def _look_often(
    keeper: Keeper, events: EventSink, stopped: asyncio.Event, seconds: float
) -> None:
    """Look again and again, and once more after the stop. Raises as Keeper.look.

    Trouble that may pass is reported, ever more seldom, and the next look tries again.
    """
    num_failures, is_last = 0, False
    while not is_last:
        is_last = stopped.is_set()
        try:
            await keeper.look()
            num_failures = 0
        except PASSING as error:
            num_failures += 1
            if is_power_of_two(num_failures):
                events.emit("archive_trouble", count=num_failures, reason=first_line(error))
        if not is_last:
            await _pause(stopped, seconds)


def _report(events: EventSink, keeping: "asyncio.Task[None]") -> None:
    """Report an archive that ended with an error: nobody else asks how it ended."""
    error = None if keeping.cancelled() else keeping.exception()
    if error is not None:
        reason = str(error) if isinstance(error, TrothError) else repr(error)
        events.emit("archive_failed", reason=reason)


@contextlib.asynccontextmanager
async def _opened(  # the outside of a keeper, part by part
    settings: ArchiveSettings,
    client: CoordinatorClient,
    transport: Transport,
    events: EventSink,
    genesis: bytes,
    owns_transport: bool,
) -> AsyncIterator[Keeper]:
    """Take up the archive of a folder, for us alone while the block runs.

    Reading what is there may take seconds, so threads do it. Raises as `keep_archive`.
    """
    folder = ArchiveFolder(settings.folder)
    head = LedgerHead(str(client.program_id), str(settings.run), genesis.hex())
    with contextlib.ExitStack() as held:
        held.enter_context(FolderLock(settings.folder))
        folder.tidy()
        store: ByteStore = folder
        if settings.store:
            found = await asyncio.to_thread(StoredBytes, settings.store, folder)
            store = held.enter_context(found)
        ledger = held.enter_context(await asyncio.to_thread(LedgerFile, folder.ledger, head))
        fetching = Fetching(transport, store, settings.others, owns_transport)
        mirror = await asyncio.to_thread(mirror_of, settings, folder, ledger, events)
        if mirror is not None:
            await mirror.copy_lists()
        ports = Ports(
            client, ProcessRuntime(settings.poll_seconds), events, fetching, store, mirror
        )
        keeper = await asyncio.to_thread(Keeper, folder, ledger, ports, settings.keeping)
        try:
            yield keeper
        finally:
            await keeper.list_missing()  # a look that was cut short has not
        if mirror is not None:
            await mirror.finish(STORE_SECONDS)


def mirror_of(
    settings: ArchiveSettings, folder: ArchiveFolder, ledger: LedgerFile, events: EventSink
) -> Mirror | None:
    """Return what copies the folder, or only the lists where a store has the bytes.

    The ledger goes on with that of the store where that is longer. Raises as `take_up`.
    """
    url = settings.store or settings.copy_to
    if not url:
        return None
    # With `copy_to` the folder may lack more than the store does: each has a list of its own.
    stored = take_up(ledger, url, [MISSING_FILE] if settings.store else [])
    wire = StoreWire(STORE_SECONDS, signs=True)
    return Mirror(url, wire, folder, events, stored, is_whole=not settings.store)


async def _follow(keeper: Keeper, stopped: asyncio.Event, seconds: float) -> None:
    """Look again and again. A look under way ends at a stop: nothing in it is half done.

    Then the ledger is brought up to date, unless the RPC node takes long.
    """
    stopping = asyncio.create_task(stopped.wait())
    try:
        while not (stopped.is_set() or keeper.is_done):
            looking = asyncio.create_task(keeper.look())
            await asyncio.wait({looking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not looking.done():
                await end(looking)
                break
            looking.result()
            await _pause(stopped, seconds)
    finally:
        await end(stopping)
    if stopped.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(keeper.read_chain(), LAST_SECONDS)


async def _pause(stopped: asyncio.Event, seconds: float) -> None:
    """Wait a while, or until the stop."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), seconds)
