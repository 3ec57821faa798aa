"""Replay: catch up, follow corrections, and find out who is right about a root (section 4).

Owns: moving the replica over closed rounds, rewinding when the chain corrected one, and the two
ends of a root that disagrees: replay gives the majority's root (heal) or our own (ROOT_DISPUTE).
Never: loads weights because others have them. Next: `roles/supervisor.py`, which calls it.
"""

import torch

from troth_client.peer import Peer
from troth_client.steps.aggregate import apply, collect
from troth_client.steps.errors import LaggingError, RootDisputeError, out_of_ring
from troth_client.steps.observe import look, read_round
from troth_client.steps.settle import settle
from troth_client.store.entries import WeightState
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.view import NetworkView


async def catch_up(peer: Peer, view: NetworkView) -> NetworkView:
    """Bring the replica to the round of the run, and return a view of that moment.

    Follows corrections of the last round first, crosses a restart after Halted by the weights that
    the run restarted from, and checks each canonical root it passes.
    """
    await follow_corrections(peer, view)
    while peer.replica.round < view.run.round:
        if peer.replica.round < view.run.restart_round:
            await _cross_restart(peer, view)
        else:
            closure, payloads = await collect(peer, view, peer.replica.round, {})
            await check_root(peer, closure.canonical_root)
            await apply(peer, closure, payloads)
            await settle(peer, closure)
        view = await look(peer)
    return view


async def follow_corrections(peer: Peer, view: NetworkView) -> None:
    """Re-apply rounds whose inclusion the chain has changed since we applied them.

    A strike by report_missing or a fork does that. What came later is rewound with it.
    """
    for round_ in range(peer.replica.oldest_round, peer.replica.round):
        account = await read_round(peer, round_)
        known = peer.replica.applied(RoundIndex(round_))
        if account is not None and known is not None and account.included != known:
            peer.events.emit("round_corrected", round=round_)
            peer.replica.rewind(RoundIndex(round_))
            peer.residual.rewind(RoundIndex(round_))
            peer.store.drop_after(round_)
            return


async def check_root(peer: Peer, canonical: bytes) -> None:
    """Compare our root of the replica's round with the canonical one; heal or stop.

    Zeros (a void round) say nothing. Raises RootDisputeError, LaggingError.
    """
    own, round_ = peer.replica.root(), peer.replica.round
    if canonical == own:
        peer.verified_round = round_
    if canonical in (ZERO_DIGEST, own):
        return
    peer.events.emit("root_differs", round=round_, canonical=canonical.hex(), own=own.hex())
    replayed = await _replay_to(peer, round_)
    if replayed == canonical:
        peer.events.emit("healed", round=round_)
        return
    if replayed == own:
        raise RootDisputeError(round_, canonical, own)
    raise LaggingError(
        f"replay to give root {canonical.hex()} (canonical) or {own.hex()} (before the replay)",
        f"{replayed.hex()}",
        "LAGGING: the stored weights or payloads are damaged; start again from a checkpoint.",
    )


async def _replay_to(peer: Peer, round_: int) -> bytes:
    """Load the last root that was verified here and apply the chain's bitmaps up to a round."""
    state = peer.store.newest_weights(min(peer.verified_round, round_))
    if state is None:
        raise LaggingError(
            f"stored weights of round {peer.verified_round} or before, verified here",
            "none",
            "LAGGING: start again from a checkpoint.",
        )
    restore(peer, state)
    view = await look(peer)
    while peer.replica.round < round_:
        closure, payloads = await collect(peer, view, peer.replica.round, {})
        await apply(peer, closure, payloads)
    return peer.replica.root()


def restore(peer: Peer, state: WeightState) -> None:
    """Load saved weights; LaggingError if they do not hash to the root saved with them."""
    weights = {name: torch.from_numpy(array.copy()) for name, array in state.tensors.items()}
    peer.replica.restore(weights, RoundIndex(state.round), state.cursor)
    if peer.replica.root() != state.state_root:
        raise LaggingError(
            f"stored weights of round {state.round} with root {state.state_root.hex()}",
            peer.replica.root().hex(),
            "The file was written by another version or for another run: remove the folder.",
        )


async def load_stored_root(peer: Peer, view: NetworkView) -> None:
    """Bring the replica to the weights of the run's stored root: what Warmup asks for.

    Raises RootDisputeError if replay gives another root, LaggingError if it cannot be replayed.
    """
    run = view.run
    await _go_to(peer, view, run.root_round)
    own = peer.replica.root()
    if own != run.root:
        raise RootDisputeError(run.root_round, run.root, own)
    peer.verified_round = run.root_round


async def _cross_restart(peer: Peer, view: NetworkView) -> None:
    """Take the weights of the checkpoint that the run restarted from after Halted."""
    run = view.run
    await _go_to(peer, view, run.restart_root_round)
    account = await read_round(peer, run.restart_round)
    if account is None:
        raise out_of_ring(run.restart_round, view)
    peer.replica.move_to(run.restart_round, account.cursor)
    peer.residual.reset()


async def _go_to(peer: Peer, view: NetworkView, round_: RoundIndex) -> None:
    """Rewind, load or replay until the replica is at the start of a closed or stored round."""
    if peer.replica.oldest_round <= round_ <= peer.replica.round:
        peer.replica.rewind(round_)
    elif round_ < peer.replica.round:
        state = peer.store.newest_weights(round_)
        if state is None:
            raise out_of_ring(round_, view)
        restore(peer, state)
    while peer.replica.round < round_:
        closure, payloads = await collect(peer, view, peer.replica.round, {})
        await check_root(peer, closure.canonical_root)
        await apply(peer, closure, payloads)
