"""Observe: look at the chain until something holds, cranking meanwhile.

Owns: the one waiting loop of the client. Never: waits by wall time; the clock only paces the looks.
Next: `crank.py`.
"""

from collections.abc import Callable

from troth_client.participant.peer import Peer
from troth_client.steps.crank import tend
from troth_client.steps.errors import out_of_ring
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView


async def look(peer: Peer) -> NetworkView:
    """Return what the chain shows now, at confirmed finality."""
    view = await peer.chain.snapshot(peer.at.run)
    peer.root_round = view.run.root_round
    return view


async def observe(peer: Peer, holds: Callable[[NetworkView], bool]) -> NetworkView:
    """Return the first view for which `holds` is true; moves the run on while it waits."""
    while True:
        view = await look(peer)
        if holds(view):
            return view
        await tend(peer, view)
        await peer.clock.wait()


async def read_round(peer: Peer, round_: int) -> RoundView | None:
    """Return a round account as it is now; None when the ring no longer (or not yet) holds it."""
    (found,) = await peer.chain.read_rounds(peer.at.run, [round_])
    return found


async def read_closed(peer: Peer, view: NetworkView, round_: int) -> RoundView:
    """Return a round that `view` shows as over, once the node that we ask shows it closed.

    Nodes behind one address may lag behind each other. LaggingError when the ring has dropped it.
    """
    while True:
        found = await read_round(peer, round_)
        if found is not None and found.flags & RoundFlag.CLOSED:
            return found
        if view.run.round >= round_ + view.run.params.ring:
            raise out_of_ring(round_, view)
        await peer.clock.wait()
        view = await look(peer)
