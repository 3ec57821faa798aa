"""The guard: which addresses a stranger's endpoint may make this machine connect to.

Owns: the line between public addresses and all others, and the sockets that respect it.
Never: trusts a name. The guard sees the address that a socket is about to connect to. So neither
a resolver nor an odd way to write an address leads past it.
Next: `http.py`, which makes all its sockets here; `endpoint.py` for the form of an endpoint.
"""

import errno
import ipaddress
import socket
from typing import Final

from aiohttp.connector import AddrInfoType

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_SITE_LOCAL: Final = ipaddress.ip_network("fec0::/10")
_EMBEDDED_MASK: Final = 2**32 - 1


def is_public(address: str) -> bool:
    """Return whether an address is one of the open internet; False for text that is none.

    Private, loopback, link-local, multicast, unspecified and reserved ones are not, nor is an IPv6
    address that carries one of those as IPv4.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_public(found)


def is_private_host(host: str) -> bool:
    """Return whether a host is an address of this machine or its network; no name is looked up."""
    try:
        socket.inet_aton(host)
    except (OSError, UnicodeError):
        is_number = ":" in host
    else:
        is_number = True  # also forms like 127.1, which the system reads as an address
    return host.lower().rstrip(".") == "localhost" or (is_number and not is_public(host))


def is_outbound_only(host: str, endpoint: str, *, is_guarded: bool) -> bool:
    """Return whether nobody will connect to us: we listen nowhere, or where strangers do not look.

    `host` is where we listen, "" for nowhere; `endpoint` the address named for others, if any.
    `is_guarded`: others connect to public addresses only, as on every public cluster.
    """
    return not host or (is_guarded and not endpoint and is_private_host(host))


def public_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket for an address of the open internet. Raises PermissionError for another."""
    family, kind, protocol, _, target = address
    host = str(target[0])
    if not is_public(host):
        reason = (
            f"{host} is no public address, and only `troth join --allow-private` connects to it"
        )
        raise PermissionError(errno.EACCES, reason)
    return socket.socket(family=family, type=kind, proto=protocol)


def _is_public(address: Address) -> bool:
    carried = None if isinstance(address, ipaddress.IPv4Address) else _carried(address)
    if carried is not None:
        return _is_public(carried)
    is_special = address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not is_special and address not in _SITE_LOCAL


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that packets to this IPv6 address may end at."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & _EMBEDDED_MASK)
    _, behind_teredo = address.teredo or (None, None)
    return address.ipv4_mapped or address.sixtofour or behind_teredo
