"""Settle: what the close means for the residual, the store and the served payloads.

Owns: the end of a round on this machine. Never: moves a weight (`aggregate.py` does).
Next: `replay.py` for roots that disagree, `participant/supervisor.py` for the next round.
"""

from troth_client.participant.peer import Peer
from troth_client.state.records import Closure
from troth_client.storage.entries import WeightState
from troth_client.telemetry.spans import timed
from troth_coordinator.rules import bitmap


@timed("settle")
async def settle(peer: Peer, closure: Closure) -> None:
    """Keep u as momentum if our payload was included; save the new weights; forget old rounds.

    The weights of the run's stored root stay: a run that halts starts from them again.
    """
    is_included = bitmap.has(closure.included, peer.index)
    peer.residual.settle(closure.round, closure.own_residual)
    await peer.clock.compute(save_weights, peer)
    oldest = max(0, closure.round - peer.keep_rounds)
    # A header is checked against the residual of its maker's last included one, however old; an
    # open audit needs the weights, headers and payloads of its round.
    kept = {
        peer.root_round,
        peer.residual.momentum.previous,
        *closure.carried,
        *peer.tracker.held_rounds,
    }
    peer.store.drop_before(oldest, keep=kept)
    peer.archive.tidy(closure.round, peer.residual.origins())
    peer.transport.drop_before(oldest)
    peer.events.emit(
        "round_closed",
        round=closure.round,
        included=[int(i) for i in bitmap.indices_of(closure.included)],
        void=closure.is_void,
        own=is_included,
        root=peer.replica.root().hex(),
    )


def save_weights(peer: Peer) -> None:
    """Save the weights at the start of the replica's round, with their root."""
    replica = peer.replica
    tensors = {name: w.cpu().numpy() for name, w in replica.weights.items()}
    peer.store.save_weights(WeightState(replica.round, replica.cursor, replica.root(), tensors))
