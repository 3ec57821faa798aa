"""Names of this machine: what a server for this machine alone may listen on and be called.

Owns: the rule. A page of another origin reaches such a server under a name of its own that it lets
point here (DNS rebinding). So a request that names another host is not answered.
Never: resolves a name. Next: `metrics.py`, `transport/server.py`; `troth_cli/dashboard/server.py`.
"""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(name: str) -> bool:
    """Tell whether a host is this machine: `localhost`, or an address of loopback.

    An IPv6 address may carry one of IPv4.
    """
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost"
    carried = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (carried or found).is_loopback


def names_loopback(host: str) -> bool:
    """Tell whether a request's Host names this machine; the port may be that of a tunnel."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
