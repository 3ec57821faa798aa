"""The event log on disk: appended line by line, rotated, followed while it grows.

Owns: the file of one writer and the older files beside it. Never: interprets an event.
Next: `events.py` for the shape of an event; `duties.py` for the sums that outlive old files.

    events.jsonl           the newest events; its number is one more than the last older file's
    events.000007.jsonl    an older file, complete; the oldest ones are removed

Numbers only grow. So a reader that knows its file's number and place finds the next line, however
often the log was rotated meanwhile.
"""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from troth_client.errors import ClientError
from troth_client.runtime.files import OPEN_MODE, TEMPORARY_SUFFIX, Closable
from troth_client.telemetry.events import Event, JsonValue

EVENTS_FILE = "events.jsonl"
MAX_FILE_BYTES = 16 * 2**20
"""A round writes about 3 kB, so a file holds some five thousand rounds."""
NEWEST_BYTES = 1 << 20
"""How much of the end of a log is searched for its newest event."""
NUM_OLDER_FILES = 4
_DIGITS = 6
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is closed, how many older ones stay, and who sees one before it is removed."""

    max_file_bytes: int = MAX_FILE_BYTES
    num_older: int = NUM_OLDER_FILES
    removing: Callable[[int, Path], None] = lambda _number, _path: None


class EventLog(Closable):
    """Appends events to a file, written line by line, so that a reader can follow it live.

    `bound` fields (participant, index) are added to every line. Times are Unix seconds. A full disk
    costs events and nothing else: their number is the event `events_lost`, once there is room.
    Threads may emit beside each other.
    """

    def __init__(self, path: Path, rotation: Rotation, **bound: JsonValue) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._rotation = rotation
        self._bound = bound
        self._num_lost = 0
        self._turn = threading.RLock()
        self._handle: int | None = os.open(path, _FLAGS, OPEN_MODE)
        self._size = os.fstat(self._handle).st_size
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self._append(b"\n")

    @classmethod
    def open(cls, path: Path, rotation: Rotation | None = None, **bound: JsonValue) -> Self:
        """Open a log for appending; the parent folder is made when missing.

        A last line that a killed writer left unfinished is ended, so that it spoils no other.
        """
        return cls(path, rotation or Rotation(), **bound)

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Write one line: time, event name, bound fields, fields."""
        with self._turn:
            if self._num_lost and self._write("events_lost", {"count": self._num_lost}):
                self._num_lost = 0
            if self._num_lost or not self._write(event, fields):
                self._num_lost += 1

    def drop_older(self) -> None:
        """Remove the older files, as rotation would; what cannot be removed stays."""
        with self._turn:
            for number, path in older_files(self._path):
                with contextlib.suppress(OSError, ClientError):
                    self._remove(number, path)

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        with self._turn:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _write(self, event: str, fields: dict[str, JsonValue]) -> bool:
        record = {"time": round(time.time(), 3), "event": event, **self._bound, **fields}
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        if not self._append(line):
            return False
        if self._size >= self._rotation.max_file_bytes:
            # An older file that cannot be moved or removed now is left for the next time: the disk
            # may be full, or the process have no handle left.
            with contextlib.suppress(OSError, ClientError):
                self._rotate()
        return True

    def _append(self, line: bytes) -> bool:
        """Append bytes whole; False, leaving the file as it was, where there is no room."""
        if self._handle is None:
            raise ValueError("the event log is closed")
        try:
            num_written = os.write(self._handle, line)
        except OSError:
            num_written = 0
        if num_written == len(line):
            self._size += num_written
            return True
        os.ftruncate(self._handle, self._size)
        return False

    def _rotate(self) -> None:
        older = older_files(self._path)
        number = older[-1][0] + 1 if older else 1
        new = self._path.with_name(self._path.name + TEMPORARY_SUFFIX)
        # First: where it cannot be opened, the log goes on in the file that it has.
        handle = os.open(new, _FLAGS | os.O_TRUNC, OPEN_MODE)
        try:
            self._path.rename(_older(self._path, number))
            new.rename(self._path)
        except OSError:
            os.close(handle)
            raise
        self.close()
        self._handle, self._size = handle, 0
        surplus = len(older) + 1 - self._rotation.num_older
        for number, path in older[: max(0, surplus)]:
            self._remove(number, path)

    def _remove(self, number: int, path: Path) -> None:
        self._rotation.removing(number, path)
        path.unlink()


class EventTail:
    """Reads the complete new lines of a growing log; a half-written last line is read later.

    A line that is no event (its writer was killed in the middle of it) is passed over, and counted
    in `num_passed_over`. Older files are read first, from the one after `after` on, and rotation
    loses and repeats nothing.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self.num_passed_over = 0
        self._path = path
        self._number = after + 1
        self._offset = 0

    def read(self) -> Iterator[Event]:
        """Yield the events that came since the last call; nothing while the file is missing."""
        while True:
            older = dict(older_files(self._path))
            left = [number for number in older if number >= self._number]
            if not left:
                yield from self._lines(self._path)
                if not _older(self._path, self._number).exists():
                    return
                continue
            if left[0] > self._number:
                # Those between were removed, or are older than the first file that was rotated.
                self._number, self._offset = left[0], 0
            yield from self._lines(older[self._number])
            self._number, self._offset = self._number + 1, 0

    def _lines(self, path: Path) -> Iterator[Event]:
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            return
        with stream:
            if path == self._path and _older(path, self._number).exists():
                return  # rotated before it was opened: this is the next file already
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                event = _parse(line)
                if event is None:
                    self.num_passed_over += 1
                else:
                    yield event


def older_files(path: Path) -> list[tuple[int, Path]]:
    """Return the older files of a log with their numbers, oldest first."""
    name = re.compile(rf"{re.escape(path.stem)}\.(\d{{{_DIGITS},}}){re.escape(path.suffix)}")
    folder = path.parent
    found = [
        (name.fullmatch(one.name), one) for one in (folder.iterdir() if folder.is_dir() else ())
    ]
    return sorted((int(match[1]), one) for match, one in found if match)


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number:0{_DIGITS}d}{path.suffix}")


def _parse(line: bytes) -> Event | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_event = isinstance(record, dict) and isinstance(record.get("event"), str)
    return record if is_event else None


def newest_event(path: Path, name: str) -> Event | None:
    """Return the newest event of a name near the end of a log, None without a log or event."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - NEWEST_BYTES))
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return None
    needle = json.dumps(name).encode()
    for line in reversed(lines):
        event = _parse(line) if needle in line else None
        if event is not None and event["event"] == name:
            return event
    return None
