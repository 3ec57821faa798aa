"""Transactions to typed events.

Owns: finding the calls by which our program shows its events, cutting them up, decoding them.
Never: interprets an event, or reads a log: anybody can fill one until lines of ours are cut off.
Next: event_types.py for the records, generated from the program's IDL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, ProgramCodec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.rpc import InnerCall, TransactionRecord

__all__ = ["CREATION", "EVENT_TAG", "Event", "EventReader", "ParsedEvents", "creation_in"]

EVENT_TAG = (0x1D9A_CB51_2EA5_45E4).to_bytes(8, "little")
"""First bytes of an event call; Anchor fixes them."""
CREATION = "RunCreated"
"""The first event of a run. A closed run may be created again, with the same address."""
_LENGTH_BYTES = 2


@dataclass(frozen=True, slots=True)
class ParsedEvents:
    """The events of a transaction in order; is_complete is False where they could not be read."""

    events: tuple[Event, ...]
    is_complete: bool


def creation_in(events: Sequence[Event]) -> int | None:
    """Return the place of a run's newest creation among its events; None without one."""
    places = (at for at, event in enumerate(events) if event.name == CREATION)
    return max(places, default=None)


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
            piece
            for call in record.inner_calls
            if call.program == self._program and call.accounts == (self._authority,)
            for piece in _cut(_data(call))
        ]
        found = [event for data in slices if (event := _typed(self._codec, data)) is not None]
        return ParsedEvents(tuple(found), is_complete=True)


def _data(call: InnerCall) -> bytes:
    """Return the bytes of a call of ours, which a node may have written in its own way."""
    try:
        return call.data
    except ValueError as error:
        raise ArtifactError(
            "event call of the program",
            "base58 of the length that the program allows",
            str(error),
            "the program and this package may differ in version: reinstall troth",
        ) from error


def _cut(data: bytes) -> Iterable[bytes]:
    """Yield the events of a call: each a length of two bytes, then discriminator and body."""
    at = len(EVENT_TAG) if data.startswith(EVENT_TAG) else len(data)
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
