"""Prices of the sends of one process: recent fees from a node, and the lamports of the epoch.

Owns: which accounts are asked about, and the report that a cap is reached.
Never: fails. A node that knows no recent fees counts as one that saw none.
Next: priority.py for the arithmetic; sender.py, which signs and settles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.errors import RpcError
from troth_coordinator.chain.priority import (
    EpochLamports,
    PriorityKind,
    PriorityPolicy,
    lamports_of,
    least_epoch_seconds,
)
from troth_coordinator.chain.rpc import MAX_FEE_ACCOUNTS, Rpc
from troth_coordinator.rules.view import RunView

CapReport = Callable[[EpochLamports], None]
"""Told once in an epoch that its cap limits what is offered."""


def _tell_nobody(_epoch: EpochLamports) -> None:
    return


@dataclass(slots=True)
class Pricing:
    """The priority fees of one process under one policy. clock: seconds that only grow."""

    rpc: Rpc
    policy: PriorityPolicy = field(default_factory=PriorityPolicy)
    report: CapReport = _tell_nobody
    clock: Callable[[], float] = time.monotonic
    epoch: EpochLamports = field(init=False)
    _reported_epoch: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.epoch = EpochLamports(self.policy.epoch_cap_lamports)

    def begin(self, run: RunView) -> None:
        """Count anew where a run that was read is in a later epoch than the one counted."""
        self.epoch.begin(run.epoch, self.clock(), least_epoch_seconds(run.params))

    async def price(self, instructions: Sequence[Instruction], units: int, level: int) -> int:
        """Return the price of a send so urgent, in micro-lamports per compute unit."""
        base = self.policy.base(await self._recent(instructions))
        price = self.policy.price(base, level, units, self.epoch.left)
        if price < self.policy.price(base, level, units, self.epoch.cap):
            self._report()
        return price

    def hold(self, price: int, units: int) -> int:
        """Set aside the lamports of a transaction that is handed over; return them."""
        lamports = lamports_of(price, units)
        self.epoch.hold(lamports)
        return lamports

    async def _recent(self, instructions: Sequence[Instruction]) -> list[int]:
        if self.policy.kind is not PriorityKind.PERCENTILE:
            return []
        try:
            return await self.rpc.recent_fees(written(instructions))
        except RpcError:
            # The send itself meets the same node next, and says what is wrong with it.
            return []

    def _report(self) -> None:
        if self._reported_epoch != self.epoch.epoch:
            self._reported_epoch = self.epoch.epoch
            self.report(self.epoch)


def written(instructions: Sequence[Instruction]) -> list[Pubkey]:
    """Return the accounts that instructions write and others may write, too: no signers."""
    metas = [meta for one in instructions for meta in one.accounts]
    shared = dict.fromkeys(meta.pubkey for meta in metas if meta.is_writable and not meta.is_signer)
    return list(shared)[:MAX_FEE_ACCOUNTS]
