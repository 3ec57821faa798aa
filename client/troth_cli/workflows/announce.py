"""Addresses that an owner announces, checked against the cluster that its node belongs to.

Owns: the refusal of an address that nobody can reach. Never: looks a name up or connects to it.
Next: `take_part.py` and `troth set-endpoint`, which announce.
"""

from yarl import URL

from troth_cli.errors import InputError
from troth_client.transport.guard import is_private_host
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import public_name


async def check_announced(client: CoordinatorClient, endpoint: str) -> bool:
    """Tell whether the cluster is a public one; InputError for a private address there.

    "" announces nothing.
    """
    name = public_name(await client.rpc.genesis_hash())
    host = URL(endpoint).host if endpoint else None
    if name is not None and host and is_private_host(host):
        raise InputError(
            f"an address that others on {name} can reach",
            endpoint,
            "Announce a public one, or none: payloads and openings are pushed to others.",
            "--endpoint",
        )
    return name is not None
