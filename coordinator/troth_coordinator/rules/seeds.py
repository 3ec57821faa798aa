"""Seeds of audits (protocol section 1): a future slot's hash that nobody can choose.

Owns: the seed sigma, the slot that is wanted, and which entry of the `SlotHashes` sysvar fixes it.
Never: samples anything with the seed; that comes with the audits.
Next: `chain_hash.py`, which absorbs the slot and hash that were taken.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from troth_coordinator.rules.hashing import H, b32, u64
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest, Slot
from troth_coordinator.rules.params_view import ParamsView

HEADER_BYTES = 8
ENTRY_BYTES = 40
LEADER_SLOTS: Final = 4
"""Slots in a row that one leader has."""
SLOT_HASHES_LISTED: Final = 512
"""Slots that the chain remembers the hash of; a seed can be frozen no later."""


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


def grid(delay: int, part: int) -> int:
    """Return the slots from one that may be wanted to the next.

    `part` is that of the window in which somebody could choose the moment that names the slot:
    fewer slots would be more leaders to choose from. There is no grid where `delay` does not even
    pass the leader of that moment.
    """
    return 1 if delay < LEADER_SLOTS else min(max(1, part), SLOT_HASHES_LISTED)


def wanted_slot(slot: int, delay: int, step: int) -> Slot:
    """Return the first slot of the grid that is at least `delay` after `slot`."""
    return Slot(-(-(slot + delay) // step) * step)


def round_grid(params: ParamsView) -> int:
    """Return the grid of rounds: who holds an attestation back chooses when Attest ends."""
    return grid(params.seed_delay_slots, params.attest_slots // 2)


def jury_grid(params: ParamsView) -> int:
    """Return the grid of juries: the last seat to reveal chooses when its audit ends."""
    return grid(params.seed_delay_slots, params.verdict_reveal_slots // 4)


def round_seed_slot(params: ParamsView, slot: int) -> Slot:
    """Return the slot whose hash seeds the audits of a round that closes in `slot`."""
    return wanted_slot(slot, params.seed_delay_slots, round_grid(params))


def jury_seed_slot(params: ParamsView, slot: int) -> Slot:
    """Return the slot whose hash seeds the jury of a case that begins in `slot`."""
    return wanted_slot(slot, params.seed_delay_slots, jury_grid(params))


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
