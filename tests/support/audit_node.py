"""The RPC node of an audit driver: it shows what the test wants to be seen."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from support.audit_views import STAGE_END
from support.solvent import Solvent
from support.views import PARAMS, key, network, run_view
from troth_coordinator.rules.audit_view import AuditKey, AuditView
from troth_coordinator.rules.ids import Address
from troth_coordinator.rules.view import NetworkView, RoundView, RunView

ROUND = 9
FROZEN_AT = STAGE_END - PARAMS.openings_slots
ENDPOINTS = {index: (Address(key(index + 1)), f"peer-{index}") for index in range(6)}


def view_at(
    slot: int = FROZEN_AT + 1, sequence: int = 1, round_: int = ROUND + 2, **changes: Any
) -> NetworkView:
    """A look at the run at a slot; another sequence says that something happened."""
    about = {"round": round_, "event_sequence": sequence, "num_audits": 1}
    return network(slot=slot, run=run_view(**(about | changes)))


@dataclass
class Node(Solvent):
    """A node that shows these rounds and audits, and takes or refuses what is sent.

    `failure` is raised by `send`, `read_failure` by whatever reads. `hangs` lets sends wait."""

    view: NetworkView = field(default_factory=view_at)
    rounds: dict[int, RoundView] = field(default_factory=dict)
    audits: list[AuditView] = field(default_factory=list)
    failure: Exception | None = None
    read_failure: Exception | None = None
    hangs: asyncio.Event | None = None
    num_looks: int = 0
    num_reads: int = 0
    sent: list[list[Instruction]] = field(default_factory=list)
    asked: list[list[int]] = field(default_factory=list)
    asked_audits: list[list[AuditKey]] = field(default_factory=list)

    async def snapshot(self, _run: Pubkey) -> NetworkView:
        self.num_looks += 1
        self._may_read()
        return replace(self.view)  # each look of a client is a record of its own

    async def read_rounds(self, _run: Pubkey, numbers: Sequence[int]) -> list[RoundView | None]:
        self._may_read()
        self.asked.append(list(numbers))
        return [self.rounds.get(number) for number in numbers]

    async def read_audited(
        self, _run: Pubkey, numbers: Sequence[int], keys: Sequence[AuditKey]
    ) -> tuple[RunView, list[RoundView | None], list[AuditView | None]]:
        self._may_read()
        self.asked.append(list(numbers))
        self.asked_audits.append(list(keys))
        known = {audit.key: audit for audit in self.audits}
        rounds = [self.rounds.get(number) for number in numbers]
        run = replace(self.view.run, num_audits=len(self.audits))
        return run, rounds, [known.get(key) for key in keys]

    async def read_participants(self, _run: Pubkey, owners: Sequence[Pubkey]) -> list[Any]:
        self._may_read()
        names = {bytes(owner): endpoint for owner, endpoint in ENDPOINTS.values()}
        return [SimpleNamespace(endpoint=names.get(bytes(owner), "")) for owner in owners]

    async def find_audits(self, _run: Pubkey) -> list[AuditView]:
        self._may_read()
        self.num_reads += 1
        return list(self.audits)

    async def send(self, instructions: list[Instruction], *_signers_and_watch: Any) -> Any:
        self.sent.append(instructions)
        if self.hangs is not None:
            await self.hangs.wait()
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(fee_lamports=5_000, slot=self.view.slot)

    def _may_read(self) -> None:
        if self.read_failure is not None:
            raise self.read_failure
