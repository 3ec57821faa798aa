"""Forged archives and ledgers: what a liar may hand to an auditor.

Owns: changes of one thing each, and ledgers whose own hashes fit again after a change.
Never: says what an auditor must find. Next: recordings.py.
"""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path

from troth_coordinator.chain.event_base import Event
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerHashError
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.ledger.fold import Fold

Edit = Callable[[Event], bytes | None]
"""Returns another body for an event, or None to leave it."""


def blobs(folder: Path, kind: str) -> list[Path]:
    """The files of a kind in an archive, in order of their names."""
    return sorted((folder / kind).iterdir())


def flip(path: Path, at: int) -> None:
    """Change one bit of one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def lines(folder: Path) -> list[bytes]:
    """The lines of the ledger; the first is its head."""
    return (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(folder: Path, changed: list[bytes]) -> None:
    """Replace the ledger."""
    (folder / "ledger.jsonl").write_bytes(b"".join(changed))


def change_chain(folder: Path, change: Callable[[bytearray], None]) -> None:
    """Change the bytes of the Run account in an archive."""
    path = folder / "chain.json"
    found = json.loads(path.read_text())
    data = bytearray(base64.b64decode(found["data"]))
    change(data)
    path.write_text(json.dumps(found | {"data": base64.b64encode(data).decode()}))


def reforge(folder: Path, edit: Edit) -> None:
    """Change events of a ledger, and make the chain hashes at its closes fit again."""
    ledger = Ledger.of(folder / "ledger.jsonl")
    reader, fold, out = ledger.head.reader(), Fold(), [ledger.head.to_line()]
    for entry in list(ledger.entries()):
        bodies = [edit(event) or event.body for event in reader.events(entry)]
        made = _of(entry, bodies)
        while True:
            try:
                fold.absorb(reader.events(made))
                break
            except LedgerHashError as error:
                wrong = bytes.fromhex(error.expected.split()[3])
                right = bytes.fromhex(error.found.split()[0])
                bodies = [body.replace(wrong, right) for body in bodies]
                made = _of(entry, bodies)
        out.append(made.to_line())
    rewrite(folder, out)


def swapped(event: Event, old: bytes, new: bytes) -> bytes:
    """The body of an event with one value in place of another."""
    assert event.body.count(old) == 1, f"{old.hex()} is not once in {event.name}"
    return event.body.replace(old, new)


def _of(entry: Entry, bodies: list[bytes]) -> Entry:
    names = [name for name, _ in entry.events]
    return Entry(entry.slot, entry.signature, tuple(zip(names, bodies, strict=True)))


def with_sequence(folder: Path, line: bytes) -> bytes:
    """A line of one absorbed event again, with the number that would come next."""
    ledger = Ledger.of(folder / "ledger.jsonl")
    reader, fold = ledger.head.reader(), Fold()
    for entry in ledger.entries():
        fold.absorb(reader.events(entry))
    entry = Entry.of_line(line, "a line")
    (event,) = reader.events(entry)
    assert event.sequence is not None
    old, new = (struct.pack("<Q", number) for number in (event.sequence, fold.next_sequence))
    return _of(entry, [event.body.replace(old, new, 1)]).to_line()
