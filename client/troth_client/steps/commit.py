"""Commit: first the disk, then the chain.

Owns: the order of these two, and that a round is committed to once. Never: sends the payload
anywhere; `publish.py` does, when the chain says that it may.
Next: `publish.py`.
"""

from solders.instruction import Instruction

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_client.participant.peer import Peer
from troth_client.state.records import RoundPlan
from troth_client.steps.observe import look
from troth_client.storage.entries import Submission
from troth_client.telemetry.spans import timed
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView


@timed("commit")
async def commit(peer: Peer, plan: RoundPlan, submission: Submission | None) -> None:
    """Store the submission, then commit to its header's hash and vote for our root.

    The last commit of a round carries the transition to Attest in the same transaction. A commit
    that comes too late is reported and nothing else: the round goes on without it.
    """
    if submission is None:
        return
    header = headers.decode(submission.header)
    view = await look(peer)
    round_ = view.round
    if round_ is None or round_.round != plan.round:
        return
    if bitmap.has(round_.committed, peer.index):
        if round_.slots[peer.index].header_hash != headers.header_hash(header):
            # This machine lost what it had committed to: what it made now is worth nothing.
            peer.residual.proposal = None
            peer.events.emit("commit_lost", round=plan.round)
        return
    if view.run.phase != Phase.COMMIT or not _is_current(peer, header):
        peer.events.emit("commit_skipped", round=plan.round, phase=view.run.phase.name)
        return
    if peer.store.load_submission(plan.round) is None:
        entry = peer.residual.entry()
        peer.store.save_submission(submission, entry)
        peer.archive.put(entry)
    await _send(peer, plan, view, header)


async def _send(peer: Peer, plan: RoundPlan, view: NetworkView, header: Header) -> None:
    session = peer.identity.session
    vote = root_vote(peer.run, plan.round, header.owner, header.state_root)
    committing = instructions.commit_payload(
        peer.at, session.pubkey(), peer.index, plan.round, headers.header_hash(header), vote
    )
    try:
        sent = await peer.chain.send_carrying([committing], next_phase(peer, view), [session])
    except ProgramRefusedError as error:
        peer.events.emit("commit_refused", round=plan.round, name=error.name, reason=str(error))
        return
    peer.events.emit("committed", round=plan.round, fee=sent.fee_lamports, slot=sent.slot)


def _is_current(peer: Peer, header: Header) -> bool:
    """Tell whether a header, perhaps of before a restart, still says what we would say now.

    Another session key signs now, or a correction changed the weights: voting for them would be
    voting for a wrong root.
    """
    found = (header.state_root, header.session)
    return found == (peer.replica.root(), peer.identity.session_address)


def next_phase(peer: Peer, view: NetworkView) -> list[Instruction]:
    """Return the tick that our action makes due, if everyone else has acted already."""
    who = progress.attendance(view)
    if who.missing != bitmap.from_indices([peer.index]):
        return []
    return [instructions.tick(peer.at, peer.identity.session.pubkey(), view.run.round)]
