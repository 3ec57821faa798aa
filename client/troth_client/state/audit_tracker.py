"""The audits of a run as this participant knows them: open accounts, and rounds to check.

Owns: when to ask the chain again, the rounds that may still need audits, the steps that were
refused lately, and reports of changes. Never: acts on an audit.
Next: `audit_round.py` and `audit/`, which act.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from troth_client.runtime.base import Runtime
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import (
    IN_CASE,
    NOTHING_OWED,
    AuditKey,
    AuditKind,
    AuditStage,
    AuditView,
)
from troth_coordinator.rules.audits import is_ripe, now, run_clock
from troth_coordinator.rules.eligibility import can_be_audited
from troth_coordinator.rules.view import NetworkView, RoundView, RunView, SeedStatus

REREAD_SLOTS = 16
"""The chain is asked again after this many slots if the RPC node that answered lagged behind the
one that showed the run, or listed too few audits."""
RELIST_SLOTS = 1_500
"""All audits are listed again after this many slots, whatever the counts say."""
FORK_SLOTS = 64
"""A seed frozen this many slots ago is final; until then a fork may freeze another one."""
PATIENCE_SLOTS = 8
"""A step that the program refused is not sent again for this many slots."""
LONGEST_REST_SLOTS = 64
"""A rest that ends later than this after a view is ignored: an RPC node made its slot up."""


class AuditTracker:
    """The audits of one run as last read, and the frozen rounds whose samples are still checked."""

    def __init__(
        self, chain: CoordinatorClient, at: RunAddresses, runtime: Runtime, events: EventSink
    ) -> None:
        self._chain = chain
        self._at = at
        self._runtime = runtime
        self._events = events
        self._reading = asyncio.Lock()
        self._view: NetworkView | None = None
        self._next: asyncio.Future[None] | None = None
        self._seen: frozenset[tuple[int, bytes]] = frozenset()
        self._next_look = self._next_list = 0
        self._bonds = 0
        self._audits: dict[AuditKey, AuditView] = {}
        self._rounds: dict[int, RoundView] = {}
        self._settled: set[int] = set()
        self._rests: dict[tuple[AuditKey, str], int] = {}

    async def refresh(self, view: NetworkView) -> None:
        """Read the changes since the last call.

        Every change of an audit or a seed adds an event. So the run's event chain shows whether
        there is a change, on any fork.
        """
        async with self._reading:
            seen = view.run.event_sequence, view.run.chain_hash
            if seen not in self._seen or view.slot >= self._next_look:
                run, is_whole = await self._read(view)
                self._next_look = view.slot + (RELIST_SLOTS if is_whole else REREAD_SLOTS)
                # The answer may be newer than the view, which catches up later.
                self._seen = frozenset({seen, (run.event_sequence, run.chain_hash)})
            self._rests = {about: end for about, end in self._rests.items() if end > view.slot}
            self._view = view
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    @property
    def view(self) -> NetworkView:
        """The view of the last refresh; only after the first one."""
        if self._view is None:
            raise RuntimeError("nothing was read yet: call refresh() first")
        return self._view

    def upcoming(self) -> "asyncio.Future[None]":
        """Return the future that is done with the next refresh."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    async def next(self, *others: "asyncio.Future[Any]") -> NetworkView:
        """Wait for the next refresh, or until one of `others` is done; return the newest view."""
        await self._runtime.wait_for_others(self.upcoming(), *others)
        return self.view

    def current(self, key: AuditKey) -> AuditView | None:
        """Return an open audit in the stage that it has at the newest view."""
        audit, run = self._audits.get(key), self.view.run
        return None if audit is None else now(audit, run.params, run_clock(run, self.view.slot))

    def audits(self, view: NetworkView) -> Iterator[AuditView]:
        """Yield the open audits as they stand at the slot of the view."""
        clock = run_clock(view.run, view.slot)
        for audit in list(self._audits.values()):
            yield now(audit, view.run.params, clock)

    def find(self, round_: int, target: int, kind: int = 0) -> AuditView | None:
        """Return an open audit as last read."""
        return self._audits.get((round_, target, kind))

    def round(self, round_: int) -> RoundView | None:
        """Return a round of the ring once it is closed and its seed frozen, lost or never due."""
        return self._rounds.get(round_)

    def to_open(self, view: NetworkView) -> list[AuditKey]:
        """Return the audits that seeds ask for and nobody has opened, while they may be opened."""
        clock, params = run_clock(view.run, view.slot), view.run.params
        wanted = [
            (round_.round, target, int(AuditKind.WORK))
            for round_ in self._rounds.values()
            if round_.seed_status == SeedStatus.FROZEN
            and clock <= round_.freeze_clock + params.openings_slots
            for target in _unopened(round_)
        ]
        return [key for key in wanted if not self._is_open(key)]

    def open_to_cases(self, view: NetworkView) -> list[RoundView]:
        """Return the rounds of the ring about which anybody may still open a bonded case."""
        clock, slots = run_clock(view.run, view.slot), view.run.params.case_slots
        rounds = self._rounds.values()
        return [round_ for round_ in rounds if clock <= round_.close_clock + slots]

    def is_done(self, round_: int, target: int, view: NetworkView) -> bool:
        """Return whether no audit of this work is open or can still open, barring a deep fork."""
        if self.find(round_, target) is not None:
            return False
        known, params = self.round(round_), view.run.params
        if known is None:
            return round_ + params.ring < view.run.round
        clock = run_clock(view.run, view.slot)
        return clock > known.freeze_clock + params.openings_slots + FORK_SLOTS

    def is_final(self, round_: RoundView, view: NetworkView) -> bool:
        """Return whether the seed of a round will not be drawn anew, barring a deep fork.

        A seed that is lost or was never due may be drawn until the ring drops the round.
        """
        return run_clock(view.run, view.slot) > round_.freeze_clock + FORK_SLOTS

    def refuse(self, key: AuditKey, step: str, view: NetworkView) -> None:
        """Remember that a step of an audit was refused, so that it is not sent at every slot."""
        until = view.slot + PATIENCE_SLOTS
        self._rests[key, step] = until

    def landed(self, key: AuditKey, step: str, slot: int) -> None:
        """Remember that a step of an audit landed: the next refresh reads what it changed.

        Views up to its slot need not show it.
        """
        self._rests[key, step] = slot + 1
        self._seen = frozenset()

    def may_try(self, key: AuditKey, step: str, view: NetworkView) -> bool:
        """Tell whether a step was not refused lately, and has not landed since the view."""
        return not 0 < self._rests.get((key, step), 0) - view.slot <= LONGEST_REST_SLOTS

    @property
    def held_rounds(self) -> frozenset[int]:
        """The rounds of audits and cases under way: somebody may have to judge them.

        About settled audits cases may still be opened, but only while the ring holds their rounds.
        """
        audits = self._audits.values()
        return frozenset(audit.round for audit in audits if audit.stage not in NOTHING_OWED)

    async def _read(self, view: NetworkView) -> tuple[RunView, bool]:
        """Read the rounds and audits that may have changed, with Run. False: it is not all.

        An audit that has settled stays open for cases, hundreds of them in a long run. It changes
        only with the bonds, or once its time is over; so these are listed only then, and whenever
        the number of audits is not the expected one.
        """
        held = self._held(view)
        oldest = max(0, view.run.round - view.run.params.ring + 1)
        unread = [r for r in range(oldest, view.run.round) if r not in held]
        unsure = self._unsure(view, held)
        if unread or unsure:
            run, rounds, audits = await self._chain.read_audited(self._at.run, unread, unsure)
        else:
            run, rounds, audits = view.run, [], []
        shown = {audit.key: audit for audit in audits if audit is not None}
        found = {key: audit for key, audit in self._audits.items() if key not in unsure} | shown
        is_short = False
        if not run.num_audits:
            found = {}
        elif self._must_list(run, found, view.slot):
            listed = {one.key: one for one in await self._chain.find_audits(self._at.run)}
            # A list shorter than the run says is a bad answer: it closes no audit.
            is_short = len(listed) < run.num_audits
            found = (found if is_short else shown) | listed
            if not is_short:
                self._next_list = view.slot + RELIST_SLOTS
        self._bonds = run.total_bonds
        self._report(found)
        read = {round_.round: round_ for round_ in rounds if round_ is not None}
        self._take_rounds(held | read, view)
        is_behind = run.event_sequence < view.run.event_sequence
        return run, len(read) == len(unread) and not (is_behind or is_short)

    def _held(self, view: NetworkView) -> dict[int, RoundView]:
        """Return the rounds of the ring that need not be read: settled ones, and the view's."""
        oldest = max(0, view.run.round - view.run.params.ring + 1)
        settled = [r for r in self._settled if oldest <= r < view.run.round]
        held = {r: self._rounds[r] for r in settled}
        previous = view.previous_round
        return held if previous is None else held | {previous.round: previous}

    def _unsure(self, view: NetworkView, held: dict[int, RoundView]) -> list[AuditKey]:
        """Return the audits that any event may have changed, or opened, or closed."""
        clock = run_clock(view.run, view.slot)
        known = [
            audit.key
            for audit in self._audits.values()
            if audit.stage != AuditStage.SETTLED or clock > audit.stage_end
        ]
        opened = [
            (round_.round, target, int(AuditKind.WORK))
            for round_ in held.values()
            if round_.round not in self._settled
            for target in bitmap.indices_of(round_.audited)
        ]
        return [*known, *(key for key in opened if key not in self._audits)]

    def _must_list(self, run: RunView, found: dict[AuditKey, AuditView], slot: int) -> bool:
        """Tell whether an audit may have changed that was not read."""
        stages = {key: audit.stage for key, audit in found.items()}
        has_ended = any(
            audit.stage in IN_CASE and stages.get(key) not in IN_CASE
            for key, audit in self._audits.items()
        )
        is_other = run.num_audits != len(found) or run.total_bonds != self._bonds
        return is_other or has_ended or slot >= self._next_list

    def _take_rounds(self, rounds: dict[int, RoundView], view: NetworkView) -> None:
        found = {r: round_ for r, round_ in rounds.items() if is_ripe(round_)}
        self._rounds = found
        # The last read comes after the last moment at which a fork may change the round.
        self._settled = {
            r
            for r, round_ in found.items()
            if self.is_final(round_, view) and not _unopened(round_)
        }

    def _is_open(self, key: AuditKey) -> bool:
        known = self._audits.get(key)
        return known is not None and known.stage != AuditStage.REQUESTED

    def _report(self, found: dict[AuditKey, AuditView]) -> None:
        for key, audit in found.items():
            before = self._audits.get(key)
            if before is None or _state(before) != _state(audit):
                self._events.emit("audit_changed", **_described(audit))
        for key in self._audits.keys() - found.keys():
            round_, target, kind = key
            name = AuditKind(kind).name
            self._events.emit("audit_closed", round=round_, target=target, kind=name)
        self._audits = found


def asked_for(round_: RoundView) -> tuple[int, ...]:
    """Return the included targets that were sampled, or asked for in advance, and can be judged.

    With fewer than three other witnesses there is no audit: the program refuses to open it.
    """
    wanted = bitmap.indices_of((round_.sampled | round_.requested) & round_.included)
    return tuple(target for target in wanted if can_be_audited(round_.eligible, target))


def _unopened(round_: RoundView) -> tuple[int, ...]:
    """Return the requested targets without an audit; an audit that is over stays marked."""
    return tuple(target for target in asked_for(round_) if not bitmap.has(round_.audited, target))


def _state(audit: AuditView) -> tuple[int, ...]:
    return audit.stage, audit.outcome, audit.case_outcome, int(audit.flags), audit.num_jurors


def _described(audit: AuditView) -> dict[str, int | str]:
    return {
        "round": audit.round,
        "target": audit.target,
        "kind": audit.kind.name,
        "stage": audit.stage.name,
        "outcome": audit.outcome,
        "case_outcome": audit.case_outcome,
        "taken": audit.escrow + audit.juror_fees,
        "juror_fees": audit.juror_fees,
    }
