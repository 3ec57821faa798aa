"""Publish: open our shelf when Commit is over, and hand copies to other holders.

Owns: the moment from which bytes of a round may leave the machine (section 4: not before the chain
shows the end of its Commit phase), and who is offered a copy.
Never: serves a submission that is not the committed one.
Next: `gather.py`, which hands the copies out while it collects.
"""

from troth_attestation import header as headers
from troth_client.network.fetch import endpoints, expect_pushes
from troth_client.participant.peer import Peer
from troth_client.state.records import Published, RoundPlan
from troth_client.steps.errors import out_of_ring
from troth_client.steps.observe import look, observe, read_round
from troth_client.storage.entries import Submission
from troth_client.telemetry.spans import timed
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, RoundView

MIN_HOLDERS = 2
"""How many other holders a payload is pushed to, so that it outlives its maker (section 4)."""


@timed("publish")
async def publish(peer: Peer, plan: RoundPlan, submission: Submission | None) -> Published:
    """Wait until the Commit phase of the round has ended on chain, then serve what we committed.

    Returns the round as the chain shows it then: its commitments no longer change.
    """
    view = await observe(peer, lambda view: _is_commit_over(view, plan.round))
    round_ = await _committed_round(peer, plan, view)
    is_ours = submission is not None and _is_committed(peer, round_, submission)
    if submission is not None and is_ours:
        hold(peer, submission)
    peer.transport.release(plan.round)
    expect_pushes(peer, round_, view)
    if not is_ours:
        return Published(round_, ())
    holders = await endpoints(peer, view, peer.index)
    return Published(round_, tuple(peer.random.sample(holders, len(holders))))


class Outbox:
    """Our payload of a round on its way to `MIN_HOLDERS` others; empty if we committed nothing."""

    def __init__(self, peer: Peer, published: Published) -> None:
        self._peer = peer
        self._round = published.round.round
        self._waiting = list(published.holders)
        self._num_missing = min(MIN_HOLDERS, len(self._waiting))

    @property
    def is_empty(self) -> bool:
        """Whether enough others have taken it, or there is nothing to hand out."""
        return self._num_missing == 0

    async def offer(self) -> None:
        """Offer it to as many as are missing; who does not take it goes to the end of the line."""
        offered = self._waiting[: self._num_missing]
        results = await self._peer.transport.push(self._round, offered)
        taken = {result.holder for result in results if result.error is None}
        refused = [holder for holder in offered if holder not in taken]
        self._waiting = self._waiting[len(offered) :] + refused
        self._num_missing -= len(taken)
        if self.is_empty:
            self._peer.events.emit("published", round=self._round)


def hold(peer: Peer, submission: Submission) -> None:
    """Put a submission's header and payload on our shelf; nobody reads them before release."""
    header = headers.decode(submission.header)
    of_round = submission.round
    signed = BlobId(of_round, BlobKind.HEADER, headers.header_hash(header))
    peer.transport.hold(signed, submission.header + submission.signature)
    payload = BlobId(of_round, BlobKind.PAYLOAD, header.payload_root)
    peer.transport.hold(payload, submission.payload)


async def _committed_round(peer: Peer, plan: RoundPlan, view: NetworkView) -> RoundView:
    """Return the account of the round after its Commit phase."""
    while True:
        round_ = view.round if view.run.round == plan.round else await read_round(peer, plan.round)
        if round_ is not None:
            return round_
        if view.run.round >= plan.round + view.run.params.ring:
            raise out_of_ring(plan.round, view)
        await peer.clock.wait()
        view = await look(peer)


def _is_committed(peer: Peer, round_: RoundView, submission: Submission) -> bool:
    committed = round_.slots[peer.index].header_hash
    ours = headers.header_hash(headers.decode(submission.header))
    return bitmap.has(round_.committed, peer.index) and committed == ours


def _is_commit_over(view: NetworkView, round_: int) -> bool:
    """Whether the chain shows it; a node that lags behind shows an earlier round or phase."""
    run = view.run
    return run.round > round_ or (run.round == round_ and run.phase == Phase.ATTEST)
