"""How well a run is audited: its eligible witnesses, and the sampled payloads that they can judge.

Owns: the counts, and the warnings that people read before they join or fund a run.
Never: reads the chain. Next: `eligibility.py` for who is eligible.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.eligibility import FULL_BENCH, can_be_audited
from troth_coordinator.rules.ids import RoundIndex
from troth_coordinator.rules.membership import sets_at_open
from troth_coordinator.rules.view import EntryView, NetworkView, RoundView, SeedStatus, Status

RECENT_ROUNDS = 16
"""Closed rounds that are looked through for sampled payloads."""


@dataclass(frozen=True, slots=True)
class Oversight:
    """Witnesses that may be seated now, and of recent sampled payloads those that could be judged.

    `p_base_ppm` is the chance of an audit for an established trainer.
    """

    num_eligible: int
    num_sampled: int
    num_auditable: int
    p_base_ppm: int


def oversight(view: NetworkView, recent: Sequence[RoundView | None] = ()) -> Oversight:
    """Count the witnesses of the open round, or of the next one, and judge the `recent` rounds."""
    sampled = [
        (round_.eligible, target)
        for round_ in recent
        if round_ is not None and round_.seed_status == SeedStatus.FROZEN
        for target in bitmap.indices_of(round_.sampled)
    ]
    num_auditable = sum(can_be_audited(*one) for one in sampled)
    eligible = _eligible(view)
    return Oversight(eligible, len(sampled), num_auditable, view.run.params.p_base_ppm)


def recent_rounds(view: NetworkView) -> range:
    """Return the closed rounds that the ring holds, the newest sixteen at most."""
    num = min(RECENT_ROUNDS, view.run.params.ring - 1)
    return range(max(0, view.run.round - num), view.run.round)


def warnings_of(found: Oversight) -> Iterator[str]:
    """Yield in words what a participant should know before it relies on audits."""
    if found.p_base_ppm == 0:
        yield "auditing is off: p_base is 0, so established trainers are never sampled"
    if found.num_eligible <= FIRST_SEATS:
        yield (
            f"no payload of a witness can be audited: {found.num_eligible} witnesses are eligible,"
            f" and {FIRST_SEATS} besides the target are needed; a sampled payload is then not paid"
        )
    elif found.num_eligible < FULL_BENCH:
        yield (
            f"only {found.num_eligible} witnesses are eligible: below {FULL_BENCH}, a few of them"
            " decide every audit and sit on its jury"
        )


def _eligible(view: NetworkView) -> int:
    if view.round is not None:
        return bitmap.count(view.round.eligible)
    # While no round is open those who wait are the members of the next one.
    waiting = [_as_member(entry, view.run.round) for entry in view.entries]
    return bitmap.count(sets_at_open(waiting, view.run.round, view.run.params).eligible)


def _as_member(entry: EntryView, round_: RoundIndex) -> EntryView:
    if entry.status != Status.PENDING:
        return entry
    return replace(entry, status=Status.ACTIVE, active_round=round_)
