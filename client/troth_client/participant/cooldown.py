"""Cooldown: vote for the current root, so that it becomes the checkpoint (section 3).

Owns: the root-only vote. Never: a payload; there is none in this step.
Next: `steps/crank.py` closes it.
"""

from troth_client.participant.peer import Peer
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundFlag


async def vote_root(peer: Peer, view: NetworkView) -> None:
    """Commit to the root of our weights, once, while the root-only step is open."""
    round_ = view.round
    if round_ is None or not round_.flags & RoundFlag.ROOT_ONLY:
        return
    is_ours = bitmap.has(round_.trainers & ~round_.committed, peer.index)
    if not is_ours or peer.replica.round != round_.round or progress.is_transition_due(view):
        return
    session = peer.identity.session
    own = root_vote(peer.run, round_.round, peer.identity.owner_address, peer.replica.root())
    vote = instructions.vote_root(peer.at, session.pubkey(), peer.index, round_.round, own)
    try:
        sent = await peer.chain.send([vote], [session])
    except ProgramRefusedError as error:
        peer.events.emit("root_vote_refused", round=round_.round, name=error.name)
    else:
        peer.events.emit("root_voted", round=round_.round, fee=sent.fee_lamports)
