"""Items: what an archive wants to hold, each under its address.

Owns: the record of one. Never: fetches or stores it.
Next: `book.py`, which finds them in a ledger; `sizes.py` for how long they are.
"""

from dataclasses import dataclass
from typing import Final

from troth_client.transport.base import BlobId, BlobKind

FORGETTABLE: Final = frozenset({BlobKind.PAYLOAD, BlobKind.OPENINGS})
"""Kinds that give way when an archive is full; all others are small, or hold the rest together."""
_KINDS: Final = tuple(BlobKind)


@dataclass(frozen=True, slots=True)
class Item:
    """Bytes that the ledger names. `participant` is None for what is the run's own."""

    kind: BlobKind
    key: bytes
    round: int = 0
    participant: int | None = None

    @property
    def name(self) -> BlobId:
        """Return its name on every wire."""
        return BlobId(self.round, self.kind, self.key)

    @property
    def short(self) -> bytes:
        """Return it in 33 bytes, for sets that grow with the run."""
        return short(self.kind, self.key)

    @property
    def address(self) -> str:
        """Return where it lies: kind/hex."""
        return self.name.address

    def to_json(self, why: str) -> dict[str, object]:
        """Return it as a line of the list of what is missing."""
        return {
            "round": self.round,
            "participant": self.participant,
            "kind": str(self.kind),
            "key": self.key.hex(),
            "why": why,
        }


def short(kind: str, key: bytes) -> bytes:
    """Return kind and key in 33 bytes."""
    return bytes([_KINDS.index(BlobKind(kind))]) + key


def name_of(found: bytes) -> BlobId:
    """Inverse of `short`."""
    return BlobId(0, _KINDS[found[0]], found[1:])
