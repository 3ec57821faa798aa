"""Settle: carry the result of the close into the residual, the weights, the store, what is served.

Owns: the end of a round on this machine, in the order of this file: carry, apply, settle.
Never: begins before `replay.check_root`. Next: `replay.py` for roots that disagree, and for rounds
that are caught up in the same order; `participant/rounds.py` for the next round.
"""

from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.state.audit_tracker import AuditTracker
from troth_client.state.records import Closure, Payloads
from troth_client.state.round_state import RoundState
from troth_client.steps.tally import tally
from troth_client.telemetry.spans import timed
from troth_coordinator.rules import bitmap


@timed("carry")
async def carry(state: RoundState, closure: Closure) -> None:
    """Make u the momentum if our payload was included.

    This comes before the weights move: until they do, a round that failed is repeated whole.
    """
    await state.runtime.compute(state.residual.settle, closure.round, closure.own_residual)


@timed("apply")
async def apply(state: RoundState, closure: Closure, payloads: Payloads) -> None:
    """Move the replica to the next round."""
    await state.runtime.compute(state.replica.apply, closure, payloads)
    state.events.emit(
        "applied",
        round=closure.round,
        included=bitmap.count(closure.included),
        void=closure.is_void,
    )


@timed("settle")
async def settle(
    chain: RunChain, submissions: Submissions, closure: Closure, tracker: AuditTracker
) -> None:
    """Save the new weights; forget old rounds.

    The weights of the run's stored root stay: a run that halts starts from them again. So does all
    that belongs to the rounds of audits under way. Others may read the weights of a closed round.
    """
    state = submissions.state
    await state.runtime.compute(state.save_weights)
    pieces = state.replica.pieces_at(closure.round)
    if pieces is not None and pieces.root == closure.canonical_root:
        state.states.show_round(pieces, state.retention.shown)
    oldest = max(0, closure.round - state.retention.weights)
    # A header is checked against the residual in its maker's last included header, however old.
    # An audit under way needs the weights, headers and payloads of its round.
    kept = {
        chain.watch.latest.run.root_round,
        state.residual.momentum.previous,
        *closure.carried,
        *tracker.held_rounds,
    }
    payloads_from = max(0, closure.round - state.retention.payloads)
    state.store.drop_before(oldest, payloads_from, keep=kept)
    state.archive.tidy(closure.round, state.residual.origins())
    submissions.transport.drop_before(payloads_from)
    chain.log.drop_before(closure.round)
    chain.events.emit(
        "round_closed",
        round=closure.round,
        included=[int(i) for i in bitmap.indices_of(closure.included)],
        void=closure.is_void,
        own=chain.is_in(closure.included),
        root=state.replica.root().hex(),
        mean_loss_micro=closure.loss.mean_micro,
        num_losses=closure.loss.num_known,
    )
    chain.events.emit("tallied", **tally(chain, submissions.transport, closure.round))
