"""Methods of our own that move time or fill blocks, for tests. No Solana node has them.

Owns: trothAdvanceSlots, trothSkipSlots, trothCongest.
Never: available anywhere but on loopback. Next: `../rpc.py`, which binds nothing else.
"""

from __future__ import annotations

from typing import Final

from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import Params
from troth_localnet.values import Json

MAX_SLOTS_PER_CALL: Final = 100_000


def advance_slots(node: Node, params: Params) -> Json:
    """Move on by N slots (1 if not given), a block in each; return the open slot."""
    num_slots = params.optional_integer(0, "slots", 1, MAX_SLOTS_PER_CALL)
    node.chain.advance(num_slots or 1)
    return node.chain.slot


def skip_slots(node: Node, params: Params) -> Json:
    """Leave N slots (1 if not given) without a block; return the open slot after them."""
    num_slots = params.optional_integer(0, "slots", 1, MAX_SLOTS_PER_CALL)
    node.chain.skip(num_slots or 1)
    return node.chain.slot


def congest(node: Node, params: Params) -> Json:
    """Let a price in micro-lamports per unit be needed for the next N slots; return the last."""
    price, num_slots = params.integer(0, "price"), params.integer(1, "slots", 1, MAX_SLOTS_PER_CALL)
    last = node.chain.slot + num_slots - 1
    node.chain.congestion.add(node.chain.slot, last, price)
    return last


METHODS: Final[dict[str, NodeMethod]] = {
    "trothAdvanceSlots": advance_slots,
    "trothCongest": congest,
    "trothSkipSlots": skip_slots,
}
