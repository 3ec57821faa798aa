"""A sampled trainer shows its tiles: the opening set goes onto the desk, its root onto the chain.

Owns: when that is due, and when u of a round need not be kept any more.
Never: opens tiles of a round whose seed is not frozen. Next: `openings_store.py`.
"""

from troth_attestation import header as headers
from troth_client.audit.drawn import frozen_seed, sampled_payload
from troth_client.audit.sending import Purpose, send
from troth_client.audit.tracker import asked_for
from troth_client.participant.peer import Peer
from troth_client.state.errors import ResidualLostError
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundView, SeedStatus


async def show_openings(peer: Peer, view: NetworkView) -> None:
    """Post the openings root of every round of ours that a frozen seed asks for."""
    oldest = view.run.round - view.run.params.ring
    for number in peer.archive.waiting():
        round_ = peer.tracker.round(number)
        if round_ is None:
            is_done = number <= oldest
        elif _is_asked(peer, view, round_):
            is_done = False
            await _show(peer, view, round_)
        else:
            # Until then a fork may draw the seed anew, and ask for other tiles or for the first.
            is_done = peer.tracker.is_final(round_, view)
        if is_done:
            peer.archive.release(number)


def _is_asked(peer: Peer, view: NetworkView, round_: RoundView) -> bool:
    """Tell whether this round's seed asks for our openings and has not got them."""
    if round_.seed_status != SeedStatus.FROZEN or peer.index not in asked_for(round_):
        return False
    if run_clock(view.run, view.slot) > round_.freeze_clock + view.run.params.openings_slots:
        return False
    audit = peer.tracker.find(round_.round, peer.index)
    if audit is None:
        return not bitmap.has(round_.audited, peer.index)
    return audit.openings_root == ZERO_DIGEST


async def _show(peer: Peer, view: NetworkView, round_: RoundView) -> None:
    submission = peer.store.load_submission(round_.round)
    try:
        if submission is None:
            raise ResidualLostError(
                f"our submission of round {round_.round}", "none on disk", "Check the disk."
            )
        header = headers.decode(submission.header)
        num_tiles = peer.replica.layout.num_tiles
        sampled = sampled_payload(frozen_seed(round_), header, num_tiles)
        root = await peer.clock.compute(peer.desk.find_set, sampled)
        if root is None:
            after, before = await peer.clock.compute(peer.archive.pair, sampled)
            root = await peer.clock.compute(peer.desk.make, sampled, after, before)
    except ResidualLostError as error:
        peer.events.emit("openings_lost", round=round_.round, reason=str(error))
        peer.archive.release(RoundIndex(round_.round))
    else:
        await _post(peer, view, round_.round, root)


async def _post(peer: Peer, view: NetworkView, round_: int, root: Digest) -> None:
    session = peer.identity.session.pubkey()
    post = make.post_openings(peer.at, session, round_, peer.index, root)
    purpose = Purpose("openings_posted", (round_, peer.index, int(AuditKind.WORK)))
    await send(peer, view, post, purpose)
