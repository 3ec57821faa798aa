"""Events as JSON lines: what a participant did, one object a line.

Owns: writing and reading event logs. Never: decides anything; no part of the protocol reads an
event back. The display (display.py) and the demo's summary read these lines only.
Next: `board.py`, which adds them up.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol, Self

from troth_client.runtime.files import Closable, explain_full_disk

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
"""The values that an event field may hold."""

Event = dict[str, JsonValue]
"""One event as it was read: `event` (its name), `time` if it has one, the fields."""


class EventSink(Protocol):
    """Anything that takes events."""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Record that something happened; `event` is a past-tense name such as `round_closed`."""


class EventLog(Closable):
    """Appends events to a file, flushed line by line, so that a reader can follow it live.

    `bound` fields (peer name, index) are added to every line. Times are Unix seconds from `now`.
    """

    def __init__(
        self,
        stream: IO[str],
        now: Callable[[], float] = time.time,
        **bound: JsonValue,
    ) -> None:
        self._stream = stream
        self._now = now
        self._bound = bound

    @classmethod
    def open(cls, path: Path, **bound: JsonValue) -> Self:
        """Open a log for appending; the parent folder is made when missing.

        A last line that a killed writer left unfinished is ended, so that it spoils no other.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a", encoding="utf-8")
        if not _ends_with_newline(path):
            stream.write("\n")
        return cls(stream, time.time, **bound)

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Write one line: time, event name, bound fields, fields. Raises DiskFullError."""
        record = {"time": round(self._now(), 3), "event": event, **self._bound, **fields}
        with explain_full_disk(Path(str(self._stream.name))):
            self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Close the file; what a full disk has no room for was reported by `emit`."""
        with contextlib.suppress(OSError):
            self._stream.close()


class EventList:
    """Keeps events in memory: for whole runs inside one process."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Append one event."""
        self.events.append({"event": event, **fields})

    def named(self, event: str) -> list[Event]:
        """All events of one name, oldest first."""
        return [record for record in self.events if record["event"] == event]


class EventTail:
    """Reads the complete new lines of a growing log; a half-written last line is read later.

    A line that is no event (its writer was killed in the middle of it) is passed over.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[Event]:
        """Yield the events that came since the last call; nothing while the file is missing."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                event = _parse(line)
                if event is not None:
                    yield event


def int_of(event: Event, key: str, default: int = 0) -> int:
    """Return a field that is a whole number, the default where it is anything else."""
    value = event.get(key)
    return value if isinstance(value, int) else default


def float_of(event: Event, key: str) -> float:
    """Return a field that is a number, zero where it is anything else."""
    value = event.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _parse(line: bytes) -> Event | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_event = isinstance(record, dict) and isinstance(record.get("event"), str)
    return record if is_event else None


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            return True
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
