"""Congestion: slots in which a block is full, and only those who pay for priority get in.

Owns: the least price of each slot, and the recent prices that a node reports.
Never: orders or executes. A transaction below the price vanishes, as on a real network, and may
be sent again. Next: `svm.py`, which asks before it commits; `fees.py` for the price of one.

A full block is not simulated by filling it. The least price is set, as if others had paid just
that for all room but ours.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solders.pubkey import Pubkey

from troth_localnet.blocks import MAX_BLOCKHASH_AGE_BLOCKS, Block
from troth_localnet.fees import unit_price

if TYPE_CHECKING:
    from troth_localnet.svm import Chain


@dataclass(frozen=True, slots=True)
class Rush:
    """Slots `first` to `last` inclusive, in which `price` micro-lamports per unit get in."""

    first: int
    last: int
    price: int


class Congestion:
    """The rushes of one chain; none at the beginning."""

    def __init__(self) -> None:
        self._rushes: list[Rush] = []

    def add(self, first: int, last: int, price: int) -> None:
        """Fill the blocks of some slots. Of two rushes in one slot the dearer counts."""
        self._rushes.append(Rush(first, last, price))

    def price(self, slot: int) -> int:
        """Return the least price that gets into a slot's block, 0 where there is room."""
        here = [rush.price for rush in self._rushes if rush.first <= slot <= rush.last]
        return max(here, default=0)


def recent_prices(chain: Chain, addresses: Collection[Pubkey]) -> list[tuple[int, int]]:
    """Return slot and least price paid to write the accounts, of 150 blocks, oldest first.

    Each account has a least price that was paid to write it in the block. The highest of these
    counts, or the least price of the whole block if that is more, as on a validator.
    """
    blocks = reversed(chain.blocks.recent(MAX_BLOCKHASH_AGE_BLOCKS))
    return [(block.slot, _least_price(chain, block, addresses)) for block in blocks]


def _least_price(chain: Chain, block: Block, addresses: Collection[Pubkey]) -> int:
    found = (chain.history.get(signature) for signature in block.signatures)
    paid = [
        (unit_price(landed.transaction.message), {key for _, key in landed.keys.writable})
        for landed in found
        if landed is not None
    ]
    prices = [min((price for price, _ in paid), default=0), chain.congestion.price(block.slot)]
    for address in addresses:
        prices.append(min((price for price, keys in paid if address in keys), default=0))
    return max(prices)
