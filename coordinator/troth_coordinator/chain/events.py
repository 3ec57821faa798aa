"""Transactions to typed events.

Owns: finding the calls by which our program shows its events, cutting them up, decoding them.
Also finds our program's data lines in a log, and notices a cut log.
Never: interprets an event.
Next: event_types.py for the records, generated from the program's IDL.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, ProgramCodec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.rpc import InnerCall, TransactionRecord

__all__ = ["Event", "EventLog", "EventReader", "ParsedEvents", "ParsedLog"]

EVENT_TAG = (0x1D9A_CB51_2EA5_45E4).to_bytes(8, "little")
"""First bytes of an event call; Anchor fixes them."""
_LENGTH_BYTES = 2

_INVOKE = re.compile(r"^Program (\w+) invoke \[(\d+)\]$")
_END = re.compile(r"^Program (\w+) (?:success|failed)")
_DATA = "Program data: "
_TRUNCATED = "Log truncated"


@dataclass(frozen=True, slots=True)
class ParsedEvents:
    """The events of a transaction in order; is_complete is False where they could not be read."""

    events: tuple[Event, ...]
    is_complete: bool


class EventReader:
    """Reads the events of landed transactions from the calls that the program sends itself.

    Only our program can make such a call: its event authority signs it. So nobody can forge one,
    and no amount of log lines hides one.
    """

    def __init__(self, codec: ProgramCodec) -> None:
        self._codec = codec
        self._program = codec.program_id
        self._authority = event_authority_address(codec.program_id)

    def read(self, record: TransactionRecord) -> ParsedEvents:
        """Return our events, those of a failed transaction never.

        An unknown event is skipped: newer programs may say more. Raises ArtifactError when the
        bytes of a call cannot be cut into events, or those of a known event cannot be read.
        """
        if record.failure is not None:
            return ParsedEvents((), is_complete=True)
        if record.inner_calls is None:
            return ParsedEvents((), is_complete=False)
        slices = [
            data
            for call in record.inner_calls
            if self._shows_events(call)
            for data in _cut(call.data[len(EVENT_TAG) :])
        ]
        found = [event for data in slices if (event := _typed(self._codec, data)) is not None]
        return ParsedEvents(tuple(found), is_complete=True)

    def _shows_events(self, call: InnerCall) -> bool:
        return (
            call.program == self._program
            and call.accounts == (self._authority,)
            and call.data.startswith(EVENT_TAG)
        )


def _cut(data: bytes) -> Iterable[bytes]:
    """Yield the events of a call: each a length of two bytes, then discriminator and body."""
    at = 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data):
            raise ArtifactError(
                "event call of the program",
                f"{at} bytes by the length of an event",
                f"{len(data)} bytes",
                "the program and this package may differ in version: reinstall troth",
            )
        yield data[start:at]


def _typed(codec: ProgramCodec, data: bytes) -> Event | None:
    decoded = codec.decode_event(data)
    if decoded is None:
        return None
    from troth_coordinator.chain.event_types import EVENT_TYPES  # noqa: PLC0415  (0.05 s)

    name, fields = decoded
    record = EVENT_TYPES.get(name)
    return None if record is None else record.build(fields, data[DISCRIMINATOR_BYTES:])


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
        found = [_typed(self._codec, data) for data in self._data_lines(logs)]
        events = [event for event in found if event is not None]
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


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
