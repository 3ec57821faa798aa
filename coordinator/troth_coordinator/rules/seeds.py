"""Seeds of audits (protocol section 1): a future slot's hash that nobody can choose.

Owns: the seed sigma, and which entry of the `SlotHashes` sysvar fixes it.
Never: samples anything with the seed; that comes with the audits.
Next: `chain_hash.py`, which absorbs the slot and hash that were taken.
"""

from dataclasses import dataclass
from enum import Enum

from troth_coordinator.rules.hashing import H, b32, u64
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest, Slot

HEADER_BYTES = 8
ENTRY_BYTES = 40


ZERO_SLOT = Slot(0)


class Lookup(Enum):
    """The answer of the list of slot hashes about a wanted slot."""

    FOUND = "found"
    TOO_EARLY = "too_early"
    LOST = "lost"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class SlotHash:
    """The first listed slot at or after the wanted one and its hash; zeros unless FOUND."""

    lookup: Lookup
    slot: Slot = ZERO_SLOT
    hash: Digest = ZERO_DIGEST


def sigma(slot_hash: bytes, run: bytes, round_: int) -> Digest:
    """Return H("troth:sigma", slot hash, run, round): the seed of the audits of a round."""
    return H("troth:sigma", b32(slot_hash, "slot hash"), b32(run, "run"), u64(round_))


def first_at_or_after(sysvar: bytes, wanted: int) -> SlotHash:
    """Look up the first slot >= wanted in the raw bytes of the sysvar, newest entry first.

    It is found only while the next older entry is below `wanted`, which proves that nothing lies
    between: the result depends neither on the caller nor on the moment.
    """
    count = int.from_bytes(sysvar[:HEADER_BYTES], "little")
    if len(sysvar) < HEADER_BYTES + count * ENTRY_BYTES or len(sysvar) < HEADER_BYTES:
        return SlotHash(Lookup.MALFORMED)
    later = None
    for at in range(count):
        start = HEADER_BYTES + at * ENTRY_BYTES
        slot = int.from_bytes(sysvar[start : start + 8], "little")
        if slot < wanted:
            return later or SlotHash(Lookup.TOO_EARLY)
        found = Digest(bytes(sysvar[start + 8 : start + ENTRY_BYTES]))
        later = SlotHash(Lookup.FOUND, Slot(slot), found)
    return SlotHash(Lookup.LOST if later else Lookup.TOO_EARLY)
