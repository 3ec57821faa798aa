"""The draws of an audit, all from the seed: targets, seats, jurors, tiles (protocol section 7).

Owns: the scores x(tag, ...), the sample with its cap, seats, juries, opened tiles.
Never: rounds: every comparison is one of exact integers, so that the program gives the same answer.
Next: `openings.py` for what a sampled trainer shows, `quorum.py` for what the seats decide.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.hashing import H, b32, u8, u16, u64
from troth_coordinator.rules.ids import Bitmap, Digest, ParticipantIndex

PPM: Final = 10**6
SCORES: Final = 2**64
"""Scores lie in 0 .. SCORES - 1."""

MAX_SEATS: Final = 5
"""Seats after the extension."""
JURY_SEATS: Final = 7
KEEP_WITHOUT_SEATS: Final = 5
"""The first seats sit out a jury where at least so many others remain."""
STRATA: Final = 32
"""Draws of opened tiles, one per stratum."""

Indices = tuple[ParticipantIndex, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """How much of a round is sampled: `p_base` and `p_new` in ppm, at most `cap` targets.

    `is_doubled` holds in the round after one whose seed was lost: probabilities double (at most
    1), the cap stays.
    """

    p_base_ppm: int
    p_new_ppm: int
    cap: int
    is_doubled: bool = False

    def ppm(self, is_new: bool) -> int:
        """Return the probability for one participant in ppm."""
        rate = self.p_new_ppm if is_new else self.p_base_ppm
        return min(PPM, 2 * rate) if self.is_doubled else rate


def score(tag: str, seed: bytes, *fields: bytes) -> int:
    """Return x(tag, ...): the first 8 bytes, little-endian, of H(tag, seed, fields)."""
    return int.from_bytes(H(tag, b32(seed, "seed"), *fields)[:8], "little")


def is_sampled(x: int, p_ppm: int) -> bool:
    """Tell whether x * 10^6 < p * 2^64, so that p = 10^6 samples always and 0 never."""
    return x * PPM < p_ppm * SCORES


def sampled_targets(sigma: bytes, included: int, is_new: int, rates: Rates) -> Indices:
    """Return the sampled targets among the included ones, ascending, at most `rates.cap`.

    `is_new` is the bitmap of participants sampled with p_new. Over the cap those with the smallest
    x_i / p_i stay, equal ones by lower index.
    """
    ranked = []
    for target in bitmaps.indices_of(included):
        p_ppm = rates.ppm(bitmaps.has(is_new, target))
        x = score("troth:sample", sigma, u16(target))
        if is_sampled(x, p_ppm):
            ranked.append((Fraction(x, p_ppm), target))
    kept = sorted(ranked)[: rates.cap]
    return tuple(sorted(target for _, target in kept))


def seats_of(sigma: bytes, target: int, eligible: int) -> Indices:
    """Return the seats of a target in order: three, then up to two for the extension.

    `eligible` is the bitmap of the round's eligible witnesses; the target never judges itself.
    Empty where fewer than three are eligible: then there is no audit.
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

    Target and kind are in it, so that two cases that take the same slot draw different people.
    """
    fields = (b32(slot_hash, "slot hash"), b32(run, "run"), u64(round_), u16(target), u8(kind))
    return H("troth:case", *fields)


def jury(seed: bytes, eligible: int, barred: Iterable[int], seats: Iterable[int]) -> Indices:
    """Return the jury in order, at most seven; empty with fewer than three eligible.

    `eligible` are the witnesses eligible at the open of the round and still active, `barred` the
    accused and the challenger, `seats` the first seats: they sit out where five others remain.
    """
    pool = eligible & ~_bits(barred)
    without_seats = pool & ~_bits(seats)
    if bitmaps.count(without_seats) >= KEEP_WITHOUT_SEATS:
        pool = without_seats
    ordered = _ascending("troth:committee", seed, pool)
    return ordered[:JURY_SEATS] if len(ordered) >= FIRST_SEATS else ()


def tile_draws(sigma: bytes, target: int, num_tiles: int) -> tuple[int, ...]:
    """Return the 32 opened tiles: floor((j + x_j / 2^64) * tiles / 32) with x("troth:tile", i, j).

    Ascending; neighbouring strata may draw the same tile, which then counts twice. Raises
    RangeError without tiles.
    """
    if num_tiles < 1:
        raise RangeError("num_tiles", "at least 1", num_tiles, "pass the model's tile count")
    return tuple(
        (j * SCORES + score("troth:tile", sigma, u16(target), u8(j)))
        * num_tiles
        // (STRATA * SCORES)
        for j in range(STRATA)
    )


def _ascending(tag: str, seed: bytes, members: int, *fields: bytes) -> Indices:
    ranked = [(score(tag, seed, *fields, u16(j)), j) for j in bitmaps.indices_of(members)]
    return tuple(j for _, j in sorted(ranked))


def _bits(indices: Iterable[int]) -> Bitmap:
    return bitmaps.from_indices(indices)
