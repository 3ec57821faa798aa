"""The task of audits: one task of its own for each duty, started when it begins and ended with it.

Owns: which duties there are at a look, and their tasks. Never: keeps a round, or another audit,
waiting. Next: `audit_round.py`, which each of these tasks runs; `state/audit_tracker.py`.

A trainer that does not witness has its own openings to show and nothing else; the program seats
nobody else.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from troth_client.audit.duty import Duty, owed
from troth_client.audit.show_openings import rounds_to_open, show_openings
from troth_client.audit_round import judge_as_witness, vote_as_juror
from troth_client.member import Member
from troth_client.network.watch import NODE_FAILURES
from troth_client.participant.housekeeping import JUDGED
from troth_client.runtime.base import end
from troth_client.steps.transitions import pending_seeds
from troth_coordinator.rules.audit_view import AuditStage, AuditView, JurorView, SeatFlag, SeatView
from troth_coordinator.rules.audits import acting_seats, juror_duty, run_clock, seat_duty
from troth_coordinator.rules.view import NetworkView

Work = Callable[[], Coroutine[Any, Any, None]]
SITTING = (AuditStage.COMMIT, AuditStage.REVEAL)
BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
IN_JURY = (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL)


@dataclass(frozen=True, slots=True)
class _Matter:
    """One duty: its name, all that its outcome depends on, and whether we owe an act now."""

    name: Hashable
    is_owed: bool
    work: Work


async def run_audits(member: Member) -> NoReturn:
    """Follow the audits of the run for ever, each duty in its own task."""
    tracker, tasks = member.audits.tracker, _Tasks(member)
    try:
        while True:
            view = await member.chain.watch.next()
            try:
                await tracker.refresh(view)
            except NODE_FAILURES as error:
                member.chain.watch.report(error)
                continue
            await tasks.update(list(_matters(member, view)))
    finally:
        await tasks.close()


class _Tasks:
    """The duties under way, by name. A fork that draws anew makes another name of it."""

    def __init__(self, member: Member) -> None:
        self._chain = member.chain
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def update(self, matters: list[_Matter]) -> None:
        """Start what is owed and not under way; end what is no duty any more."""
        for name, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[name]
                self._take(task)
        over = self._tasks.keys() - {matter.name for matter in matters}
        await end(*(self._tasks.pop(name) for name in sorted(over, key=repr)))
        for matter in matters:
            if matter.is_owed and matter.name not in self._tasks:
                self._tasks[matter.name] = self._chain.runtime.start(matter.work(), "audit")

    async def close(self) -> None:
        """End all duties; what a verdict needs is on disk."""
        await end(*self._tasks.values())

    def _take(self, task: asyncio.Task[None]) -> None:
        """Raise what ended a duty, except a node that was away: then it begins again."""
        try:
            task.result()
        except NODE_FAILURES as error:
            self._chain.watch.report(error)


def _matters(member: Member, view: NetworkView) -> Iterator[_Matter]:
    """Yield every duty that we have at a view."""
    chain, state, audits = member.chain, member.state, member.audits
    for round_ in rounds_to_open(chain, state, audits, view):
        show = partial(show_openings, chain, state, audits, member.work, round_)
        yield _Matter(("openings", round_.round, round_.seed), is_owed=True, work=show)
    # By their ends: recomputations take turns, and the most urgent comes first.
    for audit in sorted(audits.tracker.audits(view), key=lambda audit: audit.stage_end):
        about = (audit.key, audit.openings_root, audit.seed)
        if _sits(member, audit):
            is_owed = _is_owed(member, view, audit, seat_duty)
            judge = partial(judge_as_witness, member.witness, audit)
            yield _Matter(("seat", *about), is_owed, judge)
        if _is_juror(member, audit):
            is_owed = _is_owed(member, view, audit, juror_duty)
            vote = partial(vote_as_juror, member.witness, audit)
            yield _Matter(("juror", *about, audit.case_seed), is_owed, vote)


def _sits(member: Member, audit: AuditView) -> bool:
    return _is_awaited(member, audit, acting_seats(audit), SITTING)


def _is_juror(member: Member, audit: AuditView) -> bool:
    return _is_awaited(member, audit, audit.jurors, IN_JURY)


def _is_awaited(
    member: Member,
    audit: AuditView,
    places: Sequence[SeatView | JurorView],
    stages: tuple[AuditStage, AuditStage],
) -> bool:
    """Whether our place may still commit, or has committed and may still reveal."""
    own = [place.flags for place in places if place.index == member.chain.index]
    if audit.stage == stages[0]:
        return bool(own)
    return audit.stage == stages[1] and any(flags & BOTH == SeatFlag.COMMITTED for flags in own)


def _is_owed(member: Member, view: NetworkView, audit: AuditView, duty: Duty) -> bool:
    return owed(member.witness, view, audit, duty) is not None


async def is_needed(member: Member, view: NetworkView) -> bool:
    """Tell whether audits of a run that is over may still ask something of its participants.

    A participant that left now would be silent on a seat, or without openings, and pay for it.
    That holds for work that an audit cleared, too, while anybody may still contest it. Reads the
    chain: since the last look, another may have frozen the last seed and opened an audit.
    """
    tracker = member.audits.tracker
    await tracker.refresh(view)
    is_open = any(
        audit.stage not in JUDGED or _is_contestable(audit, view) for audit in tracker.audits(view)
    )
    return is_open or bool(view.run.seeds_pending) or bool(tracker.to_open(view))


async def owes(member: Member, view: NetworkView) -> bool:
    """Tell whether audits may still ask something of us, who have left the run.

    The stake unbonds meanwhile: silence on a seat or about our own work would be taken from it.
    """
    tracker, index = member.audits.tracker, member.chain.index
    await tracker.refresh(view)
    last = view.entries[index].left_round
    to_come = [*pending_seeds(view), *(round_ for round_, _, _ in tracker.to_open(view))]
    is_named = any(
        (audit.stage not in JUDGED and index in _named(audit))
        or (audit.target == index and _is_contestable(audit, view))
        for audit in tracker.audits(view)
    )
    return is_named or any(round_ <= last for round_ in to_come)


def _named(audit: AuditView) -> set[int]:
    seats = {seat.index for seat in audit.seats}
    return {audit.target, *seats, *(juror.index for juror in audit.jurors)}


def _is_contestable(audit: AuditView, view: NetworkView) -> bool:
    """Whether a bonded case may still follow, whose jury asks for the openings again."""
    clock = run_clock(view.run, view.slot)
    return audit.stage == AuditStage.SETTLED and clock <= audit.stage_end
