"""The keeper: follows a run, and keeps what an audit of it needs.

Owns: one look after the other: the ledger, then what it names, then the list of what is missing.
Never: ends because a member lies, an RPC node is away, or the disk is full: it says so and goes on.
Next: `following.py`, `fetching.py`, `room.py` for the three parts of a look; `process.py`.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from troth_client.archive.book import Book
from troth_client.archive.errors import (
    ArchiveEntryError,
    FalseSignatureError,
    NotYetError,
    TooEarlyError,
)
from troth_client.archive.fetching import Fetching, reason
from troth_client.archive.folder import ArchiveFolder, ByteStore
from troth_client.archive.following import Following
from troth_client.archive.items import Item
from troth_client.archive.listing import MissingList
from troth_client.archive.mirror import Mirror
from troth_client.archive.room import Keeping, Room
from troth_client.archive.wanting import LAST_ATTEMPTS, Open, Wanting
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import Runtime
from troth_client.runtime.files import DiskFullError
from troth_client.runtime.memory import first_line
from troth_client.telemetry.events import EventSink
from troth_client.transport.base import BlobKind
from troth_client.transport.errors import TransportError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import AccountMissingError
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.ledger.file import LedgerFile

PARALLEL: Final = 4
"""Items that are fetched at a time: so many lie in memory."""
QUIET_LOOKS: Final = 16
"""A finished run must not change for so many looks before its archive ends."""
QUIET_LOOKS_LONG: Final = 256
"""As many where an audit is still open on chain, or the newest events are not here."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside of a keeper; `store` takes the bytes, which may be the folder itself."""

    client: CoordinatorClient
    runtime: Runtime
    events: EventSink
    fetching: Fetching
    store: ByteStore
    mirror: Mirror | None = None


