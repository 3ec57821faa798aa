"""Duties: the act that a seat or a juror owes at one view of the chain, and for how long.

Owns: waiting until a commit or reveal is due, and noticing when it is no longer due.
Never: judges or sends.
Next: `rules/audits.py` for the duties; `verdicts.py`, `votes.py`, which act on them.
"""

from collections.abc import AsyncIterator, Callable

from troth_client.audit.witness import Witness
from troth_coordinator.rules.audit_view import AuditKey, AuditStage, AuditView
from troth_coordinator.rules.audits import Act, juror_duty, run_clock, seat_duty
from troth_coordinator.rules.view import NetworkView

Duty = Callable[[AuditView, int, int], Act | None]
"""What a participant owes in an audit at a moment: `seat_duty` or `juror_duty`."""
JUDGED = (AuditStage.SETTLED, AuditStage.DECIDED)
"""Stages in which nobody owes a verdict or a vote."""
COMMITTING: dict[Duty, AuditStage] = {
    seat_duty: AuditStage.COMMIT,
    juror_duty: AuditStage.CASE_COMMIT,
}
"""The stage before the reveals, for each kind of duty."""


def owed(witness: Witness, view: NetworkView, audit: AuditView, duty: Duty) -> Act | None:
    """Return the act that we owe in an audit now."""
    return duty(audit, witness.chain.index, run_clock(view.run, view.slot))


async def while_owed(
    witness: Witness, key: AuditKey, duty: Duty, act: Act
) -> AsyncIterator[tuple[NetworkView, AuditView]]:
    """Yield the audit at each view in which we owe `act`, until we no longer owe it.

    For a reveal, waits while others may still commit.
    """
    tracker = witness.audits.tracker
    while True:
        view, audit = tracker.view, tracker.current(key)
        if audit is None:
            return
        now = owed(witness, view, audit, duty)
        if now is act:
            yield view, audit
        elif act is Act.COMMIT or now is not None or audit.stage != COMMITTING[duty]:
            return
        await tracker.next()
