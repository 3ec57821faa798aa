"""Observe: look at the chain until something holds, cranking meanwhile.

Owns: the one waiting loop of the client. Never: waits by wall time; the clock only paces the looks.
Next: `crank.py`.
"""

from collections.abc import Callable

from troth_client.peer import Peer
from troth_client.steps.crank import crank
from troth_coordinator.rules.view import NetworkView, RoundView


async def look(peer: Peer) -> NetworkView:
    """Return what the chain shows now, at confirmed finality."""
    return await peer.chain.snapshot(peer.at.run)


async def observe(peer: Peer, holds: Callable[[NetworkView], bool]) -> NetworkView:
    """Return the first view for which `holds` is true; moves the run on while it waits."""
    while True:
        view = await look(peer)
        if holds(view):
            return view
        await crank(peer, view)
        await peer.clock.wait()


async def read_round(peer: Peer, round_: int) -> RoundView | None:
    """Return a round account as it is now; None when the ring no longer (or not yet) holds it."""
    (found,) = await peer.chain.read_rounds(peer.at.run, [round_])
    return found
