"""Follow a run through its phases until it ends or we are asked to stop.

Owns: which phase asks for what, and when a participant may stop. Never: a step of a round.
Next: `membership.py` for ready and activate, `cooldown.py` for the root-only vote.
"""

import asyncio

from troth_client.peer import Peer
from troth_client.roles.cooldown import vote_root
from troth_client.roles.membership import (
    check_session,
    get_active,
    get_ready,
    take_up_restart,
)
from troth_client.round import run_round
from troth_client.steps.crank import crank
from troth_client.steps.observe import look
from troth_client.steps.replay import catch_up, follow_corrections
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


class Supervisor:
    """One participant in one run. `request_stop` lets the round under way end first."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._stop = asyncio.Event()

    def request_stop(self) -> None:
        """Ask to stop after the round under way; safe to call from a signal handler."""
        self._stop.set()

    async def run(self) -> NetworkView:
        """Take part until the run is finished or a stop is asked for; return the last view.

        Raises RootDisputeError, LaggingError, ReplacedError, and what the chain client raises when
        a node stays unreachable.
        """
        peer = self._peer
        phase: Phase | None = None
        while True:
            view = await look(peer)
            check_session(peer, view)
            if view.run.phase != phase:
                phase = view.run.phase
                peer.events.emit("phase", phase=phase.name, round=view.run.round, slot=view.slot)
            if phase == Phase.FINISHED or self._stop.is_set():
                return view
            if phase in (Phase.COMMIT, Phase.ATTEST):
                await self._round(view)
            else:
                await self._between_rounds(view)
                await crank(peer, view)
                await peer.clock.wait()

    async def _round(self, view: NetworkView) -> None:
        peer = self._peer
        await take_up_restart(peer, view)
        view = await catch_up(peer, view)
        if view.run.phase not in (Phase.COMMIT, Phase.ATTEST) or view.round is None:
            return
        await get_ready(peer, view)
        await run_round(peer, view, view.round)
        await get_active(peer)

    async def _between_rounds(self, view: NetworkView) -> None:
        peer, phase = self._peer, view.run.phase
        if phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP):
            await get_ready(peer, view)
        elif phase == Phase.COOLDOWN:
            view = await catch_up(peer, view)
            await vote_root(peer, view)
        elif phase == Phase.PAUSED:
            await follow_corrections(peer, view)
