"""The address that an owner announces, checked against the cluster of the run.

Owns: the refusal of an address that nobody can reach. Never: looks a name up or connects to it.
Next: `approach.py` and `troth set-endpoint`, which announce.
"""

from yarl import URL

from troth_cli.errors import InputError
from troth_client.transport.guard import is_private_host


def check_announced(endpoint: str, cluster: str | None) -> None:
    """Raise InputError for a private address on a public cluster; "" announces nothing."""
    host = URL(endpoint).host if endpoint else None
    if cluster is not None and host and is_private_host(host):
        raise InputError(
            f"an address that others on {cluster} can reach",
            endpoint,
            "Announce a public one, or none: payloads and openings are pushed to others.",
            "--endpoint",
        )
