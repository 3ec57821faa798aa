"""A network namespace for each participant: an own address, an own cable with a rate, partitions.

Owns: the bridge, the cables, the namespaces, and their removal. Never: shapes with delay or loss:
kernels often lack netem, and `TcpProxy` delays. Needs Linux and root; `are_permitted` tells.
Next: `proxy.py` for troubles of a single line.

The bridge is the network, and the address of its `host` is where the chain's proxy listens. Each
member listens on its own address. So bytes between members pass two cables, as on the internet:
the sender's uplink and the receiver's downlink.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

ConfigT = TypeVar("ConfigT")

_FOLDER: Final = Path("/run/netns")
_CLONE_NEWNET: Final = 0x40000000
_MIN_BURST_BYTES: Final = 16_000
_QUEUE_MILLISECONDS: Final = 400


@dataclass(frozen=True, slots=True)
class Housed(Generic[ConfigT]):
    """A process of a fleet that lives in a namespace: its target and config."""

    namespace: str
    target: Callable[[ConfigT], None]
    config: ConfigT


def run_housed(housed: Housed[ConfigT]) -> None:
    """Enter the namespace, then run the target: the target of a `Fleet` of `Housed` configs.

    Raises OSError where the namespace is gone or the caller is not root.
    """
    handle = os.open(_FOLDER / housed.namespace, os.O_RDONLY)
    try:
        # os.setns comes with Python 3.12. Threads that start from here on inherit the namespace.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(handle, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), housed.namespace)
    finally:
        os.close(handle)
    housed.target(housed.config)


class Namespaces:
    """A bridge with so many namespaces on it. A context manager; leaving it removes them all.

    SIGKILL leaves all of it. `ip link del tfPID`, with the pid of the killed process, removes its
    bridge; `ip netns del tfPID-0`, and so on for each member, removes the others. No network does
    that for another: a pid says nothing across containers.

    `bits_per_second` bounds each cable in each direction. The network is 10.`subnet`.0.0/24: choose
    one that this machine does not use. A packet that would wait longer than `queue_milliseconds` at
    the end of a cable is dropped. Members use the machine's own way of congestion control, unless
    another one of the kernel's is named.
    """

    def __init__(
        self,
        num_members: int,
        bits_per_second: int,
        *,
        subnet: int = 231,
        queue_milliseconds: int = _QUEUE_MILLISECONDS,
        congestion_control: str = "",
    ) -> None:
        if not 1 <= num_members <= 200 or bits_per_second < 8_000:
            raise ValueError(
                "expected 1 to 200 members and 8000 bits a second or more, found"
                f" {num_members} and {bits_per_second}: choose values in that range"
            )
        self._num_members = num_members
        self._rate = bits_per_second
        self._queue = queue_milliseconds
        self._control = congestion_control
        self._net = f"10.{subnet}.0"
        # Names of links have at most 15 letters; the pid keeps two harnesses apart.
        self._prefix = f"tf{os.getpid()}"

    @property
    def host(self) -> str:
        """The address of the machine itself on the bridge."""
        return f"{self._net}.1"

    def name(self, member: int) -> str:
        """Return the name of a member's namespace."""
        return f"{self._prefix}-{member}"

    def address(self, member: int) -> str:
        """Return the address of a member."""
        return f"{self._net}.{10 + member}"

    def interface(self, member: int) -> str:
        """Return the name of a member's own end of its cable, inside its namespace."""
        return f"{self._prefix}i{member}"

    def part(self, group: Sequence[int]) -> None:
        """Let no byte pass between a group of members and the others; the host reaches all."""
        self._route("add", group)

    def join(self, group: Sequence[int]) -> None:
        """End the partition that `part` made with the same group."""
        self._route("del", group)

    def __enter__(self) -> Self:
        """Make everything; CalledProcessError if the system refuses, with nothing left behind."""
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything."""
        self._remove()

    def _make(self) -> None:
        bridge = self._prefix
        _ip("link", "add", "name", bridge, "type", "bridge")
        _ip("addr", "add", f"{self.host}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for member in range(self._num_members):
            name, outside, inside = self.name(member), f"{bridge}o{member}", self.interface(member)
            _ip("netns", "add", name)
            _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
            _ip("link", "set", outside, "master", bridge, "up")
            _ip("-n", name, "addr", "add", f"{self.address(member)}/24", "dev", inside)
            # Otherwise 64 kB pass as one frame, with one header: too few bytes are counted.
            _ip("link", "set", "dev", outside, "gso_max_segs", "1")
            _ip("-n", name, "link", "set", "dev", inside, "gso_max_segs", "1")
            _ip("-n", name, "link", "set", inside, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            if self._control:
                # A namespace may not set this for itself, but its routes may carry it.
                route = (f"{self._net}.0/24", "dev", inside, "src", self.address(member))
                _ip("-n", name, "route", "change", *route, "congctl", self._control)
            self._bound(outside)
            self._bound(inside, name)

    def _bound(self, link: str, namespace: str = "") -> None:
        """Give one end of a cable its rate: what leaves there waits in a token bucket."""
        inside = ("-n", namespace) if namespace else ()
        burst = max(_MIN_BURST_BYTES, self._rate // 8 // 100)
        shape = ("rate", f"{self._rate}bit", "burst", f"{burst}b")
        queue = ("latency", f"{self._queue}ms")
        _run("tc", *inside, "qdisc", "add", "dev", link, "root", "tbf", *shape, *queue)

    def _route(self, change: str, group: Sequence[int]) -> None:
        others = [one for one in range(self._num_members) if one not in group]
        for here, away in ((group, others), (others, group)):
            for member in here:
                for other in away:
                    route = (change, "blackhole", self.address(other))
                    _ip("-n", self.name(member), "route", *route)

    def _remove(self) -> None:
        """Remove what there is: first the cables, whose names a namespace would free too late."""
        cables = [f"{self._prefix}o{member}" for member in range(self._num_members)]
        for link in (*cables, self._prefix):
            if Path("/sys/class/net", link).exists():
                _ip("link", "del", link)
        for member in range(self._num_members):
            if (_FOLDER / self.name(member)).exists():
                _ip("netns", "del", self.name(member))


def are_permitted() -> bool:
    """Tell whether this process may make namespaces, bridges and token buckets here."""
    return not refusal()


def refusal() -> str:
    """Return what keeps this process from making such a network, "" if nothing does."""
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        return f"no command {' and no command '.join(missing)}"
    if os.geteuid():
        return f"user {os.geteuid()}, who is not root"
    try:
        with Namespaces(1, 1_000_000, subnet=232):
            return ""
    except subprocess.CalledProcessError as error:
        return f"`{' '.join(error.cmd)}` failed: {error.stderr.strip()}"
    except OSError as error:
        return str(error)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
