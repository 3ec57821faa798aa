"""The cluster as tools ask for it: one node, which is the leader; no votes.

Owns: these methods. Never: changes the chain. Next: `registry.py`.
"""

from __future__ import annotations

from typing import Final

from troth_localnet.methods.context import API_VERSION, Node, NodeMethod
from troth_localnet.methods.params import Config, Params
from troth_localnet.values import Json

_FEATURE_SET: Final = 1
_SAMPLE_SECONDS: Final = 60


def get_health(_node: Node, _params: Params) -> Json:
    """Report that the node answers."""
    return "ok"


def get_version(_node: Node, _params: Params) -> Json:
    """Return the validator release whose reply shapes we follow."""
    return {"solana-core": API_VERSION, "feature-set": _FEATURE_SET}


def get_genesis_hash(node: Node, _params: Params) -> Json:
    """Return the genesis hash, which identifies this chain."""
    return str(node.chain.blocks.genesis_hash)


def get_identity(node: Node, _params: Params) -> Json:
    """Return the node's key."""
    return {"identity": str(node.identity)}


def get_slot_leader(node: Node, params: Params) -> Json:
    """Return the one leader."""
    node.check_context(params.config(0, Config))
    return str(node.identity)


def get_cluster_nodes(node: Node, _params: Params) -> Json:
    """Return the one node; it gossips with nobody."""
    return [
        {
            "pubkey": str(node.identity),
            "gossip": None,
            "tpu": None,
            "rpc": None,
            "version": API_VERSION,
            "featureSet": _FEATURE_SET,
            "shredVersion": 0,
        }
    ]


def get_vote_accounts(_node: Node, _params: Params) -> Json:
    """Return no vote accounts: nobody votes here."""
    return {"current": [], "delinquent": []}


def get_recent_performance_samples(node: Node, _params: Params) -> Json:
    """Return one sample: the last minute by the chain's own clock, in which no slot is late."""
    return [
        {
            "slot": node.chain.slot,
            "numSlots": _SAMPLE_SECONDS * 1_000 // node.chain.config.slot_milliseconds,
            "numTransactions": node.chain.history.num_landed,
            "numNonVoteTransaction": node.chain.history.num_landed,
            "samplePeriodSecs": _SAMPLE_SECONDS,
        }
    ]


METHODS: Final[dict[str, NodeMethod]] = {
    "getClusterNodes": get_cluster_nodes,
    "getGenesisHash": get_genesis_hash,
    "getHealth": get_health,
    "getIdentity": get_identity,
    "getRecentPerformanceSamples": get_recent_performance_samples,
    "getSlotLeader": get_slot_leader,
    "getVersion": get_version,
    "getVoteAccounts": get_vote_accounts,
}
