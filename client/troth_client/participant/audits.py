"""Everything that audits ask of a participant, done while it would otherwise wait.

Owns: the order of duties: our own openings, what we owe as seat and as juror, then the steps that
anyone may take, each sent by about two peers of n. Never: keeps a round waiting for an audit.
Next: `audit/tracker.py` for what is known; `target.py`, `seat.py`, `juror.py`, `steps.py` there.

A trainer that does not witness has the first duty only; the program seats nobody else.
"""

import asyncio

from troth_client.audit.juror import serve
from troth_client.audit.seat import sit
from troth_client.audit.steps import open_audit, take_step
from troth_client.audit.target import show_openings
from troth_client.participant.peer import Peer
from troth_client.state.verdict_store import Duty
from troth_client.steps.crank import is_our_turn, pending_seeds
from troth_coordinator.rules.audit_view import AuditStage, AuditView
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.view import NetworkView

JUDGED = (AuditStage.SETTLED, AuditStage.DECIDED)
"""Stages in which nobody owes a verdict or a vote."""


async def attend(peer: Peer, view: NetworkView) -> None:
    """Do what the audits of the run ask of us now. Safe to repeat at any slot."""
    await peer.tracker.refresh(view)
    await show_openings(peer, view)
    # Together: what is sent waits for its confirmation, and several windows may end in one slot.
    audits = sorted(peer.tracker.audits(view), key=lambda audit: audit.stage_end)
    answers = await asyncio.gather(
        *(_answer(peer, view, audit) for audit in audits), return_exceptions=True
    )
    for error in answers:
        if error is not None:
            raise error
    for key in peer.tracker.to_open(view):
        if is_our_turn(peer, view):
            await open_audit(peer, view, key)
    _tidy(peer, view)


async def is_needed(peer: Peer, view: NetworkView) -> bool:
    """Tell whether audits of a run that is over may still ask something of its participants.

    Who left now would be silent on a seat, or without openings, and pay for it: also where an audit
    cleared it, while anybody may still contest that. Reads the chain: since the last look, another
    peer may have frozen the last seed and opened an audit.
    """
    await peer.tracker.refresh(view)
    is_open = any(
        audit.stage not in JUDGED or _is_contestable(audit, view)
        for audit in peer.tracker.audits(view)
    )
    return is_open or bool(view.run.seeds_pending) or bool(peer.tracker.to_open(view))


async def owes(peer: Peer, view: NetworkView) -> bool:
    """Tell whether audits may still ask something of us, who have left the run.

    The stake unbonds meanwhile: silence on a seat or about our own work would be taken from it.
    """
    await peer.tracker.refresh(view)
    last = view.entries[peer.index].left_round
    to_come = [*pending_seeds(view), *(round_ for round_, _, _ in peer.tracker.to_open(view))]
    is_named = any(
        (audit.stage not in JUDGED and peer.index in _named(audit))
        or (audit.target == peer.index and _is_contestable(audit, view))
        for audit in peer.tracker.audits(view)
    )
    return is_named or any(round_ <= last for round_ in to_come)


async def _answer(peer: Peer, view: NetworkView, audit: AuditView) -> None:
    """Do what one audit or case asks of us, then the step that anyone may take."""
    await sit(peer, view, audit)
    await serve(peer, view, audit)
    if is_our_turn(peer, view):
        await take_step(peer, view, audit)


def _named(audit: AuditView) -> set[int]:
    seats = {seat.index for seat in audit.seats}
    return {audit.target, *seats, *(juror.index for juror in audit.jurors)}


def _is_contestable(audit: AuditView, view: NetworkView) -> bool:
    """Whether a bonded case may still follow, whose committee asks for the openings again."""
    clock = run_clock(view.run, view.slot)
    return audit.stage == AuditStage.SETTLED and clock <= audit.stage_end


def _tidy(peer: Peer, view: NetworkView) -> None:
    """Forget what open audits no longer ask for."""
    peer.chamber.tidy()
    for round_, target in peer.desk.held:
        if peer.tracker.is_done(round_, target, view):
            peer.desk.settle(round_, target)
    for duty in peer.verdicts.duties():
        if duty.round + view.run.params.ring < view.run.round and _is_over(peer, duty):
            peer.verdicts.drop(duty)


def _is_over(peer: Peer, duty: Duty) -> bool:
    audit = peer.tracker.find(duty.round, duty.target, duty.kind)
    return audit is None or audit.stage in JUDGED
