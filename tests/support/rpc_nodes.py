"""RPC nodes in front of a real chain that fail as a test says, and what is reported of them.

Owns: the ways in which a node can be of no use. Never: answers for the chain where the real one
can. Next: troth_localnet/direct.py, the node behind it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from troth_coordinator.chain.errors import (
    MalformedReplyError,
    RpcLimitedError,
    RpcRefusedError,
    RpcTimeoutError,
    RpcUnreachableError,
)
from troth_coordinator.chain.http_rpc import DEFAULT_TIMEOUT_SECONDS
from troth_coordinator.chain.rpc import Account, Rpc

FOREIGN = Pubkey(b"f" * 32)


def refused(name: str) -> Exception:
    return RpcUnreachableError(name, "connection refused")


def unavailable(name: str) -> Exception:
    return RpcUnreachableError(name, "HTTP status 503")


def limited(name: str) -> Exception:
    return RpcLimitedError(name, "HTTP status 429", 2.0)


def garbage(name: str) -> Exception:
    return MalformedReplyError("any", "<html>login</html>")


def lacking(name: str) -> Exception:
    return RpcRefusedError("any", -32601, "Method not found")


Read = tuple[int, list[Account | None]]
MAX_PAST = 200
"""Answers to one question that a node remembers."""


@dataclass
class Weather:
    """A node and its mood.

    raises: the error of every call. alter: what it makes of accounts that it reads.
    silent: no answer until the client gives up. swallows: it takes transactions and drops them.
    lag: it shows what it showed so many slots ago. stands: it shows what it showed first since.
    """

    name: str
    rpc: Rpc
    raises: Callable[[str], Exception] | None = None
    alter: Callable[[Read], Read] | None = None
    silent: bool = False
    swallows: bool = False
    lag: int = 0
    stands: bool = False
    calls: list[str] = field(default_factory=list)
    past: dict[tuple[Pubkey, ...], list[Read]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.rpc, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if self.silent:
                await asyncio.sleep(DEFAULT_TIMEOUT_SECONDS)
                raise RpcTimeoutError(self.name, "no complete answer")
            if self.raises is not None:
                raise self.raises(self.name)
            if name == "send" and self.swallows:
                return VersionedTransaction.from_bytes(args[0]).signatures[0]
            answer = await found(*args, **kwargs)
            if name == "get_accounts":
                answer = self._shown(tuple(args[0]), answer)
            if name == "get_accounts" and self.alter is not None:
                return self.alter(answer)
            if name == "get_slot" and self.alter is not None:
                return self.alter((answer, []))[0]
            return answer

        return call

    def _shown(self, addresses: tuple[Pubkey, ...], found: Read) -> Read:
        """Return the answer, or an old one."""
        kept = self.past.setdefault(addresses, [])
        if self.stands and kept:
            return kept[-1]
        kept.append(found)
        del kept[:-MAX_PAST]
        old = [one for one in kept if one[0] <= found[0] - self.lag]
        return old[-1] if old else kept[0]

    def heal(self) -> None:
        """Work again."""
        self.raises = self.alter = None
        self.silent = self.swallows = self.stands = False
        self.lag = 0


def nothing(found: Read) -> Read:
    """No account is there."""
    return found[0], [None for _ in found[1]]


def foreign(found: Read) -> Read:
    """Every account belongs to somebody else."""
    return found[0], [one and replace(one, owner=FOREIGN) for one in found[1]]


def short(found: Read) -> Read:
    """Every account lacks its last byte."""
    return found[0], [one and replace(one, data=one.data[:-1]) for one in found[1]]


def behind(num_slots: int) -> Callable[[Read], Read]:
    """The answer is labelled as one of so many slots ago."""
    return lambda found: (found[0] - num_slots, found[1])


def frozen() -> Callable[[Read], Read]:
    """The first slot is shown for ever."""
    first: list[int] = []

    def alter(found: Read) -> Read:
        first.append(found[0])
        return first[0], found[1]

    return alter


@dataclass
class Reports:
    """The reports in order, as "trouble NAME: WHAT" and "recovered NAME"."""

    told: list[str] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    clock: Callable[[], float] = lambda: 0.0

    def trouble(self, name: str, what: str, seconds: float, meanwhile: str) -> None:
        self.told.append(f"trouble {name}: {what}")
        self.at.append(self.clock())

    def recovered(self, name: str, seconds: float) -> None:
        self.told.append(f"recovered {name}")
        self.at.append(self.clock())

    @property
    def troubles(self) -> list[str]:
        return [one for one in self.told if one.startswith("trouble")]


@dataclass
class Scripted:
    """A node without a chain: a slot that follows the clock, one account, and what was sent."""

    clock: Callable[[], float]
    sent: list[bytes] = field(default_factory=list)
    known: set[Signature] = field(default_factory=set)

    async def get_slot(self) -> int:
        return self.slot

    @property
    def slot(self) -> int:
        """Two and a half slots a second."""
        return int(self.clock() * 2.5)

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> Read:
        return self.slot, [Account(1, Pubkey(b"o" * 32), b"data") for _ in addresses]

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        self.sent.append(raw)
        return Signature.default()

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Any]:
        return ["landed" if one in self.known else None for one in signatures]
