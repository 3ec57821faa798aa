"""Which sequences a trainer works on (protocol sections 4 and 6): no seed and no choice.

Owns: the endless order `perm` under a key, the positions of a rank, the advance of the cursor. The
order of the data has the manifest hash as its key; an audit draws its tiles under a key of its own.
Never: reads data, nor knows who delivers.
Next: `view.py` for the trainers of a round, `schedule.py` for the learning rate.
"""

from dataclasses import dataclass
from functools import lru_cache

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.hashing import H, b32, u8, u32, u64
from troth_coordinator.rules.view import RoundView

FEISTEL_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class SequenceOrder:
    """The endless order over N sequences that a key defines: the hash of the data manifest.

    `num_sequences` is N, `key` 32 bytes. Each block of N positions is a permutation of 0..N-1, a
    different one in each data epoch.
    """

    num_sequences: int
    key: bytes

    def __post_init__(self) -> None:
        b32(self.key, "key of the order")
        if not 1 <= self.num_sequences < 2**62:
            raise RangeError(
                "num_sequences", "1..2^62-1", self.num_sequences, "prepare more or less data"
            )

    def sequence(self, position: int) -> int:
        """Return perm(position): the id of the sequence at a position of the order."""
        epoch, value = divmod(position, self.num_sequences)
        half_bits = _half_bits(self.num_sequences)
        while True:
            value = self._shuffle(value, epoch, half_bits)
            if value < self.num_sequences:
                return value

    def sequences(self, start: int, count: int) -> tuple[int, ...]:
        """Return the ids at positions start .. start + count - 1."""
        return tuple(self.sequence(position) for position in range(start, start + count))

    def _shuffle(self, value: int, epoch: int, half_bits: int) -> int:
        mask = (1 << half_bits) - 1
        left, right = value >> half_bits, value & mask
        for k in range(FEISTEL_ROUNDS):
            left, right = right, left ^ (_mixed(self.key, epoch, k, right) & mask)
        return left << half_bits | right


@lru_cache(maxsize=4096)
def _mixed(key: bytes, epoch: int, k: int, right: int) -> int:
    """Return what round k of the shuffle mixes in: with few sequences or tiles, again and again."""
    digest = H("troth:perm", key, u64(epoch), u8(k), u32(right))
    return int.from_bytes(digest[:4], "little")


def _half_bits(num_sequences: int) -> int:
    bits = max(2, (num_sequences - 1).bit_length())
    return (bits + 1) // 2


def rank_start(cursor: int, rank: int, sequences_per_payload: int) -> int:
    """Return the first position of the trainer of a rank: cursor + rank * s."""
    return cursor + rank * sequences_per_payload


def next_cursor(cursor: int, num_trainers: int, sequences_per_payload: int) -> int:
    """Return the cursor after a round: it advances by n * s, delivered or not."""
    return cursor + num_trainers * sequences_per_payload


def sequences_of(
    order: SequenceOrder, round_: RoundView, index: int, sequences_per_payload: int
) -> tuple[int, ...]:
    """Return the sequence ids of a trainer in a round; RangeError if it is no trainer of it."""
    rank = bitmap.rank(round_.trainers, index)
    start = rank_start(round_.cursor, rank, sequences_per_payload)
    return order.sequences(start, sequences_per_payload)
