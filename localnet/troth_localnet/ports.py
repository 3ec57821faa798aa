"""Listening sockets: loopback only, the websocket on the port after the RPC's.

Owns: checking the host, binding both ports, the errors when that fails.
Never: accepts connections. Next: `rpc.py`, which does.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Final

from troth_localnet.errors import BindRefusedError, OptionError, PortInUseError

_NUM_ATTEMPTS: Final = 64
_BACKLOG: Final = 512
_MAX_PORT: Final = 65_535


def check_loopback(host: str) -> str:
    """Return the loopback address to bind for a host; BindRefusedError for any other."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise BindRefusedError(host) from None
    if not address.is_loopback:
        raise BindRefusedError(host)
    return host


def bind_pair(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """Listen on `port` and `port + 1`; port 0 lets the system pick a free pair.

    PortInUseError names the port that is taken.
    """
    host = check_loopback(host)
    if not 0 <= port < _MAX_PORT:
        raise OptionError(
            f"a port from 0 to {_MAX_PORT - 1}", f"{port}", "The websocket needs the next port"
        )
    if port:
        return _bind_both(host, port)
    for _ in range(_NUM_ATTEMPTS):
        first = _bind(host, 0, "JSON-RPC")
        chosen = int(first.getsockname()[1])
        try:
            return first, _bind(host, chosen + 1, "websocket")
        except (PortInUseError, OverflowError):
            first.close()
    raise PortInUseError(host, 0, "JSON-RPC and websocket pair")


def _bind_both(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    first = _bind(host, port, "JSON-RPC")
    try:
        return first, _bind(host, port + 1, "websocket")
    except PortInUseError:
        first.close()
        raise


def _bind(host: str, port: int, purpose: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # Lets a second start follow a first at once; it does not let two listen together.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(host, port, purpose) from error
        raise
    listener.setblocking(False)
    return listener
