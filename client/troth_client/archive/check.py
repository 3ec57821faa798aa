"""Checking: an archive in a folder or a store against its own ledger, without a chain.

Owns: the walk from the ledger to every byte that it names, and what is wrong with each.
Never: judges what bytes mean, or believes the list of what is missing: it looks.
Next: `folder.py`; the audit, which judges.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth_attestation import header as headers
from troth_attestation.errors import PieceListError
from troth_attestation.pieces import PIECE_BYTES
from troth_client.archive.book import Book
from troth_client.archive.errors import ArchiveFolderError
from troth_client.archive.fetching import has_false_signature
from troth_client.archive.folder import ArchiveFolder, ByteStore
from troth_client.archive.given import GivenStart
from troth_client.archive.items import Item
from troth_client.archive.stored import StoredBytes
from troth_client.network.expecting import SIGNED_HEADER_BYTES
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import LIMITS
from troth_client.transport.base import BlobKind
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.fold import Fold

MOST_BYTES: Final = 2**31
"""No payload or opening set is read that is longer."""
MOST: Final = {
    **LIMITS,
    BlobKind.HEADER: SIGNED_HEADER_BYTES,
    BlobKind.PIECE: PIECE_BYTES,
}
"""The bounds of the other kinds."""
MOST_PROBLEMS: Final = 10_000
"""So many problems are listed; more are counted."""

Progress = Callable[[int, Book], None]
"""Receives the number of entries so far."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is missing or damaged; `participant` is None for what is the run's own."""

    kind: str
    key: str
    round: int | None
    participant: int | None
    what: str

    @classmethod
    def of(cls, item: Item, what: str) -> "Problem":
        """Return a problem with an item."""
        return cls(str(item.kind), item.key.hex(), item.round, item.participant, what)


@dataclass(slots=True)
class Checked:
    """An archive as it was found. `whole` counts good items by kind; `num_problems` all others.

    `chain_hash` follows from the events of the ledger; the Run account has it, too.
    """

    run: str = ""
    chain_hash: str = ""
    num_entries: int = 0
    round: int = 0
    num_bytes: int = 0
    forgotten_before: int = 0
    num_problems: int = 0
    whole: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing or damaged."""
        return not self.num_problems

    def add(self, problem: Problem) -> None:
        """Take note of a problem."""
        self.num_problems += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)


def check_archive(path: Path, report: Progress = lambda _done, _book: None) -> Checked:
    """Read a whole archive. Raises ArchiveFolderError where there is none, and OSError."""
    if not path.is_dir():
        raise ArchiveFolderError(
            "the folder of an archive", "none", "Name the folder of --out.", str(path)
        )
    folder = ArchiveFolder(path)
    if not folder.ledger.is_file():
        raise ArchiveFolderError(
            "the folder of an archive", f"no {folder.ledger.name} in it", "Name another.", str(path)
        )
    found = _checked(folder, folder, report)
    for one in folder.strangers():
        found.add(Problem("folder", one.name, None, None, "no file of an archive"))
    return found


def check_stored(url: str, report: Progress = lambda _done, _book: None) -> Checked:
    """Read a whole archive in an object store.

    Raises ArchiveFolderError where there is none, HolderError, DiskFullError.
    """
    with tempfile.TemporaryDirectory(prefix="troth-check-") as scratch:
        folder = ArchiveFolder(Path(scratch), durable=False)
        with StoredBytes(url, folder) as store:
            store.fetch_lists()
            if not folder.ledger.is_file():
                told = f"no {folder.ledger.name} in it"
                raise ArchiveFolderError("the store of an archive", told, "Name another.", url)
            return _checked(folder, store, report)


def _checked(folder: ArchiveFolder, store: ByteStore, report: Progress) -> Checked:
    """Walk from the ledger in a folder to the bytes in a store, which may be the folder."""
    found, book = Checked(forgotten_before=folder.forgotten_before), Book()
    try:
        for item in _items(folder, found, book, report):
            _check(store, found, item)
            if item.kind is BlobKind.CONFIG:
                _check_start(store, found, item.key, book.genesis_root)
    except LedgerError as error:
        found.add(Problem("ledger", "", book.newest, None, str(error)))
    found.round = book.newest
    return found


def _items(folder: ArchiveFolder, found: Checked, book: Book, report: Progress) -> Iterator[Item]:
    """Yield what the ledger names, while it folds into the chain hash that its closes show."""
    ledger, fold = Ledger.of(folder.ledger), Fold()
    found.run = ledger.head.run
    reader = ledger.head.reader()
    for entry in ledger.entries():
        events = reader.events(entry)
        fold.absorb(events)
        found.chain_hash = fold.hash.hex()
        found.num_entries += 1
        for event in events:
            yield from book.take(event)
        report(found.num_entries, book)


def _check_start(store: ByteStore, found: Checked, config_hash: bytes, root: bytes) -> None:
    """Look at the weights that a run starts from, where they are given."""
    data = store.get(BlobKind.CONFIG, config_hash, LIMITS[BlobKind.CONFIG])
    try:
        given = None if data is None else GivenStart.of(parse_config(data))
    except RunFileError:
        return  # the audit judges it
    if given is None:
        return
    item = Item(BlobKind.PIECES, root)
    listed = store.get(item.kind, root, given.list_bytes)
    try:
        pieces = given.pieces(root, listed or b"")
    except PieceListError as error:
        is_there = store.size(item.kind, root) is not None
        found.add(Problem.of(item, f"damaged: {error.found}" if is_there else "missing"))
        return
    for one in (item, *pieces):
        _check(store, found, one)


def _check(store: ByteStore, found: Checked, item: Item) -> None:
    """Look at one item, and at the payload that a header names."""
    size = store.size(item.kind, item.key)
    if size is None:
        is_forgotten = item.round < found.forgotten_before and item.kind not in LIMITS
        found.add(Problem.of(item, "forgotten to make room" if is_forgotten else "missing"))
        return
    most = MOST.get(item.kind, MOST_BYTES)
    data = store.get(item.kind, item.key, min(most, size))
    if data is None:
        found.add(Problem.of(item, f"damaged: {size} bytes without this address"))
        return
    found.whole[str(item.kind)] += 1
    found.num_bytes += size
    if item.kind is BlobKind.HEADER:
        if has_false_signature(data):
            found.add(Problem.of(item, "a false signature"))
        root = headers.decode(data[: headers.HEADER_BYTES]).payload_root
        _check(store, found, Item(BlobKind.PAYLOAD, root, item.round, item.participant))
