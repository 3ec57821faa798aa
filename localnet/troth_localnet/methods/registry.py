"""All methods by name.

Owns: the list. Never: subscriptions; `../subscriptions.py` has them. Next: `../rpc.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from troth_localnet.jsonrpc import Method
from troth_localnet.methods import accounts, blocks, cluster, control, tokens, transactions
from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import Params
from troth_localnet.values import Json

METHODS: Final[dict[str, NodeMethod]] = {
    **accounts.METHODS,
    **blocks.METHODS,
    **cluster.METHODS,
    **control.METHODS,
    **tokens.METHODS,
    **transactions.METHODS,
}


def lookup(node: Node, name: str) -> Method | None:
    """Return the method bound to a node, None if there is none of that name."""
    method = METHODS.get(name)
    return None if method is None else partial(_call, node, method)


def _call(node: Node, method: NodeMethod, params: list[Json]) -> Json:
    return method(node, Params(params))
