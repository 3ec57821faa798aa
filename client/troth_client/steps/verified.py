"""Verified states: weights on our own disk whose root the chain names.

Owns: the states from which a replay may start, and taking one up. A root that we computed and
that is canonical needs no more proof. A root that only we computed does need proof. After a
restart it may rest on an inclusion that was corrected meanwhile, on a state from before a halt, or
on a flipped bit.
Never: takes weights from others. Next: `replay.py`; `restore.py`, which takes up such weights.
"""

from collections.abc import Mapping

import numpy as np
import torch

from troth_attestation.pieces import Float32, PieceList, StateName, pieces_of
from troth_client.network.chain import RunChain
from troth_client.state.round_state import RoundState
from troth_client.storage.entries import WeightState
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundFlag


async def load_verified(
    chain: RunChain, state: RoundState, view: NetworkView, at_most: int
) -> bool:
    """Load the newest stored state of a round up to `at_most` whose root the chain names.

    A state whose following rounds have left the ring is of no use, unless it is that of `at_most`.
    Returns False, leaving the replica alone, if there is none. A file that does not hash to the
    root saved with it is reported and passed over.
    """
    ring = view.run.params.ring
    rounds = [
        round_
        for round_ in state.store.weight_rounds()
        if round_ == at_most or (round_ < at_most and round_ + ring > view.run.round)
    ]
    roots = await _roots_on_chain(chain, view, rounds)
    for round_ in reversed(rounds):
        if round_ not in roots:
            continue
        found = await state.runtime.compute(state.store.load_weights, round_)
        if found is None or found.state_root != roots[round_]:
            continue
        pieces = await state.runtime.compute(_pieces, state, found)
        if pieces.root == found.state_root:
            await state.runtime.compute(take_up, state, view, found.tensors, pieces)
            return True
        state.events.emit(
            "state_damaged",
            round=round_,
            expected=found.state_root.hex(),
            found=pieces.root.hex(),
        )
    return False


def take_up(
    state: RoundState, view: NetworkView, weights: Mapping[str, Float32], pieces: PieceList
) -> None:
    """Make weights, float32 by name, those of the replica; `pieces` are theirs, under a root.

    The root must be one that the chain names. Copies the model: for a thread.
    """
    tensors = {
        name: torch.from_numpy(np.require(array, None, ["C", "W"]))
        for name, array in weights.items()
    }
    round_ = RoundIndex(pieces.state.round)
    state.replica.restore(tensors, round_, pieces.state.cursor, pieces)
    state.has_weights = True
    if round_ == view.run.restart_round:
        # Only the state that a restart loaded ever becomes canonical at that round.
        state.replica.restart_round = view.run.restart_round


async def start_from_disk(chain: RunChain, state: RoundState, view: NetworkView) -> None:
    """After a start: replace an unverified newest state by the newest verified one.

    If the chain names no root of ours any more, the newest state stays. The replay that follows
    reports what is missing.
    """
    newest = state.replica.round
    if newest > 0:
        is_verified = await load_verified(chain, state, view, newest)
        verified = state.replica.round if is_verified else None
        state.events.emit("resumed", round=newest, verified=verified)
    # The participant that closes a round proposes this root; it is hashed once, here.
    await state.runtime.compute(state.replica.root)


async def _roots_on_chain(
    chain: RunChain, view: NetworkView, rounds: list[int]
) -> dict[int, bytes]:
    """Return the roots that the chain names, of those rounds."""
    run = view.run
    in_ring = [r for r in rounds if run.round - run.params.ring < r < run.round]
    accounts = await chain.read_rounds(in_ring) if in_ring else []
    named: dict[int, bytes] = {
        account.round: account.canonical_root
        for account in accounts
        if account is not None and account.flags & RoundFlag.CLOSED
    }
    named |= {run.root_round: run.root, RoundIndex(0): run.genesis_root}
    return {round_: root for round_, root in named.items() if root != ZERO_DIGEST}


def _pieces(state: RoundState, saved: WeightState) -> PieceList:
    return pieces_of(
        saved.tensors, StateName(saved.round, saved.cursor, state.config.config_hash())
    )
