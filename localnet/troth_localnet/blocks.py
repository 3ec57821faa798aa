"""Slots, blocks and blockhashes: time on the embedded chain.

Owns: the slot number, which slots have a block, the 150-block blockhash window, the 512 slot
hashes (newest = parent of the open slot), and a bounded list of past blocks.
Never: touches LiteSVM, or reads a clock or a random source. The same seed, steps and transactions
give the same hashes.
Next: `svm.py`, which writes these into the VM's sysvars.

The open slot always has a block; `skip` leaves slots without one, as a missing leader would.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from solders.hash import Hash
from solders.signature import Signature

from troth_localnet.errors import OptionError

MAX_SLOT_HASHES: Final = 512
MAX_BLOCKHASH_AGE_BLOCKS: Final = 150
SLOTS_PER_EPOCH: Final = 432_000

SkipRule = Callable[[int], bool]
"""Returns whether the block of a slot number is missing. Must leave some slot unskipped."""

_MAX_CONSECUTIVE_SKIPS: Final = 1_000_000


def skip_none(_slot: int) -> bool:
    """Give every slot a block."""
    return False


def skip_every(period: int) -> SkipRule:
    """Leave the last slot of each `period` without a block; period is at least 2."""
    if period < 2:
        raise OptionError(
            "a skip period of at least 2 slots", f"{period}", "A period of 1 would skip every slot"
        )
    return lambda slot: slot % period == period - 1


@dataclass(slots=True)
class Block:
    """One slot with a block. `blockhash` is the one transactions may name from here on."""

    slot: int
    parent: int
    height: int
    blockhash: Hash
    previous_blockhash: Hash
    unix_timestamp: int
    signatures: list[Signature] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SavedBlocks:
    """The past of a chain that goes on: blocks and slot hashes, oldest first, the newest bank hash.

    The last block is the open one.
    """

    blocks: list[Block]
    slot_hashes: list[tuple[int, Hash]]
    bank_hash: bytes


class BlockLedger:
    """The sequence of blocks, the newest of them open. Starts at slot 1 over a genesis block 0."""

    def __init__(
        self, seed: bytes, timestamp: Callable[[int], int], skip: SkipRule, num_kept: int
    ) -> None:
        self._timestamp = timestamp
        self._skip = skip
        self._num_kept = max(num_kept, MAX_SLOT_HASHES)
        self._bank_hash = _hash("genesis", seed)
        self.genesis_hash = Hash(self._bank_hash)
        self._slot_hashes: list[tuple[int, Hash]] = []
        self._last_valid_height: dict[Hash, int] = {}
        self._blocks: dict[int, Block] = {}
        self.open = Block(0, 0, 0, self.genesis_hash, self.genesis_hash, timestamp(0))
        self._blocks[0] = self.open
        self.advance(1)

    def resume(self, saved: SavedBlocks) -> None:
        """Go on from the past of a chain of the same seed."""
        self._blocks = {block.slot: block for block in saved.blocks}
        self.open = saved.blocks[-1]
        self._slot_hashes = list(saved.slot_hashes)
        self._bank_hash = saved.bank_hash
        recent = saved.blocks[-MAX_BLOCKHASH_AGE_BLOCKS - 1 :]
        self._last_valid_height = {
            block.blockhash: block.height + MAX_BLOCKHASH_AGE_BLOCKS for block in recent
        }

    @property
    def bank_hash(self) -> bytes:
        """The hash of the open block so far."""
        return self._bank_hash

    def advance(self, num_slots: int) -> None:
        """Seal the open block and open the slot `num_slots` later, with a block in each between.

        Slots that the skip rule names get no block; a skipped last slot moves on to the next.
        """
        if num_slots < 1:
            raise _too_few(num_slots)
        target = self.open.slot + num_slots
        for slot in range(self.open.slot + 1, target):
            if not self._skip(slot):
                self._open_next(slot)
        self._open_next(self._first_unskipped(target))

    def skip(self, num_slots: int) -> None:
        """Leave the next `num_slots` slots without a block and open the one after them."""
        if num_slots < 1:
            raise _too_few(num_slots)
        self._open_next(self._first_unskipped(self.open.slot + num_slots + 1))

    def record(self, signature: Signature) -> None:
        """Note a transaction of the open block; it changes the block's hash."""
        self.open.signatures.append(signature)
        self._bank_hash = _hash("transaction", self._bank_hash, bytes(signature))

    def slot_hashes(self) -> list[tuple[int, Hash]]:
        """Return the SlotHashes sysvar of the open slot: parent slot first, at most 512 entries."""
        return self._slot_hashes[::-1]

    def last_valid_height(self, blockhash: Hash) -> int | None:
        """Return the last block height that accepts the hash, None if unknown or expired."""
        return self._last_valid_height.get(blockhash)

    def block(self, slot: int) -> Block | None:
        """Return the block of a slot, None if skipped, ahead or no longer kept."""
        return self._blocks.get(slot)

    def slots(self, start: int, end: int) -> Iterator[int]:
        """Yield the kept slots with a block in start..end inclusive, ascending."""
        return (slot for slot in self._blocks if start <= slot <= end)

    @property
    def first_kept_slot(self) -> int:
        """The oldest slot whose block is still kept."""
        return next(iter(self._blocks))

    def recent(self, num_blocks: int) -> list[Block]:
        """Return the newest blocks, newest first."""
        return list(islice(reversed(self._blocks.values()), num_blocks))

    def _first_unskipped(self, slot: int) -> int:
        for candidate in range(slot, slot + _MAX_CONSECUTIVE_SKIPS):
            if not self._skip(candidate):
                return candidate
        raise OptionError(
            "a skip rule that leaves some slots",
            f"one that leaves no block from slot {slot} on",
            "Let it return False for some slot",
        )

    def _open_next(self, slot: int) -> None:
        parent = self.open
        self._slot_hashes.append((parent.slot, Hash(self._bank_hash)))
        del self._slot_hashes[:-MAX_SLOT_HASHES]
        self._bank_hash = _hash("bank", self._bank_hash, slot.to_bytes(8, "little"))
        blockhash = Hash(_hash("blockhash", self._bank_hash))
        height = parent.height + 1
        self.open = Block(
            slot, parent.slot, height, blockhash, parent.blockhash, self._timestamp(slot)
        )
        self._blocks[slot] = self.open
        if len(self._blocks) > self._num_kept:
            del self._blocks[self.first_kept_slot]
        self._last_valid_height[blockhash] = height + MAX_BLOCKHASH_AGE_BLOCKS
        if len(self._last_valid_height) > MAX_BLOCKHASH_AGE_BLOCKS + 1:
            del self._last_valid_height[next(iter(self._last_valid_height))]


def _too_few(num_slots: int) -> OptionError:
    return OptionError("at least 1 slot to move on by", f"{num_slots}", "Time only moves forward")


def _hash(tag: str, *parts: bytes) -> bytes:
    digest = hashlib.sha256(f"troth-localnet:{tag}\0".encode())
    for part in parts:
        digest.update(part)
    return digest.digest()
