"""Commit: first the disk, then the chain.

Owns: the order of these two, and that a round is committed to once. Never: sends the payload;
`publish.py` does, once the chain shows that Commit is over.
Next: `publish.py`.
"""

from functools import partial

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_client.network.chain import RunChain
from troth_client.network.sends import Due
from troth_client.state.errors import ResidualLostError
from troth_client.state.records import RoundPlan
from troth_client.state.round_state import RoundState
from troth_client.steps.transitions import advance_by
from troth_client.storage.entries import ResidualEntry, Submission
from troth_client.telemetry.spans import timed
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import Refusal
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView


@timed("commit")
async def commit(
    chain: RunChain, state: RoundState, plan: RoundPlan, submission: Submission | None
) -> None:
    """Store the submission, then commit to its header's hash and vote for our root.

    The last commit of a round also moves it to Attest, in the same transaction. A commit that comes
    too late is only reported: the round goes on without it.
    """
    if submission is None:
        return
    header = headers.decode(submission.header)
    view = await chain.look()
    round_ = view.round
    if round_ is None or round_.round != plan.round:
        return
    if bitmap.has(round_.committed, chain.index):
        if round_.ballots[chain.index].header_hash != headers.header_hash(header):
            # This machine lost what it had committed to: what it made now is worth nothing.
            state.residual.proposal = None
            state.events.emit("commit_lost", round=plan.round)
        return
    if view.run.phase != Phase.COMMIT or not is_current(chain, state, header):
        state.events.emit("commit_skipped", round=plan.round, phase=view.run.phase.name)
        return
    try:
        entry = await state.runtime.compute(_keep, state, submission, header)
    except ResidualLostError as error:
        # An audit of this round would find no openings, which costs more than the round earns.
        state.events.emit("commit_skipped", round=plan.round, reason=str(error))
        return
    if entry is not None:
        state.archive.put(entry)
    await chain.send_awaited(
        lambda now: _is_awaited(chain, plan, now),
        partial(_send, chain, plan, view, header),
        partial(_refused, chain, plan),
    )


def _keep(state: RoundState, submission: Submission, header: Header) -> ResidualEntry | None:
    """Put the submission and the u behind it on disk, a file as large as the model; return u.

    Returns None where they were put there before, as a rule by a process that stopped. Raises
    ResidualLostError where that u, or the one before it, is lost: no audit could be answered.
    """
    if state.store.load_submission(submission.round) is not None:
        state.archive.load(submission.round, header.residual_after)
        if header.previous_included != NONE:  # openings show that one, too
            state.archive.load(header.previous_included, header.residual_before)
        return None
    entry = state.residual.entry()
    state.store.save_submission(submission, entry)
    return entry


def _is_awaited(chain: RunChain, plan: RoundPlan, view: NetworkView) -> bool:
    """Whether the chain shows that the round waits for our commitment."""
    round_ = view.round
    if round_ is None or round_.round != plan.round or view.run.phase != Phase.COMMIT:
        return False
    return not bitmap.has(round_.committed, chain.index)


async def _send(
    chain: RunChain, plan: RoundPlan, view: NetworkView, header: Header, due: Due
) -> None:
    vote = root_vote(chain.run, plan.round, header.owner, header.state_root)
    committing = instructions.commit_payload(
        chain.at, chain.payer, chain.index, plan.round, headers.header_hash(header), vote
    )
    sent = await chain.send_carrying(committing, advance_by(chain, view), due)
    chain.events.emit("committed", round=plan.round, fee=sent.fee_lamports, slot=sent.slot)


def _refused(chain: RunChain, plan: RoundPlan, error: Refusal) -> None:
    chain.events.emit("commit_refused", round=plan.round, name=error.name, reason=str(error))


def is_current(chain: RunChain, state: RoundState, header: Header) -> bool:
    """Return whether a stored header is still the one that we would sign now.

    It is not if another session key signs now, or if a correction changed the weights: the header
    would then vote for a wrong root.
    """
    found = (header.state_root, header.session)
    return found == (state.replica.root(), chain.identity.session_address)
