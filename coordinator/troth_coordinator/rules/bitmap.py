"""Sets of participant indices as 64-bit integers.

Owns: conversion, counting and ranks of bitmaps; bit i stands for participant index i.
Never: knows what a set means.
Next: `root.py` and `assignment.py`, which reason about such sets.
"""

from collections.abc import Iterable, Iterator

from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, Bitmap, ParticipantIndex


def from_indices(indices: Iterable[int]) -> Bitmap:
    """Return the bitmap of a set of indices; RangeError outside 0..63."""
    bits = 0
    for index in indices:
        bits |= 1 << checked_index(index)
    return Bitmap(bits)


def indices_of(bitmap: int) -> Iterator[ParticipantIndex]:
    """Yield the indices of a bitmap in ascending order."""
    while bitmap:
        low = bitmap & -bitmap
        yield ParticipantIndex(low.bit_length() - 1)
        bitmap ^= low


def has(bitmap: int, index: int) -> bool:
    """Tell whether the bitmap holds the index."""
    return bool(bitmap >> checked_index(index) & 1)


def count(bitmap: int) -> int:
    """Return how many indices the bitmap holds."""
    return bitmap.bit_count()


def rank(bitmap: int, index: int) -> int:
    """Return how many members of the bitmap have a smaller index; RangeError if absent."""
    if not has(bitmap, index):
        raise RangeError(
            f"rank of index {index}",
            "an index of the set",
            list(indices_of(bitmap)),
            "only members of the set have a rank",
        )
    return count(bitmap & ((1 << index) - 1))


def checked_index(index: int) -> ParticipantIndex:
    """Return the index if it lies in 0..63, else raise RangeError."""
    if not 0 <= index < MAX_PARTICIPANTS:
        raise RangeError(
            "participant index", f"0..{MAX_PARTICIPANTS - 1}", index, "use a roster index"
        )
    return ParticipantIndex(index)
