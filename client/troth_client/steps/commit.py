"""Commit and publish: first the disk, then the chain, and the peers only when Commit is over.

Owns: the order of these three. Never: lets a byte of the payload leave the machine before the
chain shows that the Commit phase has ended (section 4), nor commits twice.
Next: `gather.py`.
"""

from solders.instruction import Instruction

from troth_attestation import header as headers
from troth_client.peer import Peer
from troth_client.steps.errors import out_of_ring
from troth_client.steps.fetch import endpoints
from troth_client.steps.observe import look, observe, read_round
from troth_client.steps.records import RoundPlan
from troth_client.store.entries import Submission
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap, progress
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundView

MIN_HOLDERS = 2
"""How many other holders a payload is pushed to, so that it outlives its maker (section 4)."""


async def commit(peer: Peer, plan: RoundPlan, submission: Submission | None) -> None:
    """Store the submission, then commit its header's hash and vote for our root.

    The last commit of a round carries the transition to Attest in the same transaction. A commit
    that comes too late is reported and nothing else: the round goes on without it.
    """
    if submission is None:
        return
    if peer.store.load_submission(plan.round) is None:
        peer.store.save_submission(submission, peer.residual.entry())
    view = await look(peer)
    round_ = view.round
    if round_ is None or round_.round != plan.round or bitmap.has(round_.committed, peer.index):
        return
    header = headers.decode(submission.header)
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


async def publish(peer: Peer, plan: RoundPlan, submission: Submission | None) -> RoundView:
    """Wait until the Commit phase of the round has ended on chain, then serve and push.

    Returns the round as the chain shows it then; its commitments no longer change.
    """
    view = await observe(peer, lambda view: _is_commit_over(view, plan.round))
    round_ = view.round if view.run.round == plan.round else await read_round(peer, plan.round)
    if round_ is None:
        raise out_of_ring(plan.round, view)
    if submission is not None and bitmap.has(round_.committed, peer.index):
        hold(peer, submission)
    peer.transport.release(plan.round)
    if submission is not None and bitmap.has(round_.committed, peer.index):
        holders = await endpoints(peer, view, peer.index)
        chosen = peer.random.sample(holders, min(MIN_HOLDERS, len(holders)))
        pushed = await peer.transport.push(plan.round, chosen)
        num_pushed = sum(result.error is None for result in pushed)
        peer.events.emit("published", round=plan.round, pushed=num_pushed)
    return round_


def hold(peer: Peer, submission: Submission) -> None:
    """Put a submission's header and payload on our shelf; nobody reads them before release."""
    header = headers.decode(submission.header)
    of_round = submission.round
    signed = BlobId(of_round, BlobKind.HEADER, headers.header_hash(header))
    peer.transport.hold(signed, submission.header + submission.signature)
    payload = BlobId(of_round, BlobKind.PAYLOAD, header.payload_root)
    peer.transport.hold(payload, submission.payload)


def next_phase(peer: Peer, view: NetworkView) -> list[Instruction]:
    """Return the tick that our action makes due, if everyone else has acted already."""
    who = progress.attendance(view)
    if who.missing != bitmap.from_indices([peer.index]):
        return []
    return [instructions.tick(peer.at, peer.identity.session.pubkey(), view.run.round)]


def _is_commit_over(view: NetworkView, round_: int) -> bool:
    return view.run.round > round_ or view.run.phase != Phase.COMMIT
