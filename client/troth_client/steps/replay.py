"""Replay: catch up, follow corrections, and find out who is right about a root (section 4).

Owns: moving the replica over closed rounds and over the restart after a halt, rewinding when the
chain corrected a round, and the two ends of a root that disagrees: replay gives the majority's root
(heal) or our own (ROOT_DISPUTE).
Never: loads weights because others have them; a state from our own disk only counts as verified
when the chain names its root. Next: `participant/supervisor.py`, which calls it; `verified.py`.
"""

from troth_client.participant.peer import Peer
from troth_client.steps.aggregate import apply, closure_of, collect
from troth_client.steps.errors import LaggingError, RootDisputeError, out_of_ring
from troth_client.steps.observe import look, read_round
from troth_client.steps.settle import save_weights, settle
from troth_client.steps.verified import load_verified
from troth_client.telemetry.spans import timed
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView, RunView


async def catch_up(peer: Peer, view: NetworkView) -> NetworkView:
    """Bring the replica to the round of the run, and return a view of that moment.

    Follows corrections first, crosses a restart after Halted by the weights that the run restarted
    from, and checks each canonical root it passes.
    """
    await follow_corrections(peer, view)
    while _is_behind(peer, view.run, view.run.round):
        await _step(peer, view, view.run.round)
        view = await look(peer)
    return view


async def follow_corrections(peer: Peer, view: NetworkView) -> None:
    """Rewind to the first round whose outcome on chain is not what was applied here.

    A strike by report_missing or a fork does that. What came later is rewound with it, and applied
    again by whoever brings the replica forward.
    """
    past = peer.replica.applied()
    if not past:
        return
    rounds = [closure.round for closure in past]
    accounts = await peer.chain.read_rounds(peer.at.run, rounds)
    for known, account in zip(past, accounts, strict=True):
        is_undone = known.round >= view.run.round
        is_closed = account is not None and bool(account.flags & RoundFlag.CLOSED)
        if not is_undone and (account is None or not is_closed or closure_of(account) == known):
            continue
        peer.events.emit("round_corrected", round=known.round)
        peer.replica.rewind(known.round)
        peer.store.drop_after(known.round)
        peer.archive.rewind(known.round)
        if is_undone:
            peer.desk.rewind(known.round)
        if is_undone or _own_bit(peer, known.included) != _own_bit(peer, account):
            peer.residual.rewind(known.round)
        return


@timed("check")
async def check_root(peer: Peer, canonical: bytes) -> None:
    """Compare our root of the replica's round with the canonical one; heal or stop.

    Zeros (a void round) say nothing. Raises RootDisputeError, LaggingError.
    """
    own, round_ = peer.replica.root(), peer.replica.round
    if canonical in (ZERO_DIGEST, own):
        return
    peer.events.emit("root_differs", round=round_, canonical=canonical.hex(), own=own.hex())
    replayed = await _replay_to(peer, round_)
    if replayed == canonical:
        save_weights(peer)
        peer.events.emit("healed", round=round_, root=replayed.hex())
        return
    peer.events.emit("replay_differs", round=round_, canonical=canonical.hex(), own=replayed.hex())
    if replayed == own:
        raise RootDisputeError(round_, canonical, own)
    raise LaggingError(
        f"replay to give root {canonical.hex()} (canonical) or {own.hex()} (before the replay)",
        f"{replayed.hex()}",
        "LAGGING: the stored weights or payloads are damaged; start again from a checkpoint.",
    )


async def load_stored_root(peer: Peer, view: NetworkView) -> None:
    """Bring the replica to the weights of the run's stored root: what Warmup asks for.

    Raises RootDisputeError if replay gives another root, LaggingError if it cannot be replayed.
    """
    await _go_to(peer, view, view.run.root_round)
    await check_root(peer, view.run.root)


async def _step(peer: Peer, view: NetworkView, target: RoundIndex) -> None:
    """Move the replica over one closed round, or over the restart."""
    if _must_cross(peer, view.run, target):
        await _cross_restart(peer, view)
        return
    closure, payloads = await collect(peer, view, peer.replica.round, {})
    await check_root(peer, closure.canonical_root)
    await apply(peer, closure, payloads)
    await settle(peer, closure)


def _is_behind(peer: Peer, run: RunView, target: RoundIndex) -> bool:
    return peer.replica.round < target or _must_cross(peer, run, target)


def _must_cross(peer: Peer, run: RunView, target: RoundIndex) -> bool:
    """Tell whether the way to round `target` leads over the run's restart.

    At the restart round itself there are two states: the one that void rounds led to before the
    halt, and the one that Warmup took up. A replica that did not cross holds the first.
    """
    is_restarted = run.restart_round not in (run.restart_root_round, peer.replica.restart_round)
    return is_restarted and peer.replica.round <= run.restart_round <= target


async def _cross_restart(peer: Peer, view: NetworkView) -> None:
    """Take the weights of the checkpoint that the run restarted from after Halted."""
    run = view.run
    await _go_to(peer, view, run.restart_root_round)
    cursor = run.cursor
    if run.round != run.restart_round:
        account = await read_round(peer, run.restart_round)
        if account is None:
            raise out_of_ring(run.restart_round, view)
        cursor = account.cursor
    peer.replica.move_to(run.restart_round, cursor)
    peer.residual.reset()
    save_weights(peer)
    peer.events.emit("restarted", round=run.restart_round, root_round=run.restart_root_round)


async def _go_to(peer: Peer, view: NetworkView, round_: RoundIndex) -> None:
    """Rewind, load or replay until the replica is at the start of a closed or stored round."""
    if peer.replica.oldest_round <= round_ <= peer.replica.round:
        peer.replica.rewind(round_)
    elif round_ < peer.replica.round and not await load_verified(peer, view, round_):
        raise out_of_ring(round_, view)
    while _is_behind(peer, view.run, round_):
        await _step(peer, view, round_)
        view = await look(peer)


async def _replay_to(peer: Peer, round_: RoundIndex) -> bytes:
    """Load the last state that was verified here and apply the chain's bitmaps up to a round."""
    view = await look(peer)
    if not await load_verified(peer, view, round_):
        raise LaggingError(
            f"stored weights of round {round_} or before, with a root that the chain names",
            "none",
            "LAGGING: start again from a checkpoint.",
        )
    peer.store.drop_after(peer.replica.round)
    while _is_behind(peer, view.run, round_):
        if _must_cross(peer, view.run, round_):
            await _cross_restart(peer, view)
        else:
            closure, payloads = await collect(peer, view, peer.replica.round, {})
            await apply(peer, closure, payloads)
        peer.events.emit("replayed", round=peer.replica.round, root=peer.replica.root().hex())
        view = await look(peer)
    return peer.replica.root()


def _own_bit(peer: Peer, included: int | RoundView | None) -> bool:
    if isinstance(included, RoundView):
        included = included.included
    return included is not None and bitmap.has(included, peer.index)
