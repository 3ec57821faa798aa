"""Train and encode: from assigned sequences to a signed payload.

Owns: the order gradient, proposal, bytes, header. If a batch has no finite gradient, or if we would
not accept the bytes ourselves, nothing is sent and the run goes on. Nor is anything sent of a round
for which the memory does not suffice.
Never: talks to the chain or to other participants.
Next: `state/work.py` for the computations, `commit.py`.
"""

import asyncio
from dataclasses import dataclass

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_attestation.state import data_root
from troth_client.compression.errors import MalformedPayloadError, NonFiniteError
from troth_client.network.chain import RunChain
from troth_client.runtime.memory import first_line
from troth_client.state.records import RoundPlan
from troth_client.state.residual_state import Momentum, Proposal
from troth_client.state.round_state import RoundState
from troth_client.state.work import EncodedPayload, TrainerWork
from troth_client.storage.entries import Submission
from troth_client.telemetry.spans import timed
from troth_client.train.errors import NO_GRADIENT
from troth_client.train.memory import ADVICE, give_back
from troth_client.train.step import Gradient
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import NONE, Address


@dataclass(frozen=True, slots=True)
class Made:
    """The contents of a header: the momentum before, u, the payload, micro-nats per token."""

    momentum: Momentum
    proposal: Proposal
    payload: EncodedPayload
    mean_loss_micro: int


@timed("train")
async def train(state: RoundState, work: TrainerWork, plan: RoundPlan) -> Gradient | None:
    """Return the clipped gradient of the assigned sequences at w_r.

    Returns None if we are not a trainer, if a submission of this round is on disk from before a
    restart, or if the batch has no gradient or finds no memory. The state root is hashed
    meanwhile.
    """
    if not (plan.is_trainer and plan.is_commit_open):
        return None
    if state.store.load_submission(plan.round) is not None:
        return None
    try:
        batch = await state.runtime.compute(state.data.sequences, plan.sequences)
    except NO_GRADIENT as error:
        _refuse(state, plan, error)
        return None
    learning = state.runtime.compute(work.gradient, batch)
    hashing = state.runtime.compute(state.replica.root)
    # Wait for both in every case: neither may still read the weights when they change.
    found, root = await asyncio.gather(learning, hashing, return_exceptions=True)
    if isinstance(found, NO_GRADIENT):
        _refuse(state, plan, found)
        return None
    if isinstance(found, MemoryError):
        _report_memory(state, plan, found)
        return None
    if isinstance(found, BaseException):
        raise found
    if isinstance(root, BaseException):
        raise root
    state.events.emit("trained", round=plan.round, loss_micro=found.mean_loss_micro)
    return found


@timed("encode")
async def encode(
    state: RoundState, work: TrainerWork, chain: RunChain, plan: RoundPlan, found: Gradient | None
) -> Submission | None:
    """Return the signed submission of this round; the one on disk after a restart; else None."""
    if not plan.is_trainer:
        return None
    if found is None:
        return state.store.load_submission(plan.round)
    # May read a u, which is as large as the model.
    momentum = await state.runtime.compute(state.residual.begin, plan.previous_included)
    try:
        proposal = await state.runtime.compute(work.propose, plan.round, found)
        payload = await state.runtime.compute(work.encode, proposal)
    except (NonFiniteError, MalformedPayloadError) as error:
        state.residual.proposal = None
        _refuse(state, plan, error)
        return None
    except MemoryError as error:
        state.residual.proposal = None
        _report_memory(state, plan, error)
        return None
    made = Made(momentum, proposal, payload, found.mean_loss_micro)
    header = header_of(state, chain, plan, made)
    signature = headers.sign(header, chain.identity.session_seed)
    submission = Submission(
        plan.round, chain.index, headers.encode(header), signature, payload.data
    )
    state.events.emit(
        "encoded",
        round=plan.round,
        payload_bytes=len(payload.data),
        previous=None if momentum.previous == NONE else momentum.previous,
    )
    return submission


def _refuse(state: RoundState, plan: RoundPlan, error: Exception) -> None:
    """Report that nothing is sent in a round."""
    state.events.emit("gradient_refused", round=plan.round, reason=str(error))


def _report_memory(state: RoundState, plan: RoundPlan, error: MemoryError) -> None:
    """Report that memory did not suffice for a round."""
    give_back()
    state.events.emit("out_of_memory", round=plan.round, reason=first_line(error), advice=ADVICE)


def header_of(state: RoundState, chain: RunChain, plan: RoundPlan, made: Made) -> Header:
    """Return the header of a payload that was made for `plan`."""
    return Header(
        genesis_hash=chain.genesis_hash,
        program_id=Address(bytes(chain.at.program)),
        run=chain.run,
        epoch=plan.epoch,
        round=plan.round,
        index=chain.index,
        owner=chain.identity.owner_address,
        session=chain.identity.session_address,
        config_hash=state.config.config_hash(),
        state_root=state.replica.root(),
        data_root=data_root(plan.sequences),
        previous_included=made.momentum.previous,
        residual_before=made.momentum.root,
        residual_after=made.proposal.root,
        payload_root=made.payload.root,
        payload_bytes=len(made.payload.data),
        mean_loss=made.mean_loss_micro,
        salt=H("troth:salt", state.store.salt_key, u64(plan.round)),
    )
