"""When a participant may go: whether audits and cases may still ask it for something.

Owns: that decision, after the end of a run and after we have left it. Never: waits, or acts.
Next: `rounds.py`, which asks; `audit/debts.py` for the price of going earlier.
"""

from troth_attestation.contestable import slots_left
from troth_client.member import Member
from troth_client.steps.transitions import pending_seeds
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import (
    BEFORE_JURY,
    NOTHING_OWED,
    AuditStage,
    AuditView,
)
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.view import NetworkView

STAY = "audits and cases may still ask us for openings or verdicts"


async def is_needed(member: Member, view: NetworkView) -> bool:
    """Return whether audits of a finished run may still ask its participants for something.

    A participant that left now would be fined for a silent seat or for missing openings, and those
    who stay would be the whole jury of a case. Reads the chain again: since the last view, somebody
    may have frozen the last seed and opened an audit.
    """
    tracker = member.audits.tracker
    await tracker.refresh(view)
    is_open = any(
        audit.stage not in NOTHING_OWED or _is_contestable(audit, view)
        for audit in tracker.audits(view)
    )
    return (
        is_open
        or bool(view.run.seeds_pending)
        or bool(tracker.to_open(view))
        or _may_be_drawn(member, view)
    )


def slots_of_cases(member: Member, view: NetworkView) -> int:
    """Return for how many slots somebody may still open a case about a round, 0 if nobody may.

    An audit or case that is open then lasts longer.
    """
    rounds = member.audits.tracker.open_to_cases(view)
    return max((slots_left(view, round_) for round_ in rounds), default=0)


async def owes(member: Member, view: NetworkView) -> bool:
    """Return whether audits may still ask us for something after we have left the run.

    The stake unbonds meanwhile. A silent seat, a silent juror, or missing openings of our own work
    would still be fined from it. Juries are drawn from the witnesses of the round of the case,
    whether they have left or not.
    """
    tracker, index = member.audits.tracker, member.chain.index
    await tracker.refresh(view)
    last = view.entries[index].left_round
    to_come = [*pending_seeds(view), *(round_ for round_, _, _ in tracker.to_open(view))]
    is_named = any(
        (audit.stage not in NOTHING_OWED and index in _named(audit))
        or (audit.target == index and _is_contestable(audit, view))
        for audit in tracker.audits(view)
    )
    return is_named or any(round_ <= last for round_ in to_come) or _may_be_drawn(member, view)


def _may_be_drawn(member: Member, view: NetworkView) -> bool:
    """Whether a jury may still be drawn on a round in which we were an eligible witness."""
    tracker, index = member.audits.tracker, member.chain.index
    is_awaited = any(
        bitmap.has(audit.eligible, index)
        and (audit.stage in BEFORE_JURY or _is_contestable(audit, view))
        for audit in tracker.audits(view)
    )
    rounds = tracker.open_to_cases(view)
    return is_awaited or any(bitmap.has(round_.eligible, index) for round_ in rounds)


def _named(audit: AuditView) -> set[int]:
    seats = {seat.index for seat in audit.seats}
    return {audit.target, *seats, *(juror.index for juror in audit.jurors)}


def _is_contestable(audit: AuditView, view: NetworkView) -> bool:
    """Whether a bonded case may still follow; its jury would ask for the openings again."""
    clock = run_clock(view.run, view.slot)
    return audit.stage == AuditStage.SETTLED and clock <= audit.stage_end
