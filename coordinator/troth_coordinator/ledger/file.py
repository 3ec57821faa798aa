"""A ledger as a file of lines: append only, whole after a crash, read without holding it.

A closed run may be created again under its address. Then the file goes on with the new life, and
readers begin there: nothing that was ever kept is lost, and nothing is mixed.

Owns: the first line, which names the run; a torn last line, which is cut off; what is proven.
Never: appends an entry that the chain hash contradicts.
Next: `entries.py` for a line, `history.py` for entries from an RPC node, `merge.py` for several.

A close proves what stands before it, and not what its own transaction says after it.
`cut_to_proven` drops the entries from the newest close on, when a later one contradicts them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from solders.pubkey import Pubkey

from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_types_rounds import RoundClosed
from troth_coordinator.ledger.entries import MAX_LINE_BYTES, Entry, EntryReader
from troth_coordinator.ledger.errors import LedgerFileError
from troth_coordinator.ledger.fold import Fold

LEDGER_FILE: Final = "ledger.jsonl"
"""The name of a ledger in the folder of a participant or of an archive, and in a store."""
ASIDE: Final = ".before-repair"
VERSION: Final = 1
_CREATED, _CLOSED = b'["RunCreated",', b'["RunClosed",'
"""How an event begins in a line."""
_ANOTHER = "Name another file; nothing was changed."
_FROM_ANOTHER = "Read the run's transactions from another RPC node."

_Hex32 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Key = Annotated[str, Field(max_length=44)]


class _HeadLine(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    troth_ledger: Literal[1]
    program: _Key
    run: _Key
    genesis_hash: _Hex32


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """The run of a ledger: program and run in base58, genesis hash of the network in hex."""

    program: str
    run: str
    genesis_hash: str

    def to_line(self) -> bytes:
        """Return the first line of a ledger."""
        found = {"troth_ledger": VERSION, **asdict(self)}
        return json.dumps(found, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes, where: str) -> Self:
        """Inverse of `to_line`. Raises LedgerFileError."""
        try:
            found = _HeadLine.model_validate_json(line)
            program, run = (str(Pubkey.from_string(key)) for key in (found.program, found.run))
        except (ValidationError, ValueError, RecursionError) as error:
            expected = f"a ledger of version {VERSION} of troth"
            told = f"{line[:60]!r}"
            raise LedgerFileError(where, expected, told, _ANOTHER) from error
        return cls(program, run, found.genesis_hash)

    def reader(self) -> EntryReader:
        """Return the reader of its entries."""
        program = Pubkey.from_string(self.program)
        return EntryReader(program_codec(program), Pubkey.from_string(self.run))


@dataclass(frozen=True, slots=True)
class _Life:
    """Where the newest life of a run begins: after so many lines. `is_later`: not its first."""

    num_lines: int
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger to read: its head, and its entries as a stream that begins anew each time.

    They are those of the run's newest life.
    """

    path: Path
    head: LedgerHead

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the ledger in a file. Raises LedgerFileError, OSError."""
        with _opened(path) as stream:
            return cls(path, LedgerHead.of_line(stream.readline(MAX_LINE_BYTES), str(path)))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries; a torn last line is none. Raises LedgerFileError, OSError."""
        with _opened(self.path) as stream:
            life = self._seek_newest_life(stream)
            found = _lines(stream, str(self.path), life.num_lines)
            yield from self._begun(life, (entry for _, entry in found))

    def sound_entries(self) -> Iterator[Entry]:
        """Yield the entries that can be read, passing over damaged lines. Raises OSError."""
        with _opened(self.path) as stream:
            life = self._seek_newest_life(stream)
            yield from self._begun(life, self._sound(stream))

    def signatures(self) -> Iterator[str]:
        """Yield the signatures of all lives' entries that can be read. Raises OSError."""
        with _opened(self.path) as stream:
            stream.readline(MAX_LINE_BYTES)
            yield from (entry.signature for entry in self._sound(stream))

    def created_slot(self) -> int | None:
        """Return the slot of the newest creation; None where that is not here. Raises OSError."""
        first = next(self.sound_entries(), None)
        if first is None or self.head.reader().from_creation(first) is None:
            return None
        return first.slot

    def has_earlier_life(self) -> bool:
        """Tell whether the run was closed and created again. Raises OSError."""
        with _opened(self.path) as stream:
            return self._seek_newest_life(stream).is_later

    def _seek_newest_life(self, stream: IO[bytes]) -> _Life:
        """Go to the entry with the last creation after a close of the run, else to the first."""
        start = at = len(stream.readline(MAX_LINE_BYTES))
        found, is_closed, reader = _Life(1), False, self.head.reader()
        for number, line in enumerate(_chunks(stream), start=1):
            is_closed |= _CLOSED in line
            if is_closed and _CREATED in line and _creates(reader, line):
                start, found = at, _Life(number, is_later=True)
            at += len(line)
        stream.seek(start)
        return found

    def _begun(self, life: _Life, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Yield entries, the first one without what a transaction did before it created the run."""
        first = next(entries, None)
        if first is not None:
            reader = self.head.reader()
            yield (reader.from_creation(first) or first) if life.is_later else first
        yield from entries

    def _sound(self, stream: IO[bytes]) -> Iterator[Entry]:
        """Yield the entries that can be read."""
        reader = self.head.reader()
        for line in _chunks(stream):
            try:
                entry = Entry.of_line(line, str(self.path))
                reader.events(entry)
            except LedgerFileError:
                continue
            yield entry


@dataclass(frozen=True, slots=True)
class _Point:
    """A place in a ledger: its bytes, their fold, and the newest two entries, oldest first."""

    end: int = 0
    fold: Fold = field(default_factory=Fold)
    newest: tuple[Entry, ...] = ()


class LedgerFile:
    """A ledger to append to, by one process at a time. Use `with`, or `close` it.

    `fold` is that of all its entries, `newest` the last two, oldest first.
    """

    def __init__(self, path: Path, head: LedgerHead) -> None:
        """Open or begin the ledger of a run.

        Raises LedgerFileError for another run's or for damaged lines, LedgerOrderError and
        LedgerHashError for entries that do not fold, OSError.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.head, self.fold = path, head, Fold()
        self.newest: tuple[Entry, ...] = ()
        self._reader = head.reader()
        self._whole = 0
        self._proven = _Point()
        self._stream = locked(path, begins=True)
        try:
            self._take_up()
        except BaseException:
            self._stream.close()
            raise

    @property
    def last(self) -> str | None:
        """The signature of the last entry."""
        return self.newest[-1].signature if self.newest else None

    @property
    def num_bytes(self) -> int:
        """The length of the file."""
        return self._whole

    @property
    def proven_bytes(self) -> int:
        """The bytes before the newest close: `cut_to_proven` leaves them."""
        return self._proven.end

    def append(self, entries: Iterable[Entry]) -> int:
        """Add entries in their order; return how many. All that precede a wrong one stay.

        Raises LedgerFileError, LedgerOrderError, LedgerHashError, OSError on a full disk. Then the
        file holds whole entries only.
        """
        num_added = 0
        for entry in entries:
            before, proven = self.fold.copied(), self._proven
            line = entry.to_line()
            if len(line) > MAX_LINE_BYTES:
                found = f"{len(line)} bytes in {entry.signature}"
                expected = f"an entry of at most {MAX_LINE_BYTES} bytes"
                raise LedgerFileError(str(self.path), expected, found, _FROM_ANOTHER)
            self._fold(entry)
            try:
                self._write(line)
            except OSError:
                self.fold, self._proven = before, proven
                self._cut(self._whole)
                raise
            self._add(len(line), entry)
            num_added += 1
        if num_added:
            os.fsync(self._stream.fileno())
        return num_added

    def cut_to_proven(self) -> None:
        """Drop the entries from the newest close on: no later close has proven them."""
        self.fold, self.newest = self._proven.fold.copied(), self._proven.newest
        self._cut(self._proven.end)

    def take_over(self, other: Self) -> None:
        """Go on with another ledger of the run in the place of ours; the other is closed then."""
        other.path.replace(self.path)
        self._stream.close()
        self._stream, other._stream = other._stream, self._stream
        self.fold, self.newest = other.fold, other.newest
        self._whole, self._proven = other._whole, other._proven

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._stream.close()

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _take_up(self) -> None:
        """Fold what is there, cut off a torn line, or write the head of a new ledger."""
        with self.path.open("rb") as found:
            first = found.readline(MAX_LINE_BYTES)
            if first.endswith(b"\n"):
                self._check(LedgerHead.of_line(first, str(self.path)))
                self._whole = len(first)
                self._proven = _Point(self._whole)
                for size, entry in _lines(found, str(self.path)):
                    self._fold(entry)
                    self._add(size, entry)
                self._cut(self._whole)
                return
        if not self.head.to_line().startswith(first):
            self._check(LedgerHead.of_line(first, str(self.path)))
            found_line = f"{len(first)} bytes without the end of a line"
            raise LedgerFileError(str(self.path), "the first line", found_line, _ANOTHER)
        self._cut(0)
        self._write(self.head.to_line())
        self._whole = len(self.head.to_line())
        self._proven = _Point(self._whole)

    def _check(self, found: LedgerHead) -> None:
        if found != self.head:
            expected, told = f"the ledger of run {self.head.run}", f"one of {found.run}"
            if found.genesis_hash != self.head.genesis_hash:
                expected += f" on the network with the genesis hash {self.head.genesis_hash}"
                told += f" on {found.genesis_hash}"
            raise LedgerFileError(str(self.path), expected, told, _ANOTHER)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._stream.write(left) :]

    def _fold(self, entry: Entry) -> None:
        events = self._reader.events(entry)
        before = self.fold.copied()
        self.fold.absorb(events)
        if any(isinstance(event, RoundClosed) for event in events):
            self._proven = _Point(self._whole, before, self.newest)

    def _add(self, num_bytes: int, entry: Entry) -> None:
        """Take note of an entry that is in the file now."""
        self._whole += num_bytes
        self.newest = (*self.newest[-1:], entry)

    def _cut(self, end: int) -> None:
        self._stream.truncate(end)
        self._whole = end


