"""Archives of runs in one process: a keeper beside the members, and what lies in its folder.

Owns: starting, stopping and reading one; a run that was recorded, with holders that tell the truth
or not. Never: takes part in the run. Next: `runs.py` for the run; `troth_client/archive/keeper.py`.
"""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from support.runs import RunFactory, start_members
from troth_client.archive.fetching import Fetching
from troth_client.archive.folder import ArchiveFolder, ByteStore
from troth_client.archive.keeper import Keeper, Ports
from troth_client.archive.process import ArchiveSettings, mirror_of
from troth_client.archive.room import Keeping
from troth_client.archive.stored import StoredBytes
from troth_client.data.manifest import Manifest
from troth_client.runtime.files import FolderLock
from troth_client.telemetry.events import EventList
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.ledger.file import LedgerFile, LedgerHead
from troth_simulation.in_process import InProcessRun

EVERYTHING = Keeping()
NAMES = "ada bob cyd dan"
Spoil = Callable[[str, bytes], bytes | None]
"""`spoil(address, data)`: what a holder sends instead."""


class Archivist:
    """An archive of a run, of which the members are reached over `network`."""

    def __init__(
        self,
        run: InProcessRun,
        folder: Path,
        keeping: Keeping = EVERYTHING,
        network: MemoryNetwork | None = None,
    ) -> None:
        self.run, self.path, self.keeping = run, folder, keeping
        self.network = network or run.network
        self.client: CoordinatorClient = run.client
        self.events = EventList()
        self.store = self.copy_to = ""

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Keeper]:
        """The keeper, which looks when the caller says so."""
        run, folder = self.run, ArchiveFolder(self.path, durable=False)
        genesis = bytes(await run.rpc.genesis_hash()).hex()
        head = LedgerHead(str(run.at.program), str(run.at.run), genesis)
        with contextlib.ExitStack() as held:
            held.enter_context(FolderLock(self.path))
            folder.tidy()
            store: ByteStore = folder
            if self.store:
                store = held.enter_context(StoredBytes(self.store, folder))
            ledger = held.enter_context(LedgerFile(folder.ledger, head))
            settings = ArchiveSettings(
                run.at.run, self.path, copy_to=self.copy_to, store=self.store
            )
            mirror = mirror_of(settings, folder, ledger, self.events)
            if mirror is not None:
                await mirror.copy_lists()
            async with memory_transport(self.network, "archivist", listens=False) as wire:
                fetching = Fetching(wire, store)
                ports = Ports(self.client, run.runtime, self.events, fetching, store, mirror)
                yield Keeper(folder, ledger, ports, self.keeping)
            if mirror is not None:
                await mirror.finish(30.0)

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[Keeper]:
        """Look at each slot inside the block."""
        async with self.opened() as keeper:
            looking = self.run.runtime.start(self._follow(keeper), "archivist")
            try:
                yield keeper
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)

    async def until_done(self) -> Keeper:
        """Look until there is nothing more to get; no slot passes meanwhile."""
        async with self.opened() as keeper:
            for _ in range(500):
                if keeper.is_done:
                    break
                await keeper.look()
        return keeper

    async def _follow(self, keeper: Keeper) -> None:
        while True:
            await keeper.look()
            await self.run.runtime.wait()
            await asyncio.sleep(0)  # where nobody else waits for a slot, the wait takes no time

    def missing(self) -> list[dict[str, Any]]:
        """The list of what is missing."""
        text = (self.path / "missing.json").read_text()
        found: list[dict[str, Any]] = json.loads(text)["missing"]
        return found

    def kept(self, kind: str) -> set[str]:
        """The names of the bytes of a kind."""
        folder = self.path / kind
        return {one.name for one in folder.iterdir()} if folder.is_dir() else set()


@dataclass(frozen=True)
class RecordedRun:
    """A finished run on a chain that still stands, and a whole archive of it."""

    run: InProcessRun
    path: Path

    def network(self, spoil: Spoil | None = None, *liars: str) -> MemoryNetwork:
        """The members, who hold all of the archive's bytes; `liars` send what `spoil` makes."""
        made = MemoryNetwork()
        for name in NAMES.split():
            holder = Holder(self.path, spoil if name in liars else None)
            made.join(name, cast(BlobCache, holder))  # a reader asks only for `served`
        return made

    def archivist(
        self, folder: Path, keeping: Keeping = EVERYTHING, network: MemoryNetwork | None = None
    ) -> Archivist:
        """Somebody who begins an archive of the run now."""
        return Archivist(self.run, folder, keeping, network or self.network())

    def names(self, kind: str) -> set[str]:
        """The names of the bytes of a kind in the whole archive."""
        return {one.name for one in (self.path / kind).iterdir()}


@dataclass(frozen=True)
class Holder:
    """As much of a member as a reader sees."""

    folder: Path
    spoil: Spoil | None

    def served(self, address: str) -> bytes | None:
        """The bytes at an address, or a lie."""
        path = self.folder / address
        data = path.read_bytes() if path.is_file() else None
        return data if data is None or self.spoil is None else self.spoil(address, data)


async def started(
    factory: RunFactory, data: tuple[Path, Manifest], rounds: int, **changes: int
) -> InProcessRun:
    """A run with all of NAMES, whose first member serves the data manifest, too."""
    run = await factory.create(rounds, **changes)
    folder = run.folder / NAMES.split(maxsplit=1)[0] / "data"
    folder.mkdir(parents=True)
    shutil.copy(data[0] / "manifest.json", folder)
    await start_members(run, NAMES.split())
    return run


@contextlib.contextmanager
def recorded(
    data: tuple[Path, Manifest], folder: Path, rounds: int, **changes: int
) -> Iterator[RecordedRun]:
    """Play a run to its end beside an archive."""

    async def play() -> RecordedRun:
        factory = RunFactory(data, folder)
        run = await started(factory, data, rounds, **changes)
        archivist = Archivist(run, folder / "archive")
        async with archivist.at_work():
            await run.finish()
        await archivist.until_done()
        await factory.close()
        return RecordedRun(run, archivist.path)

    yield asyncio.run(play())
