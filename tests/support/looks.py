"""A lean reader on a bench: a chain, its pushes and a clock, all of which the test moves.

Owns: the chain that it reads, without a run behind it. Never: asserts.
Next: ../unit/test_reading.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from solders.pubkey import Pubkey

from support.views import network, round_view, run_view
from troth_client.network.reading import PACE_SECONDS, LeanReader
from troth_coordinator.chain.subscription import Mark, mark_of
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

TICK_SECONDS = 0.4
"""A slot, and the time between two looks of the watcher."""


@dataclass
class Pushes:
    """The newest push, as the test writes it."""

    newest: Mark | None = None
    is_live: bool = True
    num_dropped: int = 0
    listener: Callable[[], None] | None = None

    def distrust(self) -> None:
        self.newest, self.is_live = None, False
        self.num_dropped += 1


@dataclass
class Node:
    """A chain whose Run may be changed, and the clock of its slots."""

    run: Any = field(
        default_factory=lambda: run_view(round=3, phase=Phase.COMMIT, event_sequence=7)
    )
    round: Any = field(default_factory=lambda: round_view(round=3))
    seconds: float = 100.0
    slots_per_second: float = 1 / TICK_SECONDS
    lag_slots: int = 0
    reads: list[str] = field(default_factory=list)
    hints: list[int | None] = field(default_factory=list)

    @property
    def slot(self) -> int:
        return int(1_000 + (self.seconds - 100.0) * self.slots_per_second + 1e-9) - self.lag_slots

    async def snapshot(self, _run: Pubkey, round_hint: int | None = None) -> NetworkView:
        self.reads.append("all")
        self.hints.append(round_hint)
        view = network(slot=self.slot, run=self.run)
        return replace(view, round=self.round, previous_round=None)

    async def reread(self, known: NetworkView) -> NetworkView | None:
        self.reads.append("round")
        if replace(self.run, quorum_slot=known.run.quorum_slot) != known.run:
            return None
        return replace(known, slot=Slot(self.slot), run=self.run, round=self.round)


class Bench:
    def __init__(self) -> None:
        self.node, self.pushes = Node(), Pushes()
        client: Any = self.node
        pushes: Any = self.pushes
        self.reader = LeanReader(client, Pubkey.default(), pushes, lambda: self.node.seconds)

    async def steady(self) -> "Bench":
        """Read until the pace of slots is known."""
        await self.pass_seconds(2.5 * PACE_SECONDS)
        await self.reader.read()
        self.node.reads.clear()
        return self

    async def pass_seconds(self, seconds: float) -> list[NetworkView]:
        """Let the watcher ask for the newest view as often as it does."""
        views = []
        for _ in range(round(seconds / TICK_SECONDS)):
            self.node.seconds += TICK_SECONDS
            views.append(await self.reader.newest())
        return views

    def change(self, *, is_pushed: bool = True, **fields: Any) -> None:
        """Let something happen on chain."""
        self.node.run = replace(
            self.node.run, event_sequence=self.node.run.event_sequence + 1, **fields
        )
        if is_pushed:
            self.pushes.newest = mark_of(self.node.run, self.node.slot)
            assert self.pushes.listener is not None
            self.pushes.listener()
