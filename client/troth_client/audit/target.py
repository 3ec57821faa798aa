"""A sampled trainer shows its tiles: the opening set goes onto the desk, its root onto the chain.

Owns: when that is due, and when u of a round need not be kept any more.
Never: opens tiles of a round whose seed is not frozen. Next: `openings_desk.py`.
"""

from troth_attestation import header as headers
from troth_client.audit.docket import asked_for
from troth_client.audit.drawn import frozen_seed, sampled_payload
from troth_client.audit.errors import ResidualLostError
from troth_client.audit.sending import Purpose, send
from troth_client.peer import Peer
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundView, SeedStatus


async def show_openings(peer: Peer, view: NetworkView) -> None:
    """Post the openings root of every round of ours that a frozen seed asks for."""
    oldest = view.run.round - view.run.params.ring
    for number in peer.archive.waiting():
        round_ = peer.docket.round(number)
        if round_ is not None:
            await _show(peer, view, round_)
        elif number <= oldest:
            peer.archive.release(number)


async def _show(peer: Peer, view: NetworkView, round_: RoundView) -> None:
    number = RoundIndex(round_.round)
    is_frozen = round_.seed_status == SeedStatus.FROZEN
    is_late = run_clock(view.run, view.slot) > round_.freeze_clock + view.run.params.openings_slots
    if not is_frozen or is_late or peer.index not in asked_for(round_):
        peer.archive.release(number)
        return
    audit = peer.docket.find(number, peer.index)
    if audit is not None and audit.openings_root != ZERO_DIGEST:
        peer.archive.release(number)
        return
    root = peer.desk.find(number, peer.index) or await _make(peer, round_)
    if root is not None:
        await _post(peer, view, number, root)


async def _make(peer: Peer, round_: RoundView) -> Digest | None:
    submission = peer.store.load_submission(round_.round)
    try:
        if submission is None:
            raise ResidualLostError(
                f"our submission of round {round_.round}", "none on disk", "Check the disk."
            )
        header = headers.decode(submission.header)
        num_tiles = peer.replica.layout.num_tiles
        sampled = sampled_payload(frozen_seed(round_), header, num_tiles)
        after, before = await peer.clock.compute(peer.archive.pair, sampled)
    except ResidualLostError as error:
        peer.events.emit("openings_lost", round=round_.round, reason=str(error))
        peer.archive.release(RoundIndex(round_.round))
        return None
    return await peer.clock.compute(peer.desk.make, sampled, after, before)


async def _post(peer: Peer, view: NetworkView, round_: int, root: Digest) -> None:
    session = peer.identity.session.pubkey()
    post = make.post_openings(peer.at, session, round_, peer.index, root)
    purpose = Purpose("openings_posted", (round_, peer.index, int(AuditKind.WORK)))
    await send(peer, view, post, purpose)
