"""Bytes that went by: those of a network interface, or those of this process's own sockets.

Owns: two ways to count, both kept by the Linux kernel. Never: estimates.
Next: `rank.py`, which reads a counter before and after its steps.

An interface counts whole frames: payload, TCP, IP and Ethernet headers, acknowledgements, and what
was sent again. Loopback belongs to the whole machine, so there each rank asks its sockets instead.
They count the TCP payload that arrived, without any header.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from troth_simulation.profile.errors import CountingError

_TABLE: Final = Path("/proc/self/net/dev")
_OWN_FILES: Final = Path("/proc/self/fd")
_RECEIVED, _SENT = 0, 8
"""Columns of an interface in the kernel's table."""
_INFO: Final = struct.Struct("=120x2Q")
"""The end of struct tcp_info that we need: bytes acknowledged by the peer, bytes received."""


class Traffic(NamedTuple):
    """Bytes in both directions since the counters began."""

    sent: int
    received: int

    def since(self, before: "Traffic") -> "Traffic":
        """Return what went by after an earlier reading."""
        return Traffic(self.sent - before.sent, self.received - before.received)


def check_system() -> None:
    """Raise CountingError where the kernel keeps no such counters."""
    if not sys.platform.startswith("linux"):
        raise CountingError(
            "Linux, whose kernel counts the bytes of interfaces and sockets",
            sys.platform,
            "Run the command on Linux.",
        )


def of_interface(name: str) -> Traffic:
    """Return the counters of an interface of this process's namespace; CountingError without it."""
    for line in _TABLE.read_text().splitlines():
        found, _, columns = line.partition(":")
        if found.strip() == name:
            values = columns.split()
            return Traffic(int(values[_SENT]), int(values[_RECEIVED]))
    raise CountingError(
        f"an interface {name}", f"none in {_TABLE}", "Run the command again; report it if it stays."
    )


def of_own_sockets() -> Traffic:
    """Return the sum over all open TCP connections of this process."""
    found = [_of_socket(number) for number in _open_files()]
    return Traffic(sum(one.sent for one in found), sum(one.received for one in found))


def _open_files() -> Iterator[int]:
    yield from (int(entry.name) for entry in _OWN_FILES.iterdir())


def _of_socket(number: int) -> Traffic:
    """Return the counters of a descriptor; zero for all that is no TCP connection."""
    try:
        with socket.socket(fileno=os.dup(number)) as found:
            info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    except OSError:
        return Traffic(0, 0)
    return Traffic(*_INFO.unpack(info)) if len(info) == _INFO.size else Traffic(0, 0)
