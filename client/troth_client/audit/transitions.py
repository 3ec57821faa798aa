"""Transitions of audits, which anyone may send: open, extend, settle, draw, decide, release.

Owns: the event of each step that is sent. Never: decides an outcome.
Next: `due_steps.py` for the step that is due, and its instruction.
"""

from troth_client.audit.due_steps import due_now, step_instruction
from troth_client.audit.sending import Purpose, send
from troth_client.network.chain import RunChain
from troth_client.state.audit_tracker import AuditTracker
from troth_coordinator.chain import audit_instructions
from troth_coordinator.rules.audit_view import AuditKey, AuditView
from troth_coordinator.rules.audits import Step
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
    return due_now(view, audit, tracker.round(audit.round))


async def take_step(
    chain: RunChain, tracker: AuditTracker, view: NetworkView, audit: AuditView, due: Step
) -> None:
    """Send the step of an audit that is due."""
    step = step_instruction(chain.at, chain.payer, view, audit, due)
    await send(chain, tracker, view, step, Purpose(EVENTS[due], audit.key))
