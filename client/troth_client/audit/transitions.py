"""Transitions of audits, which anyone may send: open, extend, settle, draw, decide, release.

Owns: the instruction for each due step. Never: decides an outcome. It only asks the judge whether
the first seats agree, as the program will. Next: `rules/audits.py` for when a step is due.
"""

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome, case_outcome
from troth_attestation.verdict import VerdictKind
from troth_client.audit.sending import Purpose, send
from troth_client.network.chain import RunChain
from troth_client.state.audit_tracker import AuditTracker
from troth_coordinator.chain import audit_instructions, case_instructions
from troth_coordinator.rules.audit_view import (
    AuditKey,
    AuditKind,
    AuditView,
    JurorView,
    SeatFlag,
    SeatView,
)
from troth_coordinator.rules.audits import (
    Step,
    due_step,
    is_cap_reached,
    is_convicted,
    is_conviction_pending,
)
from troth_coordinator.rules.view import NetworkView

EVENTS = {
    Step.HEAR: "audit_heard",
    Step.END_UNOPENED: "audit_unopened",
    Step.FORGO: "audit_forgone",
    Step.DRAW: "jury_drawn",
    Step.DECIDE: "case_settled",
    Step.RELEASE: "escrow_released",
}


async def open_audit(
    chain: RunChain, tracker: AuditTracker, view: NetworkView, key: AuditKey
) -> None:
    """Open an audit that nobody has opened, even if the target hides."""
    round_, target, _kind = key
    step = audit_instructions.open_audit(chain.at, chain.payer, round_, target)
    await send(chain, tracker, view, step, Purpose("audit_opened", key))


def due_for(tracker: AuditTracker, view: NetworkView, audit: AuditView) -> Step | None:
    """Return the step of an audit that anyone may take now; None if there is none."""
    due = due_step(audit, view.run, view.slot, tracker.round(audit.round))
    return None if due is Step.DECIDE and must_wait(view, audit) else due


async def take_step(
    chain: RunChain, tracker: AuditTracker, view: NetworkView, audit: AuditView, due: Step
) -> None:
    """Send the step of an audit that is due."""
    step = _instruction(chain, view, audit, due)
    await send(chain, tracker, view, step, Purpose(EVENTS[due], audit.key))


def must_wait(view: NetworkView, audit: AuditView) -> bool:
    """Return whether the program would refuse this conviction now.

    The cap refuses it until the next epoch; an earlier conviction of the same kind, until that one
    can no longer be reversed.
    """
    kind, target = audit.kind, audit.target
    is_further = is_convicted(view, kind, target, audit.round)
    is_too_many = not is_further and is_cap_reached(view, kind, target)
    if not is_too_many and not is_conviction_pending(view, kind, target):
        return False
    votes = [_revealed(juror) for juror in audit.jurors]
    outcome = case_outcome(votes, is_work=kind == AuditKind.WORK)
    return outcome is CaseOutcome.CONVICTED


def report_of(seat: SeatView) -> Report:
    """Return the statement of a seat as the judge counts it."""
    kind = _revealed(seat)
    return Report(
        has_committed=bool(seat.flags & SeatFlag.COMMITTED),
        kind=kind,
        sketch=None if kind is None else seat.sketch,
    )


def _revealed(place: SeatView | JurorView) -> VerdictKind | None:
    return VerdictKind(place.verdict) if place.flags & SeatFlag.REVEALED else None


def _instruction(chain: RunChain, view: NetworkView, audit: AuditView, due: Step) -> Instruction:
    at, payer = chain.at, chain.payer
    if due is Step.DRAW:
        return case_instructions.draw_jury(at, payer, audit)
    people = _people(view, audit)
    if due is Step.DECIDE:
        return case_instructions.settle_case(at, payer, audit, people)
    if due is Step.RELEASE:
        return case_instructions.release_escrow(at, payer, audit, people[:1])
    panel = Panel([report_of(seat) for seat in audit.judging], view.run.params.sketch_factor)
    found = panel.outcome(audit.num_available) if due is Step.HEAR else None
    if found is AuditOutcome.EXTEND:
        return audit_instructions.extend_audit(at, payer, audit)
    return audit_instructions.settle_audit(at, payer, audit, people)


def _people(view: NetworkView, audit: AuditView) -> list[Pubkey]:
    """Return the owners whose tickets or bar an outcome may change, the target first."""
    judges = [seat.index for seat in audit.judging] + [juror.index for juror in audit.jurors]
    unbonding = [index for index in judges if view.entries[index].unbonding > 0]
    owners = [audit.owner, *(view.entries[index].owner for index in unbonding)]
    return [Pubkey.from_bytes(owner) for owner in dict.fromkeys(owners)]
