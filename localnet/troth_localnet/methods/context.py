"""The context of every method: the chain, and the slot that a reply names.

Owns: the context wrapper and the minContextSlot check.
Never: formats accounts or transactions. Next: `registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from solders.pubkey import Pubkey

from troth_localnet.jsonrpc import MIN_CONTEXT_SLOT, JsonRpcError
from troth_localnet.methods.params import Config, Params
from troth_localnet.svm import Chain
from troth_localnet.values import Json

API_VERSION: Final = "2.3.0"
"""The validator release whose reply shapes we follow."""


@dataclass(frozen=True, slots=True)
class Node:
    """A chain seen as an RPC node."""

    chain: Chain

    @property
    def identity(self) -> Pubkey:
        """The identity key of this node; nobody holds its secret."""
        return Pubkey.from_bytes(bytes(self.chain.blocks.genesis_hash))

    def check_context(self, config: Config) -> None:
        """Refuse a request for a slot that we have not reached."""
        wanted, slot = config.min_context_slot, self.chain.slot
        if wanted is not None and wanted > slot:
            raise JsonRpcError(
                MIN_CONTEXT_SLOT, "Minimum context slot has not been reached", {"contextSlot": slot}
            )

    def with_context(self, value: Json) -> Json:
        """Wrap a value with the slot at which it was read."""
        return {"context": {"apiVersion": API_VERSION, "slot": self.chain.slot}, "value": value}


NodeMethod = Callable[[Node, Params], Json]
"""One JSON-RPC method; JsonRpcError refuses."""
