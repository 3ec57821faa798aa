"""Publish: serve our submission when Commit is over, and hand copies to other holders.

Owns: the first moment at which bytes of a round may leave the machine, and the choice of holders.
That moment is when the chain shows the end of the round's Commit phase (section 4).
Never: serves a submission that is not the committed one.
Next: `gather.py`, which pushes the copies while it collects.
"""

from collections.abc import Sequence

from troth_attestation import header as headers
from troth_client.network.chain import RunChain
from troth_client.network.errors import out_of_ring
from troth_client.network.expecting import is_commit_over
from troth_client.network.submissions import Submissions
from troth_client.state.records import Published, RoundPlan
from troth_client.storage.entries import Submission
from troth_client.telemetry.spans import timed
from troth_client.transport.errors import HolderClosedError, HolderRefusedError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import NetworkView, RoundView

MIN_HOLDERS = 2
"""How many other holders a payload is pushed to, so that it outlives its maker (section 4)."""


@timed("publish")
async def publish(
    chain: RunChain, submissions: Submissions, plan: RoundPlan, submission: Submission | None
) -> Published:
    """Wait until the Commit phase of the round has ended on chain, then serve our submission.

    Returns the round as the chain shows it at that moment: its commitments no longer change.
    """
    view = await chain.until(lambda view: is_commit_over(view, plan.round))
    round_ = await _committed_round(chain, plan, view)
    is_ours = submission is not None and _is_committed(chain, round_, submission)
    if submission is not None and is_ours:
        submissions.hold(submission)
    submissions.transport.release(plan.round)
    submissions.expect_pushes(round_, view)
    if not is_ours:
        return Published(round_, ())
    holders = await submissions.members(view)
    shuffled = submissions.random.sample(holders, len(holders))
    return Published(round_, tuple(submissions.transport.ranked(shuffled)), is_ours=True)


class Outbox:
    """The copies of our payload for `num` of these holders; empty if there is nobody to ask."""

    def __init__(
        self, submissions: Submissions, round_: int, holders: Sequence[str], num: int
    ) -> None:
        self._transport = submissions.transport
        self._events = submissions.state.events
        self._round = round_
        self._waiting = list(holders)
        self._num_missing = min(num, len(self._waiting))
        self._may_be_taken = bool(holders)
        self.num_taken = 0

    @property
    def is_empty(self) -> bool:
        """Whether enough others have taken it, or there is nothing to hand out."""
        return self._num_missing == 0

    @property
    def may_be_taken(self) -> bool:
        """Whether somebody who answers has not taken it yet, or nobody was asked so far."""
        return self._may_be_taken and not self.is_empty

    async def offer(self) -> None:
        """Offer it to as many as are missing; a holder that refuses goes to the end of the line.

        One that takes nothing from us is asked no more.
        """
        offered = self._waiting[: self._num_missing]
        results = await self._transport.push(self._round, offered)
        taken = {result.holder for result in results if result.error is None}
        closed = {r.holder for r in results if isinstance(r.error, HolderClosedError)}
        refused = {r.holder for r in results if isinstance(r.error, HolderRefusedError)} - closed
        self._may_be_taken = bool(refused)
        again = [holder for holder in offered if holder not in taken | closed]
        self._waiting = self._waiting[len(offered) :] + again
        self._num_missing = min(self._num_missing - len(taken), len(self._waiting))
        self.num_taken += len(taken)
        if self.is_empty and self.num_taken:
            self._events.emit("published", round=self._round)


def outboxes(submissions: Submissions, published: Published) -> list[Outbox]:
    """Return what is to be handed out: a copy for each relay, and one for some members.

    Apart, so that a relay that hangs delays no member. Nothing if we committed to nothing.
    """
    if not published.is_ours:
        return []
    round_, relays = published.round.round, submissions.relays
    return [
        Outbox(submissions, round_, published.holders, MIN_HOLDERS),
        Outbox(submissions, round_, relays, len(relays)),
    ]


async def _committed_round(chain: RunChain, plan: RoundPlan, view: NetworkView) -> RoundView:
    """Return the account of the round after its Commit phase."""
    while True:
        is_open = view.run.round == plan.round
        round_ = view.round if is_open else await chain.read_round(plan.round)
        if round_ is not None:
            return round_
        if view.run.round >= plan.round + view.run.params.ring:
            raise out_of_ring(plan.round, view)
        view = await chain.watch.next()


def _is_committed(chain: RunChain, round_: RoundView, submission: Submission) -> bool:
    committed = round_.ballots[chain.index].header_hash
    ours = headers.header_hash(headers.decode(submission.header))
    return bitmap.has(round_.committed, chain.index) and committed == ours
