"""A run's files: a data set of several shards and pieces, a config that is bound to it, holders.

Owns: making them, what a lying holder answers, and counting what travelled.
Never: a socket of its own. Next: `showing.py`, which does the same for weights.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from troth_client.data.manifest import Manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.run_files.files import KeptFiles
from troth_client.runtime.base import ProcessRuntime
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobKind, ShownFiles
from troth_client.transport.exchange import Exchange
from troth_client.transport.memory import MemoryNetwork, memory_transport
from troth_client.transport.parallel import Source
from troth_coordinator.rules.config import RunConfig

SHARD_TOKENS = 9 * 2**16
"""Shards of two pieces, the second of which is short."""


def make_data(folder: Path, num_bytes: int = 2 * SHARD_TOKENS + 200_000) -> Manifest:
    """A data set of random letters: two shards of two pieces each, and two small ones."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    text = folder.parent / "text.txt"
    letters = random.Random(num_bytes).randbytes(num_bytes // 2).hex()
    size = max(1, num_bytes // 20)
    with text.open("w") as stream:
        stream.writelines(letters[at : at + size] + "\n" for at in range(0, num_bytes, size))
    options = PrepareOptions(sequence_tokens=1023, shard_tokens=SHARD_TOKENS)
    return prepare(folder, text_source([text]), ByteTokenizer(), options)


@dataclass(frozen=True)
class Run:
    """A run's files in a folder, with the hashes that its account would hold."""

    folder: Path
    manifest: Manifest
    config: RunConfig

    def kept(self, folder: Path | None = None) -> KeptFiles:
        """The port of somebody who shows all of it, or the files in another folder."""
        hashes = self.config.config_hash(), self.manifest.hash
        kept = KeptFiles(self.folder if folder is None else folder, *hashes)
        if folder is None:
            kept.show_config(self.config)
        return kept


def make_run(folder: Path) -> Run:
    manifest = make_data(folder)
    return Run(folder, manifest, RunConfig().with_manifest(manifest.hash))


@dataclass
class Counted:
    """Counts what a holder was asked for and had; `spoil` changes its answers."""

    inner: ShownFiles
    spoil: dict[BlobKind, bytes | int] = field(default_factory=dict)
    served: list[tuple[BlobKind, bytes]] = field(default_factory=list)

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        found = self.inner.shown(kind, key)
        if found is None:
            return None
        self.served.append((kind, key))
        change = self.spoil.get(kind)
        if isinstance(change, bytes):
            return change
        if change is not None:  # another byte at this place
            at = change % len(found)
            return found[:at] + bytes([found[at] ^ 1]) + found[at + 1 :]
        return found

    def has(self, kind: BlobKind, key: bytes) -> bool:
        return self.inner.has(kind, key)

    def welcome(self, kind: BlobKind, key: bytes) -> Sequence[int]:
        return tuple(self.inner.welcome(kind, key))

    def accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        self.inner.accept(kind, key, data)

    @property
    def kinds(self) -> Counter[BlobKind]:
        return Counter(kind for kind, _ in self.served)


class Holders:
    """Holders of a memory network by name, and one who fetches from them."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self.network = MemoryNetwork()
        self.counts: dict[str, Counted] = {}
        self.events = EventList()
        self.patience = 0
        self.is_vain: Callable[[], bool] = self._has_no_patience
        self._stack = stack
        self._num_vain = 0
        self._num_sources = 0

    async def add(self, name: str, files: ShownFiles, **spoil: bytes | int) -> Exchange:
        changes = {BlobKind(kind): change for kind, change in spoil.items()}
        self.counts[name] = Counted(files, changes)
        transport = memory_transport(self.network, name)
        transport.show_files(self.counts[name])
        return await self._stack.enter_async_context(transport)

    async def source(self) -> Source:
        """One who knows all holders, and gives up after `patience` vain tries."""
        transport = memory_transport(self.network, f"taker-{self._num_sources}")
        self._num_sources += 1
        await self._stack.enter_async_context(transport)
        return Source(transport, ProcessRuntime(0.0), self.events, self._names, self.is_vain)

    async def _names(self) -> list[str]:
        return list(self.counts)

    def _has_no_patience(self) -> bool:
        self._num_vain += 1
        return self._num_vain > self.patience
