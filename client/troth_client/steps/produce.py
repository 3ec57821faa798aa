"""Train and encode: from assigned sequences to a signed payload.

Owns: the order gradient -> tiles -> DCT -> u -> top k -> bytes -> header, and what happens to a
gradient that is not finite or bytes that we would not accept ourselves (nothing is sent, the run
goes on). Never: talks to the chain or to peers. Next: `commit.py`.
"""

import asyncio

from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_attestation.state import data_root
from troth_client.compression import codec
from troth_client.compression.dct import dct2
from troth_client.compression.errors import MalformedPayloadError, NonFiniteError
from troth_client.participant.peer import Peer
from troth_client.state.records import RoundPlan
from troth_client.state.residual_state import Momentum, Proposal
from troth_client.storage.entries import Submission
from troth_client.telemetry.spans import timed
from troth_client.train import errors as train_errors
from troth_client.train.step import Gradient, gradient
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import NONE, Address, Digest


@timed("train")
async def train(peer: Peer, plan: RoundPlan) -> Gradient | None:
    """Return the clipped gradient of the assigned sequences at w_r.

    None where there is nothing to compute: no trainer, a submission of this round on disk from
    before a restart, or a gradient that is not finite. The state root is hashed meanwhile.
    """
    if not (plan.is_trainer and plan.is_commit_open):
        return None
    if peer.store.load_submission(plan.round) is not None:
        return None
    batch = await peer.clock.compute(peer.data.sequences, plan.sequences)
    settings = peer.config.train
    learning = peer.clock.compute(
        gradient,
        peer.model,
        batch,
        settings.microbatch_sequences,
        settings.clip_micro,
        peer.device,
    )
    hashing = peer.clock.compute(peer.replica.root)
    # Both are waited for whatever happens: neither may still read the weights when they change.
    found, root = await asyncio.gather(learning, hashing, return_exceptions=True)
    if isinstance(found, train_errors.NonFiniteError):
        peer.events.emit("gradient_refused", round=plan.round, reason=str(found))
        return None
    if isinstance(found, BaseException):
        raise found
    if isinstance(root, BaseException):
        raise root
    peer.events.emit("trained", round=plan.round, loss_micro=found.mean_loss_micro)
    return found


@timed("encode")
async def encode(peer: Peer, plan: RoundPlan, found: Gradient | None) -> Submission | None:
    """Return the signed submission of this round; the one on disk after a restart; else None."""
    if not plan.is_trainer:
        return None
    if found is None:
        return peer.store.load_submission(plan.round)
    momentum = peer.residual.begin(plan.previous_included)
    try:
        proposal = await peer.clock.compute(_propose, peer, plan, found)
        payload = await peer.clock.compute(_payload, peer, proposal)
    except (NonFiniteError, MalformedPayloadError) as error:
        peer.residual.proposal = None
        peer.events.emit("gradient_refused", round=plan.round, reason=str(error))
        return None
    header = _header(peer, plan, momentum, proposal, payload, found.mean_loss_micro)
    signature = headers.sign(header, peer.identity.session_seed)
    submission = Submission(plan.round, peer.index, headers.encode(header), signature, payload)
    peer.events.emit(
        "encoded",
        round=plan.round,
        payload_bytes=len(payload),
        previous=None if momentum.previous == NONE else momentum.previous,
    )
    return submission


def _payload(peer: Peer, proposal: Proposal) -> bytes:
    """Return the canonical bytes, decoded once as everybody else will: a malformed one is P2."""
    payload = codec.encode(proposal.sent)
    codec.decode(payload, peer.replica.layout.num_tiles, peer.config.demo.k)
    return payload


def _propose(peer: Peer, plan: RoundPlan, found: Gradient) -> Proposal:
    tiles = peer.replica.layout.to_tiles(found.tensors)
    return peer.residual.propose(plan.round, dct2(tiles).cpu(), peer.config.demo.k)


def _header(
    peer: Peer,
    plan: RoundPlan,
    momentum: Momentum,
    proposal: Proposal,
    payload: bytes,
    mean_loss: int,
) -> Header:
    return Header(
        genesis_hash=peer.genesis_hash,
        program_id=Address(bytes(peer.at.program)),
        run=peer.run,
        epoch=plan.epoch,
        round=plan.round,
        index=peer.index,
        owner=peer.identity.owner_address,
        session=peer.identity.session_address,
        config_hash=peer.config.config_hash(),
        state_root=peer.replica.root(),
        data_root=data_root(plan.sequences),
        previous_included=momentum.previous,
        residual_before=momentum.root,
        residual_after=proposal.root,
        payload_root=Digest(codec.payload_root(payload)),
        payload_bytes=len(payload),
        mean_loss=mean_loss,
        salt=H("troth:salt", peer.store.salt_key, u64(plan.round)),
    )
