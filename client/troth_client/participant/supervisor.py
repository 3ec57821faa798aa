"""Follow a run through its phases until it ends or we are asked to stop.

Owns: which phase asks for what, when a participant may stop, and patience with a silent node.
Never: a step of a round.
Next: `membership.py` for ready and activate, `cooldown.py` for the root-only vote.
"""

from dataclasses import asdict

from troth_client.audit.debts import debts
from troth_client.participant.audits import is_needed, owes
from troth_client.participant.cooldown import vote_root
from troth_client.participant.membership import (
    check_standing,
    get_active,
    get_ready,
    has_left,
    is_short_of_stake,
)
from troth_client.participant.peer import Peer
from troth_client.round import run_round
from troth_client.steps.aggregate import has_dispersed
from troth_client.steps.crank import tend
from troth_client.steps.errors import StoppedError
from troth_client.steps.observe import look
from troth_client.steps.replay import catch_up, load_stored_root
from troth_client.steps.verified import start_from_disk
from troth_coordinator.chain.errors import BlockhashExpiredError, RpcError, UnconfirmedError
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

MAX_FAILURES = 30
"""How often in a row the node may fail before the participant gives up."""


class Supervisor:
    """One participant in one run. `request_stop` lets the round under way end first."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._phase: Phase | None = None
        self._num_failures = 0
        self._is_short = False

    def request_stop(self) -> None:
        """Ask to stop after the round under way; safe to call from a signal handler."""
        self.peer.stop.set()

    async def run(self) -> NetworkView:
        """Take part until the run is over, we have left it or a stop is asked for.

        Returns the last view, and tells who was asked to stop what audits wait for. Raises
        RootDisputeError, LaggingError, ReplacedError, BarredError, and what the chain client raises
        when a node stays unreachable.
        """
        try:
            last = await self._follow()
        finally:
            await self.peer.chamber.close()
        if self.peer.stop.is_set():
            for debt in debts(self.peer, last):
                self.peer.events.emit("owed", **asdict(debt))
        return last

    async def _follow(self) -> NetworkView:
        is_started = False
        while True:
            try:
                if not is_started:
                    view = await look(self.peer)
                    # Before anything is applied: what open audits need must not be tidied away.
                    await self.peer.tracker.refresh(view)
                    await start_from_disk(self.peer, view)
                    is_started = True
                last = await self._turn()
            except (RpcError, UnconfirmedError, BlockhashExpiredError) as error:
                await self._endure(error)
            except StoppedError as error:
                self.peer.events.emit("stopped_behind", reason=str(error))
                return await look(self.peer)
            else:
                if last is not None:
                    return last

    async def _turn(self) -> NetworkView | None:
        """Do what the run asks for now; return the last view when there is nothing left to do."""
        peer = self.peer
        view = await look(peer)
        self._num_failures = 0
        check_standing(peer, view)
        phase = view.run.phase
        if phase != self._phase:
            self._phase = phase
            peer.events.emit("phase", phase=phase.name, round=view.run.round, slot=view.slot)
        self._tell_stake(view)
        if peer.stop.is_set():
            return view
        if has_left(peer, view):
            return await self._after_leaving(view)
        if phase in (Phase.COMMIT, Phase.ATTEST):
            await self._round(view)
            return None
        await self._between_rounds(view)
        if has_dispersed(view) and not await is_needed(peer, view):
            return view
        await tend(peer, view)
        await peer.clock.wait()
        return None

    async def _after_leaving(self, view: NetworkView) -> NetworkView | None:
        """Answer for what we did as a member; return the view when nobody can ask any more."""
        if not await owes(self.peer, view):
            return view
        await tend(self.peer, view)
        await self.peer.clock.wait()
        return None

    async def _round(self, view: NetworkView) -> None:
        peer = self.peer
        view = await catch_up(peer, view)
        if view.run.phase not in (Phase.COMMIT, Phase.ATTEST) or view.round is None:
            return
        if not await get_active(peer, view):
            await get_ready(peer, view)
        await run_round(peer, view, view.round)

    async def _between_rounds(self, view: NetworkView) -> None:
        peer, phase = self.peer, view.run.phase
        if phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP):
            await get_ready(peer, view)
        elif phase == Phase.COOLDOWN:
            await vote_root(peer, await catch_up(peer, view))
        elif phase == Phase.PAUSED:
            await get_active(peer, await catch_up(peer, view))
        elif phase == Phase.FINISHED:
            await load_stored_root(peer, view)

    def _tell_stake(self, view: NetworkView) -> None:
        entry = view.entries[self.peer.index]
        is_short = is_short_of_stake(entry, view.run)
        if is_short and not self._is_short:
            needed = view.run.params.stake_lamports
            self.peer.events.emit("stake_too_low", stake=entry.stake, needed=needed)
        self._is_short = is_short

    async def _endure(self, error: Exception) -> None:
        """Wait for a node that does not answer: the steps of a round can all be repeated."""
        self._num_failures += 1
        if self._num_failures > MAX_FAILURES:
            raise error
        self.peer.events.emit("chain_unreachable", count=self._num_failures, reason=str(error))
        await self.peer.clock.wait()
