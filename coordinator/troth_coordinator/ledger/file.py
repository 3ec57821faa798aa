"""A ledger as a file of lines: append only, whole after a crash, read without holding it.

Owns: the first line, which names the run; a torn last line, which is cut off; what is proven.
Never: appends an entry that the chain hash contradicts.
Next: `entries.py` for a line, `history.py` for entries from an RPC node, `merge.py` for several.

A close proves what stands before it, and not what its own transaction says after it.
`cut_to_proven` drops the entries from the newest close on, when a later one contradicts them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from solders.pubkey import Pubkey

from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_types_rounds import RoundClosed
from troth_coordinator.ledger.entries import MAX_LINE_BYTES, Entry, EntryReader
from troth_coordinator.ledger.errors import LedgerFileError
from troth_coordinator.ledger.fold import Fold

VERSION: Final = 1
_ANOTHER = "Name another file; nothing was changed."

_Hex32 = Annotated[str, Field(pattern="[0-9a-f]{64}")]
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
class Ledger:
    """A ledger to read: its head, and its entries as a stream that begins anew each time."""

    path: Path
    head: LedgerHead

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return the ledger in a file. Raises LedgerFileError, OSError."""
        with path.open("rb") as stream:
            return cls(path, LedgerHead.of_line(stream.readline(MAX_LINE_BYTES), str(path)))

    def entries(self) -> Iterator[Entry]:
        """Yield the entries; a torn last line is none. Raises LedgerFileError, OSError."""
        with self.path.open("rb") as stream:
            stream.readline(MAX_LINE_BYTES)
            yield from (entry for _, entry in _lines(stream, str(self.path)))

    def sound_entries(self) -> Iterator[Entry]:
        """Yield the entries that can be read, passing over damaged lines. Raises OSError."""
        reader = self.head.reader()
        with self.path.open("rb") as stream:
            stream.readline(MAX_LINE_BYTES)
            for line in _chunks(stream):
                try:
                    entry = Entry.of_line(line, str(self.path))
                    reader.events(entry)
                except LedgerFileError:
                    continue
                yield entry


class LedgerFile:
    """A ledger to append to, by one process at a time. Use `with`, or `close` it.

    `fold` is that of all its entries, `last` the signature of the last one.
    """

    def __init__(self, path: Path, head: LedgerHead) -> None:
        """Open or begin the ledger of a run.

        Raises LedgerFileError for another run's or for damaged lines, LedgerOrderError and
        LedgerHashError for entries that do not fold, OSError.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.head, self.fold = path, head, Fold()
        self.last: str | None = None
        self._reader = head.reader()
        self._whole = 0
        self._proven: tuple[int, Fold, str | None] = (0, Fold(), None)
        self._stream = path.open("ab", buffering=0)  # no bytes wait for a later write
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_up()
        except BlockingIOError as error:
            self._stream.close()
            found = "another process that writes it"
            raise LedgerFileError(str(path), "a ledger for us alone", found, _ANOTHER) from error
        except BaseException:
            self._stream.close()
            raise

    def append(self, entries: Iterable[Entry]) -> int:
        """Add entries in their order; return how many. All that precede a wrong one stay.

        Raises LedgerFileError, LedgerOrderError, LedgerHashError, OSError on a full disk. Then the
        file holds whole entries only.
        """
        num_added = 0
        for entry in entries:
            before, proven = self.fold.copied(), self._proven
            line = entry.to_line()
            self._fold(entry)
            try:
                self._write(line)
            except OSError:
                self.fold, self._proven = before, proven
                self._cut(self._whole)
                raise
            self._whole += len(line)
            self.last = entry.signature
            num_added += 1
        if num_added:
            os.fsync(self._stream.fileno())
        return num_added

    def cut_to_proven(self) -> None:
        """Drop the entries from the newest close on: no later close has proven them."""
        end, fold, last = self._proven
        self.fold, self.last = fold.copied(), last
        self._cut(end)

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
                self._proven = (self._whole, Fold(), None)
                for size, entry in _lines(found, str(self.path)):
                    self._fold(entry)
                    self._whole += size
                    self.last = entry.signature
                self._cut(self._whole)
                return
        if not self.head.to_line().startswith(first):
            LedgerHead.of_line(first, str(self.path))
        self._cut(0)
        self._write(self.head.to_line())
        self._whole = len(self.head.to_line())
        self._proven = (self._whole, Fold(), None)

    def _check(self, found: LedgerHead) -> None:
        if found != self.head:
            expected = f"the ledger of run {self.head.run}"
            raise LedgerFileError(str(self.path), expected, f"one of {found.run}", _ANOTHER)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._stream.write(left) :]

    def _fold(self, entry: Entry) -> None:
        events = self._reader.events(entry)
        before = self.fold.copied()
        self.fold.absorb(events)
        if any(isinstance(event, RoundClosed) for event in events):
            self._proven = (self._whole, before, self.last)

    def _cut(self, end: int) -> None:
        self._stream.truncate(end)
        self._whole = end


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; one that is too long comes in parts, which are no entries."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        yield line


def _lines(stream: IO[bytes], where: str) -> Iterator[tuple[int, Entry]]:
    """Yield each whole line's length and entry; the last one may be torn."""
    number = 1
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if not line.endswith(b"\n"):
            if len(line) <= MAX_LINE_BYTES:
                return
            found = f"more than {MAX_LINE_BYTES} bytes"
            raise LedgerFileError(f"{where}, line {number}", "an entry", found, _ANOTHER)
        yield len(line), Entry.of_line(line, f"{where}, line {number}")