class Keeper:
    """One archive at work. `ledger` is open, and the caller's to close."""

    def __init__(
        self, folder: ArchiveFolder, ledger: LedgerFile, ports: Ports, keeping: Keeping
    ) -> None:
        """Take up what lies in the folder."""
        self._folder = folder
        self._runtime, self._events = ports.runtime, ports.events
        self._fetching, self._bytes = ports.fetching, ports.store
        self._keeping, self._mirror = keeping, ports.mirror
        self._looks = self._quiet = 0
        self._list = MissingList(folder, ports.runtime, ports.events)
        forgotten = folder.forgotten_before if keeping.is_limited else 0
        self._told = (-1, forgotten)
        self._book, self._wanting = self._nothing_known()
        self._room = Room(self._bytes, keeping, forgotten)
        self._following = Following(
            ports.client, ledger, ports.events, self._take, self._begin_anew
        )
        self._following.replay()

    @property
    def num_missing(self) -> int:
        """How many items are missing now, those that were forgotten not counted."""
        return self._wanting.num_missing

    @property
    def num_bytes(self) -> int:
        """How many bytes lie here, beside the ledger."""
        return self._room.num_bytes

    @property
    def round(self) -> int:
        """The newest round in the ledger."""
        return self._book.newest

    @property
    def is_done(self) -> bool:
        """Whether the run is over, and there is nothing more to get."""
        may_change = self._book.open_audits or self._following.is_behind
        most = QUIET_LOOKS_LONG if may_change else QUIET_LOOKS
        return self._following.is_finished and not self._wanting and self._quiet >= most

    async def look(self) -> None:
        """Read what is new on chain, and ask for what is missing.

        Raises AccountMissingError where there is no such run, LedgerFileError for a ledger that
        was damaged meanwhile, StoreInUseError where another process writes the store. Ledger and
        lists raise OSError, too, for a disk that fails.
        """
        self._looks += 1
        self._quiet += 1
        await self.read_chain()
        if self._following.is_commit_over:
            self._want(*self._book.commit_is_over())
        self._room.keep_newest(self._book.newest)
        await self._ask()
        forgotten = self._room.forgotten_before
        if self.is_done or self._list.is_due(self._looks, forgotten, self.num_missing):
            await self.list_missing()
        if self._mirror is not None:
            await self._mirror.look()
        self._tell()

    async def read_chain(self) -> None:
        """Bring the ledger up to date; raises as `look` does."""
        try:
            if await self._following.look():
                self._quiet = 0
                self._keep_chain()
        except RPC_FAILURES as error:
            if isinstance(error, AccountMissingError) and not self._following.has_begun:
                raise
            self._events.emit("chain_unreachable", count=1, reason=str(error))
        except DiskFullError as error:
            self._events.emit("disk_full", reason=str(error))

    def _nothing_known(self) -> tuple[Book, Wanting]:
        book = Book()
        return book, Wanting(self._list.has_changed, book.is_past)

    def _begin_anew(self) -> None:
        self._book, self._wanting = self._nothing_known()
        self._room = Room(self._bytes, self._keeping, self._room.forgotten_before)

    def _begin_life(self) -> None:
        """Keep the run from its new creation on: rounds have the numbers of earlier ones now."""
        self._room.forget_before(self._book.newest + 1)
        self._book, self._wanting = self._nothing_known()
        self._room = Room(self._bytes, self._keeping)
        self._told = (-1, 0)

    def _take(self, event: Event) -> None:
        if isinstance(event, RunCreated) and self._book.config_hash is not None:
            self._begin_life()
        self._want(*self._book.take(event))

    def _want(self, *items: Item) -> None:
        """Ask for items, unless they are here."""
        for item in items:
            size = self._bytes.size(item.kind, item.key)
            if size is None:
                if not self._room.refuses(item):
                    self._wanting.add(item)
            else:
                self._has(item, size)

    def _has(self, item: Item, num_bytes: int) -> None:
        """Take note of an item that lies here, and want what it names."""
        self._room.add(item, num_bytes)
        if self._mirror is not None:
            self._mirror.add(item)
        if item.kind is BlobKind.HEADER:
            self._has_header(item)
            return
        self._wanting.got(item)
        if item.kind is BlobKind.CONFIG:
            self._fetching.read_config(item.key)
            self._want(*self._fetching.start(self._book))
        elif item.kind is BlobKind.PIECES:
            pieces = self._fetching.pieces(item.key)
            if pieces is None:  # the list was damaged
                self._wanting.add(item)
            self._want(*(pieces or ()))

    def _has_header(self, item: Item) -> None:
        """Want the payload that a header names, and the header itself until its maker signed it."""
        kept = self._fetching.header(item.key)
        if kept is not None and kept.is_signed:
            self._wanting.got(item)
        else:
            self._wanting.add(item)
        if kept is not None:  # else it was damaged
            root, index = kept.header.payload_root, item.participant
            self._want(Item(BlobKind.PAYLOAD, root, item.round, index))

    async def _ask(self) -> None:
        """Ask for what is due, some items at a time."""
        due = self._wanting.due(self._looks)
        for first in range(0, len(due), PARALLEL):
            await asyncio.gather(*(self._obtain(one) for one in due[first : first + PARALLEL]))
            self._fetching.forget()

    async def _obtain(self, one: Open) -> None:
        item = one.item
        if self._room.refuses(item):
            self._wanting.got(item)
            return
        try:
            await self._fetch(item)
        except (NotYetError, TransportError, ArchiveEntryError, FalseSignatureError) as error:
            self._fail(one, reason(error), is_early=isinstance(error, TooEarlyError))
        except DiskFullError as error:
            self._events.emit("disk_full", reason=str(error))
            self._fail(one, "no room on the disk")
        except (OSError, MemoryError) as error:
            self._events.emit("archive_trouble", count=1, reason=first_line(error))
            self._fail(one, first_line(error))

    async def _fetch(self, item: Item) -> None:
        """Fetch and keep an item; a header that its maker has not signed as well, but it raises."""
        is_header = item.kind is BlobKind.HEADER
        is_here = is_header and self._fetching.header(item.key) is not None
        try:
            data = await self._fetching.fetch(item, self._book)
        except FalseSignatureError as error:
            if not is_here:
                about = {"round": item.round, "index": item.participant}
                self._events.emit("signature_false", **about)
                await self._store(item, error.data)
            raise
        if is_here:
            await self._replace_signature(item, data)
        else:
            await self._store(item, data)

    async def _store(self, item: Item, data: bytes) -> None:
        ledger_bytes = self._folder.ledger.stat().st_size
        if not self._room.make(item, len(data), ledger_bytes):
            raise NotYetError("no room: the archive is as large as it may be")
        await self._runtime.compute(self._bytes.put, item, data)
        self._has(item, len(data))

    async def _replace_signature(self, item: Item, data: bytes) -> None:
        """Keep a header that is here with the signature of its maker; all else was noted before."""
        await self._runtime.compute(self._bytes.put, item, data)
        self._wanting.got(item)
        if self._mirror is not None:
            self._mirror.has_changed(item)

    def _fail(self, one: Open, why: str, *, is_early: bool = False) -> None:
        is_late = self._following.is_finished or self._book.is_past(one.item)
        if is_early and not is_late:
            self._wanting.wait(one, self._looks, why)
        else:
            self._wanting.failed(one, self._looks, why)
        if is_late and one.attempts >= LAST_ATTEMPTS:
            self._wanting.give_up(one)

    def _keep_chain(self) -> None:
        account = self._following.account
        if account is not None:
            self._folder.write_chain(self._following.slot, account)

    async def list_missing(self) -> None:
        """Make the list of what is missing exact, unless the disk is full. Raises OSError."""
        await self._list.write(self._looks, self._room.forgotten_before, self._wanting)

    def _tell(self) -> None:
        """Report each new round, and each round that gave way."""
        told = (self._book.newest, self._room.forgotten_before)
        if told[0] != self._told[0]:
            numbers = {"bytes": self.num_bytes, "missing": self.num_missing}
            self._events.emit("archive_round", round=told[0], **numbers)
        if told[1] != self._told[1]:
            self._events.emit("archive_forgot", before_round=told[1])
        self._told = told
