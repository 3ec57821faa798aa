"""One entry of a ledger: a transaction that landed, with the events of our program in it.

Owns: the line of JSON that an entry becomes, and its checks.
Never: believes a line: the fold says whether the chain absorbed the events.
Next: `fold.py` for the proof, `file.py` for the lines of a whole run.

A line is `{"slot": 12, "signature": "5h…", "events": [["RoundClosed", "<base64>"], …]}`. The base64
is the borsh body of an event, as the chain hash takes it.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.codec import ProgramCodec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.events import CREATION, Event
from troth_coordinator.ledger.errors import LedgerFileError

MAX_LINE_BYTES: Final = 256 * 1024
"""No line is longer: the calls of one transaction hold a few times 4,096 bytes of events."""
_OTHER_FILE = "Get another copy of the ledger, or repair it: troth ledger repair."

_Text = Annotated[str, Field(max_length=MAX_LINE_BYTES)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    slot: Annotated[int, Field(ge=0, lt=2**64)]
    signature: _Text
    events: list[tuple[_Text, _Text]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A transaction of a run. `events` are names and bodies in order of execution."""

    slot: int
    signature: str
    events: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, slot: int, signature: Signature, events: Sequence[Event]) -> Self:
        """Return the entry of a transaction with these events."""
        return cls(slot, str(signature), tuple((one.name, one.body) for one in events))

    def to_line(self) -> bytes:
        """Return one line of JSON, with its end."""
        shown = [[name, base64.b64encode(body).decode()] for name, body in self.events]
        found = {"slot": self.slot, "signature": self.signature, "events": shown}
        return json.dumps(found, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes, where: str) -> Self:
        """Inverse of `to_line`; `where` names the line for a person. Raises LedgerFileError."""
        try:
            found = _Line.model_validate_json(line)
            Signature.from_string(found.signature)
            events = tuple(
                (name, base64.b64decode(body, validate=True)) for name, body in found.events
            )
        except (ValidationError, ValueError, RecursionError) as error:
            told = str(error).replace("\n", " ")[:120]
            raise LedgerFileError(where, "an entry of a ledger", told, _OTHER_FILE) from error
        return cls(found.slot, found.signature, events)


class EntryReader:
    """Decodes entries of one run of one program."""

    def __init__(self, codec: ProgramCodec, run: Pubkey) -> None:
        self._codec = codec
        self._run = run
        self._discriminators = {name: data for data, name in codec.event_names.items()}

    def events(self, entry: Entry) -> tuple[Event, ...]:
        """Return the events of our run in an entry.

        Raises LedgerFileError for an event that this version of the program does not know, or
        whose bytes it cannot read, and for one of another slot.
        """
        found = (self._event(entry, name, body) for name, body in entry.events)
        own = tuple(event for event in found if event.run == self._run)
        other = next((event.slot for event in own if event.slot != entry.slot), None)
        if other is not None:
            subject = f"slot of {entry.signature[:16]}…"
            raise LedgerFileError(subject, f"{other}, as in its event", entry.slot, _OTHER_FILE)
        return own

    def from_creation(self, entry: Entry) -> Entry | None:
        """Return an entry from the creation of our run in it on, without what is before.

        None for an entry without one, or with one that cannot be read: its other readers say so.
        """
        for at in reversed(range(len(entry.events))):
            name, body = entry.events[at]
            with contextlib.suppress(LedgerFileError):
                if name == CREATION and self._event(entry, name, body).run == self._run:
                    return replace(entry, events=entry.events[at:])
        return None

    def _event(self, entry: Entry, name: str, body: bytes) -> Event:
        from troth_coordinator.chain.event_types import EVENT_TYPES  # noqa: PLC0415  (0.05 s)

        subject = f"event {name[:40]!r} of {entry.signature[:16]}… in slot {entry.slot}"
        start, record = self._discriminators.get(name), EVENT_TYPES.get(name)
        if start is None or record is None:
            raise LedgerFileError(
                subject,
                "an event of this version of the program",
                "an unknown name",
                "Install the version of troth that plays this run, or get another copy.",
            )
        try:
            decoded = self._codec.decode_event(start + body)
            # The name is known, so its first bytes are.
            return record.build({} if decoded is None else decoded[1], body)
        except ArtifactError as error:
            raise LedgerFileError(subject, "its borsh fields", error.found, _OTHER_FILE) from error
