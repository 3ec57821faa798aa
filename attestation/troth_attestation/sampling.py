"""The draws of an audit, all from the seed: targets, seats, jurors, tiles (protocol section 7).

Owns: the scores x(tag, ...), the sample with its cap, seats, juries, opened tiles.
Never: rounds a number: all comparisons are of exact integers, so the program decides the same.
Next: `openings.py` for the opening set of a target, `panel.py` for the decision of the seats.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.audits import FIRST_SEATS, JURY_SEATS, MAX_SEATS
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.hashing import H, b32, u8, u16, u64
from troth_coordinator.rules.ids import Bitmap, Digest, ParticipantIndex

PPM: Final = 10**6
SCORES: Final = 2**64
"""Scores lie in 0 .. SCORES - 1."""

KEEP_WITHOUT_SEATS: Final = 5
"""The seats of the audit are not on the jury if at least this many others remain; else they fill it
up to this many."""
Indices = tuple[ParticipantIndex, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """The sampling rates of a round: `p_base` and `p_new` in ppm, at most `limit` targets.

    `is_doubled` holds in the round after one whose seed was lost: probabilities double (at most
    1), the limit stays.
    """

    p_base_ppm: int
    p_new_ppm: int
    limit: int
    is_doubled: bool = False

    def ppm(self, is_new: bool) -> int:
        """Return the probability for one participant in ppm."""
        rate = self.p_new_ppm if is_new else self.p_base_ppm
        return min(PPM, 2 * rate) if self.is_doubled else rate


@dataclass(frozen=True, slots=True)
class Payloads:
    """The payloads that a round draws from, as bitmaps.

    All that count, those of participants sampled with p_new, and those of participants on
    probation whose audit is due: they are drawn before all others.
    """

    included: int
    is_new: int = 0
    on_probation: int = 0


def limit(cap: int, seat_load: int, trainers: int, is_new: int, eligible: int) -> int:
    """Return the most audits of a round: `cap`, twice as many while most trainers are new.

    Never more than the `eligible` witnesses can judge, with three seats an audit and `seat_load`
    seats each, but one at least. The sets are bitmaps.
    """
    are_most_new = 2 * bitmaps.count(trainers & is_new) > bitmaps.count(trainers)
    return min(
        2 * cap if are_most_new else cap, max(1, bitmaps.count(eligible) * seat_load // FIRST_SEATS)
    )


def score(tag: str, seed: bytes, *fields: bytes) -> int:
    """Return x(tag, ...): the first 8 bytes, little-endian, of H(tag, seed, fields)."""
    return int.from_bytes(H(tag, b32(seed, "seed"), *fields)[:8], "little")


def is_sampled(x: int, p_ppm: int) -> bool:
    """Return whether x * 10^6 < p * 2^64: p = 10^6 samples always and 0 never."""
    return x * PPM < p_ppm * SCORES


def sampled_targets(sigma: bytes, payloads: Payloads, rates: Rates) -> Indices:
    """Return the targets among the included payloads, ascending, at most `rates.limit`.

    Payloads that are due on probation come first, by x_i. Of the others those that the rates sample
    follow, by x_i / p_i. Equal ones go by lower index.
    """
    ranked = []
    for target in bitmaps.indices_of(payloads.included):
        p_ppm = rates.ppm(bitmaps.has(payloads.is_new, target))
        x = score("troth:sample", sigma, u16(target))
        if bitmaps.has(payloads.on_probation, target):
            ranked.append((0, Fraction(x), target))
        elif is_sampled(x, p_ppm):
            ranked.append((1, Fraction(x, p_ppm), target))
    kept = sorted(ranked)[: rates.limit]
    return tuple(sorted(target for _, _, target in kept))


def seats_of(sigma: bytes, target: int, eligible: int) -> Indices:
    """Return the seats of a target in order: three, then up to two for each of two extensions.

    `eligible` is the bitmap of the round's eligible witnesses; the target never judges itself.
    Empty if fewer than three are eligible: then there is no audit.
    """
    others = eligible & ~(1 << bitmaps.checked_index(target))
    ordered = _ascending("troth:seat", sigma, others, u16(target))
    return ordered[:MAX_SEATS] if len(ordered) >= FIRST_SEATS else ()


def seat_number(sigma: bytes, target: int, witness: int, eligible: int) -> int | None:
    """Return the place of a witness among all seats of a target by counting smaller scores.

    The program checks a seat this way. None if the witness is not eligible or is the target.
    """
    others = eligible & ~(1 << bitmaps.checked_index(target))
    if not bitmaps.has(others, witness) or bitmaps.count(others) < FIRST_SEATS:
        return None
    own = (score("troth:seat", sigma, u16(target), u16(witness)), witness)
    return sum(
        (score("troth:seat", sigma, u16(target), u16(other)), other) < own
        for other in bitmaps.indices_of(others)
    )


def case_seed(slot_hash: bytes, run: bytes, round_: int, target: int, kind: int) -> Digest:
    """Return the seed of one jury: H("troth:case", slot hash, run, round, i, kind).

    It contains target and kind, so that two cases at the same slot draw different jurors.
    """
    fields = (b32(slot_hash, "slot hash"), b32(run, "run"), u64(round_), u16(target), u8(kind))
    return H("troth:case", *fields)


def jury(
    seed: bytes,
    eligible: int,
    barred: Iterable[int],
    seats: Iterable[int],
    accusers: Iterable[int],
) -> Indices:
    """Return the jury in order, at most seven; empty with fewer than three to choose from.

    `eligible` are the witnesses eligible at the open of the round who may judge, whatever their
    status is now. `barred` are the accused and the challenger. `seats` sat in the audit, `accusers`
    among them spoke against the target. The seats are left out. Where fewer than five others
    remain, seats by ascending score make it five, first those that did not accuse.
    """
    everybody = eligible & ~_bits(barred)
    sat, against = _bits(seats), _bits(accusers)
    pool = everybody & ~sat
    for group in (everybody & sat & ~against, everybody & sat & against):
        missing = max(0, KEEP_WITHOUT_SEATS - bitmaps.count(pool))
        pool |= _bits(_ascending("troth:committee", seed, group)[:missing])
    ordered = _ascending("troth:committee", seed, pool)
    return ordered[:JURY_SEATS] if len(ordered) >= FIRST_SEATS else ()


def drawn_tiles(sigma: bytes, target: int, num_tiles: int, count: int) -> tuple[int, ...]:
    """Return the opened tiles of a target, ascending: `count` of them, or all if there are fewer.

    They are perm(0) .. perm(count - 1) over all tiles under the key H("troth:tile", sigma, target):
    distinct, and no tile's chance depends on its place. Raises RangeError without tiles.
    """
    if num_tiles < 1:
        raise RangeError("num_tiles", "at least 1", num_tiles, "pass the model's tile count")
    order = SequenceOrder(num_tiles, H("troth:tile", b32(sigma, "seed"), u16(target)))
    return tuple(sorted(order.sequences(0, min(count, num_tiles))))


def _ascending(tag: str, seed: bytes, members: int, *fields: bytes) -> Indices:
    ranked = [(score(tag, seed, *fields, u16(j)), j) for j in bitmaps.indices_of(members)]
    return tuple(j for _, j in sorted(ranked))


def _bits(indices: Iterable[int]) -> Bitmap:
    return bitmaps.from_indices(indices)
