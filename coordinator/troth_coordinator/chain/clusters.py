"""The public Solana clusters, by the hash of their first block.

Owns: their three genesis hashes. Never: trusts the name that a node gives itself.
Next: `rpc.py` for the node that is asked.
"""

from typing import Final

from solders.hash import Hash

from troth_coordinator.chain.rpc import Rpc

PUBLIC: Final = {
    "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d": "mainnet-beta",
    "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG": "devnet",
    "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY": "testnet",
}
"""Genesis hash -> name. Every other cluster is a local one."""


def public_name(genesis_hash: bytes) -> str | None:
    """Return the name of the public cluster with this genesis hash; None for a local cluster."""
    return PUBLIC.get(str(Hash.from_bytes(genesis_hash)))


async def public_cluster(rpc: Rpc) -> str | None:
    """Return the name of the public cluster that a node belongs to; None for a local cluster.

    On a public one clients connect to public addresses only. Raises RpcError.
    """
    return public_name(await rpc.genesis_hash())
