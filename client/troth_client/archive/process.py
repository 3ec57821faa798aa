"""An archive as a process: a reader of the chain and of members, with a folder of its own.

Owns: the order of start and end, and what a signal does. Never: listens, holds a key, or prints;
events show what happens.
Next: `keeper.py`.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_client.archive.fetching import Fetching
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.keeper import Keeper, Ports
from troth_client.archive.room import Keeping
from troth_client.runtime.base import ProcessRuntime, end
from troth_client.runtime.files import FolderLock
from troth_client.runtime.signals import at_stop_signals
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import Transport
from troth_client.transport.endpoint import is_store
from troth_client.transport.http import http_reader
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.ledger.file import LedgerFile, LedgerHead

LAST_SECONDS: Final = 5.0
"""So long a stop waits for what is new on chain."""


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """The settings of an archive. `others` are asked beside the members, signed where a store is.

    On a public cluster only public addresses are connected to, unless `allow_private`.
    """

    run: Pubkey
    folder: Path
    keeping: Keeping = field(default_factory=Keeping)
    others: tuple[str, ...] = ()
    allow_private: bool = False
    poll_seconds: float = 1.0


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
    AccountMissingError without the run. Trouble with an RPC node, a member or a
    disk ends nothing.
    """
    genesis = bytes(await client.rpc.genesis_hash())
    folder = ArchiveFolder(settings.folder)
    head = LedgerHead(str(client.program_id), str(settings.run), genesis.hex())
    is_guarded = public_name(genesis) is not None and not settings.allow_private
    stopped = asyncio.Event()
    with FolderLock(settings.folder), at_stop_signals(stopped.set):
        folder.tidy()
        with LedgerFile(folder.ledger, head) as ledger:
            async with http_reader(is_guarded=is_guarded) as transport:
                transport.use_stores(filter(is_store, settings.others), signs=True)
                ports = _ports(settings, client, events, folder, transport)
                keeper = Keeper(folder, ledger, ports, settings.keeping)
                await _follow(keeper, stopped, settings.poll_seconds)
    found = Archived(keeper.round, keeper.num_bytes, keeper.num_missing, keeper.is_done)
    events.emit("archive_ended", round=found.round, missing=found.num_missing, over=found.is_over)
    return found


def _ports(
    settings: ArchiveSettings,
    client: CoordinatorClient,
    events: EventSink,
    folder: ArchiveFolder,
    transport: Transport,
) -> Ports:
    fetching = Fetching(transport, folder, settings.others)
    return Ports(client, ProcessRuntime(settings.poll_seconds), events, fetching, folder)


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
            await asyncio.wait({stopping}, timeout=seconds)
        if stopped.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await keeper.read_chain()
    finally:
        await end(stopping)
