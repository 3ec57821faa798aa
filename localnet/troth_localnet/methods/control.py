"""Methods of our own that move time, for tests. No Solana node has them.

Owns: trothAdvanceSlots, trothSkipSlots.
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


METHODS: Final[dict[str, NodeMethod]] = {
    "trothAdvanceSlots": advance_slots,
    "trothSkipSlots": skip_slots,
}
