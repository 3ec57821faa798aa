"""Send one instruction for an audit and report the result.

Owns: turning a failure into an event. A failure does not end the participant: somebody else was
faster, a window has closed, or the session key has no money left. A failed instruction is not sent
again at once. Never: decides what to send. Next: `transitions.py`, `verdicts.py`.
"""

from dataclasses import dataclass
from functools import partial

from solders.instruction import Instruction

from troth_client.network.chain import RunChain
from troth_client.network.sends import Due, share_left
from troth_client.state.audit_tracker import AuditTracker
from troth_coordinator.chain.errors import ProgramRefusedError, TransactionError
from troth_coordinator.rules.audit_view import AuditKey, AuditStage
from troth_coordinator.rules.audits import now, run_clock
from troth_coordinator.rules.view import NetworkView

DUTIES = frozenset(
    {
        "openings_posted",
        "verdict_committed",
        "verdict_revealed",
        "vote_committed",
        "vote_revealed",
    }
)
"""Purposes that cost a fine when their window closes; the program takes each of them once."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """One purpose of sending: the event that reports it, and the key of its audit."""

    event: str
    key: AuditKey


async def send(
    chain: RunChain, tracker: AuditTracker, view: NetworkView, step: Instruction, purpose: Purpose
) -> None:
    """Send `step`, signed by the session, unless it failed lately or landed after `view`.

    Emits the event, or `<event>_refused` with the error's name. Raises RpcError.
    """
    if not tracker.may_try(purpose.key, purpose.event, view):
        return
    await chain.finish(_send(chain, tracker, view, step, purpose))


async def _send(
    chain: RunChain, tracker: AuditTracker, view: NetworkView, step: Instruction, purpose: Purpose
) -> None:
    about = {"round": purpose.key[0], "target": purpose.key[1]}
    try:
        left = partial(window_left, tracker, purpose.key) if purpose.event in DUTIES else None
        # The tracker reads what it changes: no view has to.
        sent = await chain.send(step, due=Due(left=left), is_in_view=False)
    except TransactionError as error:
        # One audit that cannot be served must not end a participant, nor all of them in turn.
        name = error.name if isinstance(error, ProgramRefusedError) else type(error).__name__
        tracker.refuse(purpose.key, purpose.event, view)
        chain.events.emit(f"{purpose.event}_refused", **about, name=name)
    else:
        tracker.landed(purpose.key, purpose.event, sent.slot)
        chain.events.emit(purpose.event, **about, fee=sent.fee_lamports)


def window_left(tracker: AuditTracker, key: AuditKey, view: NetworkView) -> int:
    """Return the thousandths that are left of the window in which an audit waits for us."""
    params, clock = view.run.params, run_clock(view.run, view.slot)
    windows = {
        AuditStage.COMMIT: params.verdict_commit_slots,
        AuditStage.REVEAL: params.verdict_reveal_slots,
        AuditStage.CASE_COMMIT: params.jury_commit_slots,
        AuditStage.CASE_REVEAL: params.jury_reveal_slots,
    }
    audit, round_ = tracker.find(*key), tracker.round(key[0])
    if audit is not None:
        current = now(audit, params, clock)
        window = windows.get(current.stage, params.openings_slots)
        return share_left(current.stage_end - clock, window)
    if round_ is None:
        return share_left(1, 1)
    return share_left(round_.freeze_clock + params.openings_slots - clock, params.openings_slots)
