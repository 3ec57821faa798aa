"""The ground of a soak: a run, its processes, and the proxies of each participant.

Owns: the pair of lines of one participant, and which of them a kind of fault concerns.
Never: starts a chain or a process. Next: `soak.py`, which plays the faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient
from troth_localnet.fleet import Fleet
from troth_simulation.faults.proxy import TcpProxy, Traffic
from troth_simulation.faults.rpc_proxy import RpcProxy
from troth_simulation.faults.trouble import ANSWERS, PEER_TROUBLES, RPC_TROUBLES, Kind, Trouble


@dataclass(slots=True)
class Lines:
    """The proxies of one participant: to its RPC node, and in front of its endpoint."""

    answers: RpcProxy
    to_rpc: TcpProxy
    to_us: TcpProxy

    @classmethod
    async def open(
        cls,
        stack: AsyncExitStack,
        rpc_url: str,
        endpoint: tuple[str, int],
        *,
        host: str = "127.0.0.1",
        seed: int = 0,
    ) -> Self:
        """Start the proxies on an address of this machine; they end with the stack.

        `endpoint` is where the participant listens.
        """
        answers = await stack.enter_async_context(RpcProxy(rpc_url))
        upstream = ("127.0.0.1", answers.port)
        to_rpc = await stack.enter_async_context(TcpProxy(upstream, host=host, seed=2 * seed))
        to_us = await stack.enter_async_context(TcpProxy(endpoint, host=host, seed=2 * seed + 1))
        return cls(answers, to_rpc, to_us)

    async def set(self, kind: Kind, trouble: Trouble | None) -> None:
        """Begin the trouble of a kind of fault, or end it with None."""
        if kind in PEER_TROUBLES:
            await self.to_us.set(trouble)
        elif RPC_TROUBLES[kind].effect in ANSWERS:
            self.answers.set(trouble)
        else:
            await self.to_rpc.set(trouble)

    def forget_traffic(self) -> None:
        """Count from now on."""
        self.answers.traffic, self.to_us.traffic = Traffic(), Traffic()


@dataclass(frozen=True, slots=True)
class Station:
    """One participant: its name, owner, folder with `events.jsonl`, and its lines."""

    name: str
    owner: Pubkey
    folder: Path
    lines: Lines

    @property
    def log(self) -> Path:
        """The log of its events."""
        return self.folder / "events.jsonl"


@dataclass(frozen=True, slots=True)
class Ground:
    """The run under test and its parts; `seed` is only reported.

    `client` reaches the node without a proxy.
    """

    client: CoordinatorClient
    run: Pubkey
    fleet: Fleet[Any]
    stations: Sequence[Station]
    chain_pid: int
    slot_seconds: float
    seed: int = 0
