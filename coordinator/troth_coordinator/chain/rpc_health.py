"""`NodeHealth`: which RPC nodes may be asked now, what is wrong with the others, and since when.

Owns: rests after failures (they grow, with jitter), limits that a node asked for, the newest slot
of each node, and what is reported to the user.
Never: asks a node. Next: failover.py, which does and hands the outcome in here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol
from urllib.parse import urlsplit

from troth_coordinator.chain.errors import (
    ChainError,
    RpcLimitedError,
    RpcTimeoutError,
    RpcUnreachableError,
)
from troth_coordinator.chain.rpc import Rpc

UNREADABLE: Final = "an address that cannot be read"
_BARE: Final = re.compile(r"(?:[^/?#@\\\s]*@)?([^/?#@\\\s]+)(?:[/?#\\][^@]*)?")
"""A name and a password, the host, then a path or a query. An @ elsewhere may end a password."""
FIRST_REST_SECONDS: Final = 0.5
LONGEST_REST_SECONDS: Final = 8.0
"""A rest doubles with each failure in a row, from the first to the longest."""
LONGEST_LIMIT_SECONDS: Final = 30.0
"""A node that names a longer time to wait (Retry-After) is asked again after this one."""
RETRY_SECONDS: Final = 0.8
"""Where no other node is left, one that rests is asked about this often: so its return is noticed
within a second."""
STEADY_SECONDS: Final = 30.0
"""A node that failed this long ago is as good as one that never failed."""
MAX_LAG_SLOTS: Final = 16
"""A node may be so many slots behind the best. Healthy public nodes differ by fewer than five."""
FAR_SLOTS: Final = 9_000
"""An hour: a node that is so far ahead of another one that moves makes its slots up."""
MOVING_SECONDS: Final = 45.0
"""A node whose slot has grown within this time moves."""
FROZEN_SECONDS: Final = 5.0
"""A node that shows one slot for so long is frozen, or the chain stands still."""
CHECK_SECONDS: Final = 15.0
"""A node in reserve is asked for its slot this often, so that its state is known when needed."""
REPEAT_SECONDS: Final = 60.0
"""A trouble that lasts is reported again after this time."""


class RpcReport(Protocol):
    """The reader of trouble with a node and of its end; seconds count from the first failure."""

    def trouble(self, name: str, what: str, seconds: float, meanwhile: str) -> None:
        """Report what is wrong with a node, and what happens until it works again."""

    def recovered(self, name: str, seconds: float) -> None:
        """Report that a node of which trouble was reported works again."""


class Silent:
    """Reports nothing: for commands that end with the error itself."""

    def trouble(self, name: str, what: str, seconds: float, meanwhile: str) -> None:
        """Report nothing."""

    def recovered(self, name: str, seconds: float) -> None:
        """Report nothing."""


@dataclass(slots=True)
class Node:
    """One RPC node and what is known of it. Times are readings of the clock of `NodeHealth`."""

    name: str
    rpc: Rpc
    num_failures: int = 0
    failed_at: float = 0.0
    rest_until: float | None = None
    retry_at: float = 0.0
    checked_at: float = 0.0
    slot: int = -1
    moved_at: float = 0.0
    since: float | None = None
    reported_at: float | None = None
    what: str = ""
    is_limiting: bool = False


def node_name(url: str) -> str:
    """Return what may be shown of an address: scheme and host, without path, key or password.

    Of a text without a scheme that is what stands where a host would.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        where = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return UNREADABLE
    if parts.scheme and host:
        return f"{parts.scheme}://{where}{port}"
    bare = None if "://" in url else _BARE.fullmatch(url)
    return UNREADABLE if bare is None else bare[1]


def names_of(urls: Sequence[str]) -> dict[str, str]:
    """Return each address once, by a name of its own: scheme and host, numbered where needed."""
    named: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        name = base = node_name(url)
        for number in range(2, len(urls) + 1):
            if name not in named:
                break
            name = f"{base} ({number})"
        named[name] = url
    return named


