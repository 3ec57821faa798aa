"""Events as JSON lines: what a participant did, one object a line.

Owns: the shape of an event, and those who take events. Never: decides anything; no part of the
protocol reads an event back. The display (display.py) and the demo's summary read these lines only.
Next: `event_log.py` for the file; `board.py`, which adds events up.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
"""The values that an event field may hold."""

Event = dict[str, JsonValue]
"""One event as it was read: `event` (its name), `time` if it has one, the fields."""


class EventSink(Protocol):
    """Anything that takes events."""

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Record that something happened; `event` is a past-tense name such as `round_closed`."""


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


class EventSinks:
    """Hands each event to several sinks, in their order."""

    def __init__(self, *sinks: EventSink) -> None:
        self._sinks = sinks

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        """Record one event everywhere."""
        for sink in self._sinks:
            sink.emit(event, **fields)


def int_of(event: Event, key: str, default: int = 0) -> int:
    """Return a field that is a whole number, the default where it is anything else."""
    value = event.get(key)
    return value if isinstance(value, int) else default


def float_of(event: Event, key: str) -> float:
    """Return a field that is a number, zero where it is anything else or too large."""
    value = event.get(key)
    try:
        return float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:
        return 0.0
