"""A sampled trainer shows its tiles: the opening set is served, its root goes onto the chain.

Owns: when openings are due, and when u of a round need not be kept any more.
Never: opens tiles of a round whose seed is not frozen.
Next: `state/openings_store.py`, `participant/audits.py`.
"""

from collections.abc import Iterator
from typing import Final

from troth_attestation.header import Header
from troth_client.audit.drawn import frozen_seed, sampled_payload
from troth_client.audit.sending import Purpose, send
from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.state.audit_state import AuditState
from troth_client.state.audit_tracker import asked_for
from troth_client.state.errors import ResidualLostError
from troth_client.state.round_state import RoundState
from troth_client.state.work import TrainerWork
from troth_client.transport.errors import TransportError
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundView, SeedStatus

LONGEST_PAUSE: Final = 32
"""Slots between two searches for a lost header, at most."""


def rounds_to_open(
    chain: RunChain, state: RoundState, audits: AuditState, view: NetworkView
) -> Iterator[RoundView]:
    """Yield our rounds whose frozen seed asks for openings; release rounds that no longer need u.

    A round is released only when its seed is final: until then a fork may draw the seed anew.
    """
    oldest = view.run.round - view.run.params.ring
    for number in state.archive.waiting():
        round_ = audits.tracker.round(number)
        if round_ is None:
            is_done = number <= oldest
        elif is_asked(chain, audits, view, round_):
            is_done = False
            yield round_
        else:
            is_done = audits.tracker.is_final(round_, view)
        if is_done:
            state.archive.release(number)


def is_asked(chain: RunChain, audits: AuditState, view: NetworkView, round_: RoundView) -> bool:
    """Return whether this round's seed asks for our openings and they are not on chain yet.

    Or they are, and the set is lost here: while u lies here, it is made again.
    """
    if round_.seed_status != SeedStatus.FROZEN or chain.index not in asked_for(round_):
        return False
    audit = audits.tracker.find(round_.round, chain.index)
    if audit is not None and audit.openings_root != ZERO_DIGEST:
        return (round_.round, chain.index) not in audits.openings.held
    if run_clock(view.run, view.slot) > round_.freeze_clock + view.run.params.openings_slots:
        return False
    return audit is not None or not bitmap.has(round_.audited, chain.index)


async def show_openings(
    submissions: Submissions, audits: AuditState, work: TrainerWork, round_: RoundView
) -> None:
    """Open the drawn tiles of one of our rounds, serve them and post their root if none is."""
    chain, state = submissions.chain, submissions.state
    header = await _header(submissions, audits, round_)
    sampled = sampled_payload(
        frozen_seed(round_), header, state.num_tiles, state.config.judge.openings_tiles
    )
    try:
        root = await state.runtime.compute(work.open_tiles, sampled)
    except ResidualLostError as error:
        chain.events.emit("openings_lost", round=round_.round, reason=str(error))
        state.archive.release(RoundIndex(round_.round))
        return
    audit = audits.tracker.find(round_.round, chain.index)
    if audit is not None and audit.openings_root != ZERO_DIGEST:
        return
    post = make.post_openings(chain.at, chain.payer, round_.round, chain.index, root)
    purpose = Purpose("openings_posted", (round_.round, chain.index, int(AuditKind.WORK)))
    await send(chain, audits.tracker, audits.tracker.view, post, purpose)


async def _header(submissions: Submissions, audits: AuditState, round_: RoundView) -> Header:
    """Return our header of a round. Where this machine has lost it, ask others until one has it."""
    chain, pause = submissions.chain, 1
    while True:
        try:
            return await submissions.header(round_, audits.tracker.view, chain.index)
        except TransportError as error:
            chain.events.emit("openings_delayed", round=round_.round, reason=str(error))
        for _ in range(pause):
            await chain.runtime.wait()
        pause = min(2 * pause, LONGEST_PAUSE)