@dataclass(slots=True)
class NodeHealth:
    """The nodes in the user's order, the best ones to ask first, and the reports about them."""

    nodes: Sequence[Node]
    clock: Callable[[], float]
    random: Random
    report: RpcReport = field(default_factory=Silent)

    def candidates(self) -> list[Node]:
        """Return the nodes to ask now, best first; none while all rest.

        A node that rests comes last, and only at intervals. One that asked us to wait is left
        alone. Where one node is all there is, it is there twice: a broken connection is no outage.
        """
        now = self.clock()
        ready = [node for node in self.nodes if node.rest_until is None]
        last = [node for node in self.nodes if node.rest_until is not None and now >= node.retry_at]
        last.sort(key=lambda node: node.rest_until or 0.0)
        if len(ready) == 1 and not last and ready[0].since is None:
            return ready * 2
        return ready + last

    def due_for_check(self, asked: Node) -> list[Node]:
        """Return the nodes beside the one asked whose state should be looked at now."""
        now = self.clock()
        found = []
        for node in self.nodes:
            due = node.checked_at + CHECK_SECONDS if node.rest_until is None else node.rest_until
            if node is not asked and now >= due:
                node.checked_at, node.retry_at = now, max(node.retry_at, now + RETRY_SECONDS)
                found.append(node)
        return found

    def asking(self, node: Node) -> None:
        """Note that a node is asked: one that rests is then left alone for a moment."""
        now = self.clock()
        node.checked_at = now
        if node.rest_until is not None:
            node.retry_at = now + RETRY_SECONDS * self.random.uniform(0.5, 1.0)

    def failed(self, node: Node, error: ChainError | str) -> None:
        """Let a node rest that gave no answer, or one that cannot be right."""
        now = self.clock()
        if now - node.failed_at > STEADY_SECONDS:
            node.num_failures = 0
        node.num_failures, node.failed_at = node.num_failures + 1, now
        rest = min(LONGEST_REST_SECONDS, FIRST_REST_SECONDS * 2 ** min(node.num_failures - 1, 10))
        rest *= self.random.uniform(0.5, 1.0)
        node.rest_until = now + rest
        node.retry_at = now + min(rest, RETRY_SECONDS)
        node.is_limiting = isinstance(error, RpcLimitedError)
        if isinstance(error, RpcLimitedError):
            wanted = rest if error.retry_after_seconds is None else error.retry_after_seconds
            node.rest_until = node.retry_at = now + min(max(wanted, rest), LONGEST_LIMIT_SECONDS)
        what = error if isinstance(error, str) else error.found
        is_certain = isinstance(error, RpcTimeoutError | RpcLimitedError)
        self.suffer(node, what, is_certain=is_certain)

    def suffer(self, node: Node, what: str, *, is_certain: bool = False) -> None:
        """Report what is wrong with a node: at the second failure, or at once if it is certain."""
        now, is_first = self.clock(), node.since is None
        node.since, node.what = now if node.since is None else node.since, what
        if node.reported_at is None:
            is_due = is_certain or not is_first
        else:
            is_due = now - node.reported_at >= REPEAT_SECONDS
        if is_due:
            node.reported_at = now
            self.report.trouble(node.name, what, now - node.since, self._meanwhile(node))

    def answered(self, node: Node) -> None:
        """Take a node back that gave a good answer."""
        now = self.clock()
        node.rest_until = None
        if now - node.failed_at > STEADY_SECONDS:
            node.num_failures = 0
        since, was_reported = node.since, node.reported_at is not None
        node.since = node.reported_at = None
        if since is not None and was_reported:
            self.report.recovered(node.name, now - since)

    def complaint(self, node: Node, slot: int) -> str:
        """Take note of the slot that a node shows; say what is wrong with it, "" for nothing."""
        now, best, before = self.clock(), self._best(), node.slot
        if len(self.nodes) == 1 and slot + MAX_LAG_SLOTS < before and not self._has_stood(node):
            # Of several nodes behind one address one lags: what another has shown still counts.
            return _behind(slot, before)
        if slot > before or slot < before - MAX_LAG_SLOTS:
            node.moved_at = now
        node.slot = slot
        if self._is_far(node):
            return f"slot {slot}, more than {FAR_SLOTS} ahead of what others show"
        if slot + MAX_LAG_SLOTS < best:
            return _behind(slot, best)
        if slot <= before and now - node.moved_at >= FROZEN_SECONDS:
            return f"no slot after {before} for {now - node.moved_at:.0f} s"
        return ""

    def resting_error(self) -> RpcUnreachableError:
        """Return the error of a call for which no node may be asked now."""
        node = min(self.nodes, key=lambda node: node.retry_at)
        left = max(0.0, node.retry_at - self.clock())
        what = f"{node.what}; it is asked again in {left:.1f} s"
        if node.is_limiting:
            return RpcLimitedError(node.name, what, left)
        return RpcUnreachableError(node.name, what)

    def _best(self) -> int:
        """Return the newest slot that counts: with three nodes, one alone cannot outrun all."""
        slots = sorted((node.slot for node in self.nodes), reverse=True)
        if len(slots) > 2:
            return slots[1]
        return max((node.slot for node in self.nodes if not self._is_far(node)), default=slots[0])

    def _is_far(self, node: Node) -> bool:
        """Tell whether a node is so far ahead of one that moves that it makes up its slots."""
        others = [n.slot for n in self.nodes if n is not node and not self._has_stood(n)]
        return max(others, default=-1) >= 0 and node.slot > max(others) + FAR_SLOTS

    def _has_stood(self, node: Node) -> bool:
        return self.clock() - node.moved_at > MOVING_SECONDS

    def _meanwhile(self, node: Node) -> str:
        other = next((n for n in self.nodes if n is not node and n.rest_until is None), None)
        if other is not None:
            return f"{other.name} is asked instead"
        return "it is asked again about once a second; nothing is lost until a deadline passes"


def _behind(slot: int, best: int) -> str:
    return f"slot {slot}, {best - slot} behind slot {best}, which was shown before"
