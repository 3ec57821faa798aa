"""Program logs to typed events.

Owns: finding our program's data lines among those of others, decoding them, noticing a cut log.
Never: interprets an event.
Next: event_types.py for the records, generated from the program's IDL.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, ProgramCodec
from troth_coordinator.chain.event_base import Event

__all__ = ["Event", "EventLog", "ParsedLog"]

_INVOKE = re.compile(r"^Program (\w+) invoke \[(\d+)\]$")
_END = re.compile(r"^Program (\w+) (?:success|failed)")
_DATA = "Program data: "
_TRUNCATED = "Log truncated"


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """The events of one transaction in order; is_complete is False where the log was cut."""

    events: tuple[Event, ...]
    is_complete: bool


class EventLog:
    """Reads the log lines of transactions."""

    def __init__(self, codec: ProgramCodec) -> None:
        self._codec = codec
        self._program = str(codec.program_id)

    def read(self, logs: Sequence[str]) -> ParsedLog:
        """Return our events. Lines logged while another program runs are not ours.

        A data line of ours that is no known event is skipped: newer programs may say more.
        Raises ArtifactError when a known event's bytes cannot be read.
        """
        events = [event for data in self._data_lines(logs) if (event := self._event(data))]
        return ParsedLog(tuple(events), all(line != _TRUNCATED for line in logs))

    def _data_lines(self, logs: Iterable[str]) -> Iterable[bytes]:
        running: list[str] = []
        for line in logs:
            invoked = _INVOKE.match(line)
            if invoked:
                # The depth in the line, not our count, survives a log that was cut in the middle.
                del running[int(invoked[2]) - 1 :]
                running.append(invoked[1])
            elif _END.match(line) and running:
                running.pop()
            elif line.startswith(_DATA) and running and running[-1] == self._program:
                data = _base64(line.removeprefix(_DATA))
                if data is not None:
                    yield data

    def _event(self, data: bytes) -> Event | None:
        decoded = self._codec.decode_event(data)
        if decoded is None:
            return None
        from troth_coordinator.chain.event_types import EVENT_TYPES  # noqa: PLC0415  (0.05 s)

        name, fields = decoded
        record = EVENT_TYPES.get(name)
        return None if record is None else record.build(fields, data[DISCRIMINATOR_BYTES:])


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
