"""The step of an audit that anyone may take now, and its instruction.

Owns: what the program would do with the step, so that none is sent in vain.
Never: sends, nor needs a participant: `troth run close` takes these steps too.
Next: `transitions.py`, which sends them; `rules/audits.py` for when a step is due.
"""

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome, case_outcome
from troth_attestation.verdict import VerdictKind
from troth_coordinator.chain import audit_instructions, case_instructions
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.rules.audit_view import (
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
from troth_coordinator.rules.view import NetworkView, RoundView


def due_now(view: NetworkView, audit: AuditView, round_: RoundView | None) -> Step | None:
    """Return the step of an audit that anyone may take now; None if there is none.

    The audit and `round_` are as `due_step` wants them.
    """
    due = due_step(audit, view.run, view.slot, round_)
    return None if due is Step.DECIDE and must_wait(view, audit) else due


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


def step_instruction(
    at: RunAddresses, payer: Pubkey, view: NetworkView, audit: AuditView, due: Step
) -> Instruction:
    """Return the instruction that takes the step of an audit that is due; `payer` signs it."""
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


def _people(view: NetworkView, audit: AuditView) -> list[Pubkey]:
    """Return the owners whose tickets or bar an outcome may change, the target first."""
    judges = [seat.index for seat in audit.judging] + [juror.index for juror in audit.jurors]
    unbonding = [index for index in judges if view.entries[index].unbonding > 0]
    owners = [audit.owner, *(view.entries[index].owner for index in unbonding)]
    return [Pubkey.from_bytes(owner) for owner in dict.fromkeys(owners)]
