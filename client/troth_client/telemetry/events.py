"""Events as JSON lines: what a participant did, one object a line.

Owns the writing and the reading of event logs. Never decides anything: no part of the protocol
reads an event back. The display (display.py) and the demo's summary are fed by these lines only.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Protocol

JsonValue = str | int | float | bool | None | list["JsonValue"] | Mapping[str, "JsonValue"]
"""What an event field may hold."""


class EventSink(Protocol):
    """Anything that takes events."""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Record that something happened; `event` is a past-tense name such as `round_closed`."""


class EventLog:
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
    def open(cls, path: Path, **bound: JsonValue) -> "EventLog":
        """Open a log for appending; the parent folder is made when missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path.open("a", encoding="utf-8"), time.time, **bound)

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Write one line: time, event name, bound fields, fields."""
        record = {"time": round(self._now(), 3), "event": event, **self._bound, **fields}
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class EventList:
    """Keeps events in memory: for whole runs inside one process."""

    def __init__(self) -> None:
        self.events: list[dict[str, JsonValue]] = []

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Append one event."""
        self.events.append({"event": event, **fields})

    def named(self, event: str) -> list[dict[str, JsonValue]]:
        """All events of one name, oldest first."""
        return [record for record in self.events if record["event"] == event]


class EventTail:
    """Reads the complete new lines of a growing log; a half-written last line waits its turn."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[dict[str, JsonValue]]:
        """Yield the events that came since the last call; nothing while the file is missing."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield json.loads(line)
