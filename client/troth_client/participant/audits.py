"""The task of audits: each duty has its own task, from its beginning to its end.

Owns: the duties at each view of the chain, and their tasks. Never: keeps a round, or another
audit, waiting. Next: `audit_round.py`, which each of these tasks runs; `state/audit_tracker.py`.

A trainer that is not a witness shows and pushes its own openings and keeps those that others push
to it. It has no other duty: the program gives seats to witnesses only.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from troth_client.audit.duty import owed
from troth_client.audit.push_openings import push_openings, sets_to_push, want_openings
from troth_client.audit.show_openings import rounds_to_open, show_openings
from troth_client.audit.witness import recall
from troth_client.audit_round import judge_as_witness, vote_as_juror
from troth_client.member import Member
from troth_client.network.named_tasks import NamedTasks, Work
from troth_client.network.watch import RPC_FAILURES
from troth_coordinator.rules.audit_view import MAY_BE_SHOWN, JurorView, SeatFlag, SeatView
from troth_coordinator.rules.audits import acting_seats, juror_duty, seat_duty
from troth_coordinator.rules.view import NetworkView


@dataclass(frozen=True, slots=True)
class _Matter:
    """One duty: its name, all that its outcome depends on, and whether we owe an act now."""

    name: Hashable
    is_owed: bool
    work: Work


def always() -> bool:
    """Return True: the weights are those of the run."""
    return True


async def run_audits(member: Member, may_judge: Callable[[], bool] = always) -> NoReturn:
    """Follow the audits of the run for ever, each duty in its own task.

    Until `may_judge`, while stored weights are checked after a restart, nothing is judged anew.
    Opening sets are made and pushed, and judgements on disk are shown.
    """
    watch, tasks = member.chain.watch, NamedTasks(member.chain, "audit")
    try:
        while True:
            upcoming = watch.upcoming()
            await tasks.until(upcoming)
            try:
                await member.audits.tracker.refresh(upcoming.result())
            except RPC_FAILURES as error:
                watch.report(error)
            else:
                want_openings(member.witness, upcoming.result())
                await _take_up(tasks, list(_matters(member, upcoming.result(), may_judge())))
    finally:
        await tasks.close()


async def _take_up(tasks: NamedTasks, matters: list[_Matter]) -> None:
    """End what is no duty any more, start what is owed; a fork that draws anew renames it."""
    await tasks.keep([matter.name for matter in matters])
    for matter in matters:
        if matter.is_owed:
            tasks.start(matter.name, matter.work)


def _matters(member: Member, view: NetworkView, may_judge: bool) -> Iterator[_Matter]:
    """Yield every duty that we have at a view."""
    chain, state, audits = member.chain, member.state, member.audits
    for round_ in rounds_to_open(chain, state, audits, view):
        show = partial(show_openings, member.submissions, audits, member.work, round_)
        yield _Matter(("openings", round_.round, round_.seed), is_owed=True, work=show)
    for audit in sets_to_push(member.witness, view):
        push = partial(push_openings, member.witness, audit)
        yield _Matter(("push", audit.key, audit.openings_root), is_owed=True, work=push)
    # By their ends: recomputations take turns, and the most urgent comes first.
    unheard = (audit for audit in audits.tracker.audits(view) if audit.stage in MAY_BE_SHOWN)
    for audit in sorted(unheard, key=lambda audit: audit.stage_end):
        about = (audit.key, audit.openings_root, audit.seed)
        for kind, duty, places, work in (
            ("seat", seat_duty, acting_seats(audit), judge_as_witness),
            ("juror", juror_duty, audit.jurors, vote_as_juror),
        ):
            is_juror = kind == "juror"
            if not may_judge and recall(member.witness, audit, is_juror=is_juror) is None:
                continue
            act = owed(member.witness, view, audit, duty)
            if act is not None or _is_waiting(member, places):
                name = (kind, *about, audit.case_seed if is_juror else None)
                yield _Matter(name, act is not None, partial(work, member.witness, audit))


def _is_waiting(member: Member, places: Sequence[SeatView] | Sequence[JurorView]) -> bool:
    """Tell whether we have committed here, and may only reveal when the others have committed."""
    return any(
        place.flags & SeatFlag.COMMITTED and not place.flags & SeatFlag.REVEALED
        for place in places
        if place.index == member.chain.index
    )
