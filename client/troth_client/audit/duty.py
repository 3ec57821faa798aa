"""Duties: the act that a seat or a juror owes at one view of the chain, and for how long.

Owns: waiting until a commit or reveal is due, and noticing when it is no longer due.
Never: judges or sends.
Next: `rules/audits.py` for the duties; `verdicts.py`, `votes.py`, which act on them.
"""

from collections.abc import AsyncIterator, Callable

from troth_client.audit.witness import Speaker
from troth_coordinator.rules.audit_view import AuditStage, AuditView
from troth_coordinator.rules.audits import Act, juror_duty, run_clock, seat_duty
from troth_coordinator.rules.view import NetworkView

DutyRule = Callable[[AuditView, int, int], Act | None]
"""Returns the act that a participant owes in an audit now: `seat_duty` or `juror_duty`."""
COMMITTING: dict[DutyRule, AuditStage] = {
    seat_duty: AuditStage.COMMIT,
    juror_duty: AuditStage.CASE_COMMIT,
}
"""The stage before the reveals, for each kind of duty."""


def owed(witness: Speaker, view: NetworkView, audit: AuditView, duty: DutyRule) -> Act | None:
    """Return the act that we owe in an audit now."""
    return duty(audit, witness.chain.index, run_clock(view.run, view.slot))


async def while_owed(
    witness: Speaker, audit: AuditView, duty: DutyRule, act: Act
) -> AsyncIterator[tuple[NetworkView, AuditView]]:
    """Yield the audit at each view in which we owe `act`, until we no longer owe it.

    A reveal is waited for while others may still commit. A commit is owed no longer once a fork
    shows other openings than those of `audit`: what we say speaks of those.
    """
    tracker = witness.audits.tracker
    while True:
        view, found = tracker.view, tracker.current(audit.key)
        if found is None:
            return
        if act is Act.COMMIT and found.openings_root != audit.openings_root:
            return
        now = owed(witness, view, found, duty)
        if now is act:
            yield view, found
        elif act is Act.COMMIT or now is not None or found.stage != COMMITTING[duty]:
            return
        await tracker.next()
