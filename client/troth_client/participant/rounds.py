"""The task of rounds: follow a run through its phases until it ends or we are asked to stop.

Owns: the action for each phase. Never: a step of a round.
Next: `round.py`; `membership.py` for ready and activate, `cooldown.py` for the root-only vote,
`staying.py` for when a participant may go.
"""

from collections import Counter

from troth_client.member import Member
from troth_client.network.errors import BarredError, LaggingError, ReplacedError, StoppedError
from troth_client.network.watch import RPC_FAILURES, is_power_of_two
from troth_client.participant.cooldown import vote_root
from troth_client.participant.membership import (
    check_standing,
    get_active,
    get_ready,
    has_left,
)
from troth_client.participant.staying import STAY, is_needed, owes, slots_of_cases
from troth_client.round import run_round
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.steps.verified import start_from_disk
from troth_client.train.memory import WAITING, give_back
from troth_coordinator.chain.agreement import check_end
from troth_coordinator.chain.errors import RpcDisagreementError
from troth_coordinator.chain.rpc_health import MAX_LAG_SLOTS
from troth_coordinator.rules.ids import NONE, RoundIndex
from troth_coordinator.rules.phase import IN_ROUND, Phase
from troth_coordinator.rules.progress import PRESENT, has_dispersed
from troth_coordinator.rules.standing import is_short, needed_stake
from troth_coordinator.rules.view import EntryFlag, NetworkView

MOST_RECOVERIES = 2
"""How often a participant goes on from the same checkpoint before it gives up."""
DISAGREEMENT_SLOTS = 25
"""How long a participant waits before it asks RPC nodes again that disagreed."""
BEHIND_SLOTS = 25
"""After the end, how long a participant waits before it asks again for what it lacks."""
STRANGE_SLOTS = 2 * MAX_LAG_SLOTS
"""For so long every look must show that our place is taken or barred, before that is believed: an
RPC node that lags shows a time before we joined."""


async def begin(member: Member) -> None:
    """Start from what is on disk, once the RPC node answers.

    A run's given start that is not there comes from others; raises what `Restore.newest` raises.
    """
    num_failures, is_short = 0, False
    while True:
        try:
            with as_memory_error():
                await _start(member)
        except RPC_FAILURES as error:
            num_failures += 1
            await endure(member, error, num_failures)
        except MemoryError as error:
            if not is_short:
                report_memory(member, error)
            is_short = True
            await member.chain.watch.next()
        else:
            return


async def _start(member: Member) -> None:
    view = await member.chain.look()
    # Before anything is applied: files that open audits need must not be dropped.
    await member.audits.tracker.refresh(view)
    if member.state.has_weights:
        await start_from_disk(member.chain, member.state, view)
    else:
        await member.replay.restore.newest(view)


def report_memory(member: Member, error: MemoryError) -> None:
    """Say that memory does not suffice to follow the run."""
    give_back()
    member.chain.events.emit(
        "out_of_memory",
        round=member.state.replica.round,
        reason=first_line(error),
        advice=WAITING,
    )


async def run_rounds(member: Member) -> NetworkView:
    """Take part until the run is over, we have left it or a stop is asked for.

    Returns the last view. Raises RootDisputeError, DisputedError, LaggingError, TooSlowError,
    ReplacedError and BarredError.
    """
    phases = _Phases(member)
    while True:
        try:
            last = await phases.turn()
        except RPC_FAILURES as error:
            # Everything in a round can be repeated: it begins again where the chain stands.
            phases.num_failures += 1
            if member.state.stop.is_set():
                return member.chain.watch.latest
            await endure(member, error, phases.num_failures)
        except StoppedError as error:
            member.chain.events.emit("stopped_behind", reason=str(error))
            return member.chain.watch.latest
        else:
            if last is not None:
                return last


async def endure(member: Member, error: Exception, num_failures: int) -> None:
    """Wait for RPC nodes that do not answer; raise their error only if a stop is asked for."""
    if member.state.stop.is_set():
        raise error
    if is_power_of_two(num_failures):
        member.chain.watch.report(error, num_failures)
    # Asking at every slot settles no disagreement of RPC nodes.
    for _ in range(DISAGREEMENT_SLOTS if isinstance(error, RpcDisagreementError) else 1):
        await member.chain.runtime.wait()