def keep_aside(path: Path) -> None:
    """Give a file a second name that nothing has so far. Raises OSError."""
    names = (f"{path.name}{ASIDE}{number}" for number in ("", *range(2, 1_000)))
    aside = next(one for one in map(path.with_name, names) if not os.path.lexists(one))
    try:
        os.link(path, aside)
    except OSError:  # a file system without second names
        path.replace(aside)


def locked(path: Path, *, begins: bool = False) -> IO[bytes]:
    """Open a ledger to append to, which no other process may do until it is closed.

    `begins`: it may be new. Raises LedgerFileError, OSError.
    """
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if begins else 0)
    stream = open(_regular(path, flags), "ab", buffering=0)  # noqa: SIM115  no bytes wait
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        stream.close()
        found = "another process that writes it"
        raise LedgerFileError(str(path), "a ledger for us alone", found, _ANOTHER) from error
    return stream


def _opened(path: Path) -> IO[bytes]:
    return open(_regular(path, os.O_RDONLY), "rb")


def _regular(path: Path, flags: int) -> int:
    """Return the handle of a file. A FIFO makes nobody wait. Raises LedgerFileError, OSError."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise LedgerFileError(str(path), "a file", "something else", _ANOTHER)
    return handle


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; one that is too long comes in parts, which are no entries."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line


def _creates(reader: EntryReader, line: bytes) -> bool:
    """Tell whether a line has the creation of the reader's run."""
    with contextlib.suppress(LedgerFileError):
        return reader.from_creation(Entry.of_line(line, "a ledger")) is not None
    return False


def _lines(stream: IO[bytes], where: str, number: int = 1) -> Iterator[tuple[int, Entry]]:
    """Yield each whole line's length and entry, after so many lines; the last one may be torn."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if not line.endswith(b"\n"):
            if len(line) <= MAX_LINE_BYTES:
                return
            found = f"more than {MAX_LINE_BYTES} bytes"
            raise LedgerFileError(f"{where}, line {number}", "an entry", found, _ANOTHER)
        yield len(line), Entry.of_line(line, f"{where}, line {number}")
