"""Forged histories of a run. Owns: entries that fold though they are false. Never: a chain.

Next: `troth_coordinator/ledger/fold.py`, which takes them until the chain's own close.
"""

from collections.abc import Sequence
from dataclasses import replace

from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerHashError
from troth_coordinator.ledger.file import LedgerHead
from troth_coordinator.ledger.fold import Fold


def place_of(entries: Sequence[Entry], name: str, number: int = 0) -> int:
    """The place of an entry with an event of this name."""
    return [at for at, one in enumerate(entries) if name in dict(one.events)][number]


def flipped(entries: Sequence[Entry], at: int) -> list[Entry]:
    """The entries with one bit turned in the first event of one of them."""
    name, body = entries[at].events[0]
    events = ((name, body[:-1] + bytes([body[-1] ^ 1])), *entries[at].events[1:])
    return [*entries[:at], replace(entries[at], events=events), *entries[at + 1 :]]


def with_a_close_of_its_own(head: LedgerHead, entries: Sequence[Entry]) -> list[Entry]:
    """A history with a false commit in its first round, whose close shows the hash of that."""
    forged = flipped(entries, place_of(entries, "PayloadCommitted"))
    reader, fold = head.reader(), Fold()
    at = place_of(forged, "RoundClosed")
    for entry in forged[:at]:
        fold.absorb(reader.events(entry))
    events = reader.events(forged[at])
    close = next(one for one in events if one.name == "RoundClosed")
    fold.absorb(events[: events.index(close)])
    shown = _hash_before(fold, close)
    body = close.body.replace(close.chain_hash, shown)  # type: ignore[attr-defined]
    changed = tuple((one.name, body if one is close else one.body) for one in events)
    return [*forged[:at], replace(forged[at], events=changed), *forged[at + 1 :]]


def _hash_before(fold: Fold, close: object) -> bytes:
    try:
        fold.absorb([close])  # type: ignore[list-item]
    except LedgerHashError as error:
        return bytes.fromhex(str(error.found).split()[0])
    raise AssertionError("this close fits")