class _Phases:
    """One turn after another: remembers the last reported phase and stake.

    `num_failures` counts the failures of the RPC node since it last answered a look.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._phase: Phase | None = None
        self._is_short = False
        self._short_round: RoundIndex | None = None
        self._late_round: RoundIndex | None = None
        self._next_view: NetworkView | None = None
        self._recovered: Counter[RoundIndex] = Counter()
        self._strange_slot: int | None = None
        self._is_ending = False
        self._is_staying = False
        self._has_reached = False
        self.num_failures = 0

    async def turn(self) -> NetworkView | None:
        """Do what the run asks for now; return the last view when there is nothing left to do.

        A participant without memory tries again at the next look: everything in a round can be
        repeated.
        """
        try:
            with as_memory_error():
                return await self._turn_or_recover()
        except MemoryError as error:
            self._report_memory(error)
            await self._wait()
            return None

    async def _turn_or_recover(self) -> NetworkView | None:
        """Take a turn; where something for it is missing, go on from the newest checkpoint."""
        try:
            return await self._turn()
        except LaggingError as error:
            newest = self._member.chain.watch.latest.run.root_round
            self._recovered = Counter({newest: self._recovered[newest] + 1})
            try:
                if self._recovered[newest] > MOST_RECOVERIES:
                    raise
                await self._member.replay.recover(error)
            except LaggingError:
                if not await self._stays_behind():
                    raise
            return None

    async def _stays_behind(self) -> bool:
        """Tell whether audits may still ask for something after the end; wait a while if they may.

        The others serve for as long, so we try again. Openings and reveals go on beside us, and
        would end with us.
        """
        view = self._member.chain.watch.latest
        if view.run.phase != Phase.FINISHED or not await is_needed(self._member, view):
            return False
        self._report_stay(view)
        self._recovered.clear()
        again = view.slot + BEHIND_SLOTS
        while self._member.chain.watch.latest.slot < again and not self._member.state.stop.is_set():
            await self._wait()
        return True

    async def _turn(self) -> NetworkView | None:
        member = self._member
        view, self._next_view = self._next_view or await member.chain.recent(), None
        self.num_failures = 0
        if not await self._stands(view):
            await self._wait()
            return None
        self._report_phase(view)
        self._report_stake(view)
        return view if member.state.stop.is_set() else await self._act(view)

    async def _act(self, view: NetworkView) -> NetworkView | None:
        member = self._member
        is_ending = has_left(member.chain, view) or view.run.phase == Phase.FINISHED
        if is_ending and not self._is_ending:
            await self._compare_end()
        self._is_ending = is_ending
        if has_left(member.chain, view):
            # We still owe openings and verdicts for our time as a member.
            await self._reach_leaving(view)
            if not await owes(member, view):
                return view
            self._report_stay(view)
            await self._wait()
            return None
        if view.run.phase in IN_ROUND:
            await self._round(view)
            return None
        await self._between_rounds(view)
        if has_dispersed(view):
            if not await is_needed(member, view):
                return view
            self._report_stay(view)
        await self._wait()
        return None

    async def _stands(self, view: NetworkView) -> bool:
        """Tell whether our entry is ours; raise once every look for long says that it is not."""
        chain = self._member.chain
        try:
            check_standing(chain, view)
        except (ReplacedError, BarredError):
            if self._strange_slot is None:
                self._strange_slot = view.slot
            if view.slot - self._strange_slot >= STRANGE_SLOTS:
                await self._compare_end()
                raise
            chain.watch.expect_change()  # a view from before we joined is not shown again
            return False
        self._strange_slot = None
        return True

    async def _reach_leaving(self, view: NetworkView) -> None:
        """Bring the weights to the round in which we left: audits of ours may need those before.

        A restart may find them older. Where they cannot be had, openings and reveals go on.
        """
        member = self._member
        replica, left = member.state.replica, view.entries[member.chain.index].left_round
        if self._has_reached or left == NONE or replica.round >= min(left, view.run.round):
            return
        try:
            await member.replay.catch_up(view)
        except LaggingError as error:
            member.chain.events.emit("replay_failed", round=replica.round, reason=str(error))
        self._has_reached = True

    async def _compare_end(self) -> None:
        """Raise RpcDisagreementError if another RPC node knows of no end: then we go on."""
        chain = self._member.chain
        await check_end(chain.client, chain.at.run, chain.identity.owner)

    async def _wait(self) -> None:
        self._next_view = await self._member.chain.watch.next()

    async def _round(self, view: NetworkView) -> None:
        member = self._member
        view = await member.replay.catch_up(view)
        if view.run.phase not in IN_ROUND or view.round is None:
            return
        if member.state.replica.round > view.run.round:
            # An RPC node that lags, or a fork, shows a round before the weights that we loaded.
            # There are none here for that round.
            await self._wait()
            return
        if not await get_active(member.chain, view):
            await get_ready(member.replay, view)
        await self._save_late()
        await run_round(member, view, view.round)

    async def _save_late(self) -> None:
        """Try once more, once a round, to save weights that the end of the last round could not.

        Memory or room did not suffice then. Audits of this round ask for them; training does not.
        """
        state = self._member.state
        if state.is_saved or state.replica.round == self._late_round:
            return
        self._late_round = state.replica.round
        try:
            await state.runtime.compute(state.save_weights)
        except MemoryError as error:
            self._report_memory(error)

    async def _between_rounds(self, view: NetworkView) -> None:
        member, phase = self._member, view.run.phase
        chain, replay = member.chain, member.replay
        if phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP):
            await get_ready(replay, view)
        elif phase == Phase.COOLDOWN:
            await vote_root(chain, member.state.replica, await replay.catch_up(view))
        elif phase == Phase.PAUSED:
            await get_active(chain, await replay.catch_up(view))
        elif phase == Phase.FINISHED:
            await replay.load_stored_root(view)

    def _report_phase(self, view: NetworkView) -> None:
        run = view.run
        if run.phase != self._phase:
            self._phase = run.phase
            self._member.chain.events.emit(
                "phase", phase=run.phase.name, round=run.round, slot=view.slot
            )

    def _report_memory(self, error: MemoryError) -> None:
        """Say once a round that memory does not suffice to follow the run."""
        round_ = self._member.state.replica.round
        if round_ != self._short_round:
            self._short_round = round_
            report_memory(self._member, error)

    def _report_stay(self, view: NetworkView) -> None:
        """Say once why we stay after the end, and for how long anybody may still open a case."""
        if not self._is_staying:
            self._is_staying = True
            self._member.chain.events.emit(
                "staying", reason=STAY, slots=slots_of_cases(self._member, view)
            )

    def _report_stake(self, view: NetworkView) -> None:
        entry, params = view.entries[self._member.chain.index], view.run.params
        is_present = entry.status in PRESENT and not entry.flags & EntryFlag.LEAVING
        is_low = is_present and is_short(entry, params)
        if is_low and not self._is_short:
            self._member.chain.events.emit(
                "stake_too_low", stake=entry.stake, needed=needed_stake(entry, params)
            )
        self._is_short = is_low
