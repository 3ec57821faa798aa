"""Whether others reach this machine: the question of join and doctor, and what its answer means.

Owns: whom they ask, and the advice. Never: connects; `troth_client/transport/reach.py` does.
Next: `machine_checks.py` and `doctor_run.py`, which list it.
"""

from collections.abc import Sequence
from typing import Final

from troth_cli.errors import UnreachableError
from troth_cli.workflows.checks import CheckResult, Level, kind_of, untested
from troth_client.transport.endpoint import check_endpoint
from troth_client.transport.errors import EndpointError
from troth_client.transport.guard import is_private_host
from troth_client.transport.reach import is_reachable

ENOUGH_MEMBERS: Final = 2
"""One alone may be away when a round needs it."""


async def ask_holders(holders: Sequence[str], *, is_guarded: bool) -> bool | None:
    """Ask whether this machine is reached at any port; on a local network, at its own address."""
    is_local = any(is_private_host(_host(one)) for one in holders)
    host = "127.0.0.1" if is_local else "0.0.0.0"
    return await is_reachable(holders, host, 0, is_guarded=is_guarded)


def _host(endpoint: str) -> str:
    """Return the host of a holder; "" where a stranger announced what nobody can read."""
    try:
        return check_endpoint(endpoint).host or ""
    except EndpointError:
        return ""


def outbound_result(num_relays: int, num_members: int) -> CheckResult:
    """Say whether enough others serve what this machine sends, since nobody connects to it.

    `num_relays` counts hubs and buckets, `num_members` the members with an announced address.
    """
    found = f"nobody connects to this machine; it sends to {num_relays} hubs and buckets"
    found += f" and {num_members} members"
    if num_relays or num_members >= ENOUGH_MEMBERS:
        return CheckResult(Level.OK, found)
    return CheckResult(
        Level.WARNING,
        found,
        f"a hub, a bucket or {ENOUGH_MEMBERS} members that can be reached",
        "Name --listen and --endpoint, --hub or --store: payloads that nobody can fetch are not"
        " included. Where all members run on one machine, give each --allow-private.",
    )


def reach_result(found: bool | None) -> CheckResult:
    """Return what an answer means: reached, not reached, or None for nobody who answered."""
    if found is None:
        return untested("nobody to ask")
    if found:
        return CheckResult(Level.OK, "others can connect to this machine")
    return CheckResult(
        Level.REFUSED,
        "nobody who was asked can connect to this machine",
        "an address that others reach",
        "Open the port, name another --endpoint, or connect outwards only: --listen none.",
        kind=kind_of(UnreachableError),
        can_go_on=True,
    )
