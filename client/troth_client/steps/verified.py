"""Verified states: weights on our own disk whose root the chain names.

Owns: where a replay may start. A root that we computed and that is canonical needs no more proof;
one that only we computed does: after a restart it may rest on an inclusion that was corrected
meanwhile, on the wrong side of a halt, or on a bit that flipped.
Never: takes weights from others. Next: `replay.py`.
"""

import torch

from troth_attestation.state import state_root
from troth_client.participant.peer import Peer
from troth_client.storage.entries import WeightState
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundFlag


async def load_verified(peer: Peer, view: NetworkView, at_most: int) -> bool:
    """Load the newest stored state of a round up to `at_most` whose root the chain names.

    Returns False, leaving the replica alone, if there is none. A file that does not hash to the
    root saved with it is reported and passed over.
    """
    rounds = [r for r in peer.store.weight_rounds() if r <= at_most]
    roots = await _roots_on_chain(peer, view, rounds)
    for round_ in reversed(rounds):
        state = peer.store.load_weights(round_) if round_ in roots else None
        if state is None or state.state_root != roots[round_] or not _is_sound(peer, state):
            continue
        _restore(peer, view, state)
        return True
    return False


async def start_from_disk(peer: Peer, view: NetworkView) -> None:
    """After a start: replace an unverified newest state by the newest verified one.

    Where the chain names no root of ours any more, the newest state stays: the replay that follows
    says what is missing.
    """
    if peer.replica.round == 0:
        return
    newest = peer.replica.round
    is_verified = await load_verified(peer, view, newest)
    peer.events.emit("resumed", round=newest, verified=peer.replica.round if is_verified else None)


async def _roots_on_chain(peer: Peer, view: NetworkView, rounds: list[int]) -> dict[int, bytes]:
    """Return the roots that the chain names, of those rounds."""
    run = view.run
    in_ring = [r for r in rounds if run.round - run.params.ring < r < run.round]
    accounts = await peer.chain.read_rounds(peer.at.run, in_ring) if in_ring else []
    named: dict[int, bytes] = {
        account.round: account.canonical_root
        for account in accounts
        if account is not None and account.flags & RoundFlag.CLOSED
    }
    named |= {run.root_round: run.root, RoundIndex(0): run.genesis_root}
    return {round_: root for round_, root in named.items() if root != ZERO_DIGEST}


def _is_sound(peer: Peer, state: WeightState) -> bool:
    """Whether saved weights hash to the root saved with them; an event says if they do not."""
    config_hash = peer.config.config_hash()
    found = state_root(state.tensors, state.round, state.cursor, config_hash)
    if found == state.state_root:
        return True
    peer.events.emit(
        "state_damaged", round=state.round, expected=state.state_root.hex(), found=found.hex()
    )
    return False


def _restore(peer: Peer, view: NetworkView, state: WeightState) -> None:
    weights = {name: torch.from_numpy(array.copy()) for name, array in state.tensors.items()}
    peer.replica.restore(weights, RoundIndex(state.round), state.cursor)
    if state.round == view.run.restart_round:
        # Only the state that was taken up at a restart ever becomes canonical at that round.
        peer.replica.restart_round = view.run.restart_round
