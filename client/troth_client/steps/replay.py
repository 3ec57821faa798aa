"""Replay: catch up, follow corrections, and decide which root is right (section 4).

Owns: moving the replica over closed rounds and over the restart after a halt, and rewinding when
the chain corrected a round. When roots disagree, a replay may give the majority's root: that heals.
If another root comes out twice, the participant stops with ROOT_DISPUTE.
Never: loads weights of others where it can replay. A state from our own disk counts as verified
only when the chain names its root.
Next: `verified.py`; `restore.py` for weights of others; `participant/rounds.py` calls this.
"""

from collections.abc import Callable
from dataclasses import dataclass

from troth_attestation.pieces import Float32
from troth_client.network.chain import RunChain
from troth_client.network.errors import (
    LaggingError,
    RootDisputeError,
    StoppedError,
    out_of_ring,
)
from troth_client.network.submissions import Submissions
from troth_client.runtime.base import Runtime
from troth_client.state.audit_state import AuditState
from troth_client.state.past_states import RewindError
from troth_client.state.replica import Replica
from troth_client.state.round_state import RoundState
from troth_client.steps.collect import closure_of, collect
from troth_client.steps.restore import Restore
from troth_client.steps.settle import apply, carry, settle
from troth_client.steps.verified import load_verified
from troth_client.telemetry.events import EventSink
from troth_client.telemetry.pace import Pace
from troth_client.telemetry.spans import timed
from troth_coordinator.chain.agreement import check_restart, check_roots
from troth_coordinator.rules.ids import ZERO_DIGEST, RoundIndex
from troth_coordinator.rules.progress import has_dispersed
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView, RunView

Target = Callable[[RunView], RoundIndex]
"""The round to which a run asks us to go, as each view shows it."""
MOST_REPLAYS = 2
"""How often a round is replayed when each time gives another root."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Moves the replica to the round that the chain shows."""

    chain: RunChain
    submissions: Submissions
    audits: AuditState

    @property
    def restore(self) -> Restore:
        """The way to weights of others."""
        return Restore(self.chain, self.submissions)

    @property
    def state(self) -> RoundState:
        """The replica that is moved."""
        return self.submissions.state

    @property
    def runtime(self) -> Runtime:
        """The stopwatch of steps."""
        return self.chain.runtime

    @property
    def events(self) -> EventSink:
        """The sink of its events."""
        return self.chain.events

    async def catch_up(self, view: NetworkView) -> NetworkView:
        """Bring the replica to the round of the run, and return the view of that moment.

        Follows corrections first. Crosses a restart after Halted by loading the weights from which
        the run restarted. Checks each canonical root that it passes. Takes the newest checkpoint
        where the ring has dropped rounds on the way. Raises LaggingError where neither is possible,
        RootDisputeError, StoppedError, and what `Restore.newest` raises.
        """
        await self.follow_corrections(view)
        first, pace = self.state.replica.round, Pace(self.runtime.seconds)
        while self._is_behind(view.run, view.run.round):
            await self._advance(view, view.run.round)
            view = await self.chain.look()
            if pace.is_due():
                self._report(first, view.run.round, pace)
        return view

    async def recover(self, error: LaggingError) -> None:
        """LAGGING: go on from the newest checkpoint, or wait for the next one if that is too old.

        Raises `error` once the run is over, StoppedError, and what `Restore.newest` raises.
        """
        state, view = self.state, await self.chain.look()
        state.events.emit("recovering", round=state.replica.round, reason=str(error))
        oldest = view.run.root_round
        while self._is_past(view.run, max(oldest, view.run.restart_round)):
            if state.stop.is_set():
                raise StoppedError(state.replica.round, [])
            if has_dispersed(view):
                raise error
            view = await self.chain.watch.next()
            oldest = view.run.root_round
        await self.restore.newest(view)

    async def follow_corrections(self, view: NetworkView) -> None:
        """Rewind to the first round whose outcome on chain is not what was applied here.

        A strike by report_missing, or a fork, changes an outcome. Later rounds are rewound too, and
        the caller applies them again when it brings the replica forward. That a closed round is
        open again must be shown by the newest slot so far, not by an RPC node that lags.
        """
        past = self.state.replica.applied()
        if not past:
            return
        accounts = await self.chain.rounds_of(view, [closure.round for closure in past])
        for known, account in zip(past, accounts, strict=True):
            is_undone = known.round >= view.run.round
            is_closed = account is not None and bool(account.flags & RoundFlag.CLOSED)
            if not is_undone and (account is None or not is_closed or closure_of(account) == known):
                continue
            if is_undone and not await self._is_undone(known.round):
                return
            is_changed = self._own_bit(known.included) != self._own_bit(account)
            await self._rewind(known.round, is_undone=is_undone, is_own_changed=is_changed)
            return

    async def load_stored_root(self, view: NetworkView) -> None:
        """Bring the replica to the weights of the run's stored root, as Warmup asks.

        It may be a newer one than `view` shows. Raises RootDisputeError if replay gives another
        root, LaggingError if it can neither be replayed nor fetched, and what `Restore.newest`
        raises.
        """
        view = await self._go_to(view, lambda run: run.root_round)
        await check_root(self, view.run.root)

    async def to_round(self, round_: int) -> bytes:
        """Load the last verified state and apply the chain's bitmaps up to a round.

        Returns the resulting state root. Raises LaggingError when something for it is missing.
        """
        replica, view = self.state.replica, await self.chain.look()
        if not await self._load(view, round_):
            raise LaggingError(
                f"stored weights of round {round_} or before, with a root that the chain names",
                "none",
                "LAGGING: start again from a checkpoint.",
            )
        while self._is_behind(view.run, round_):
            if self._must_cross(view.run, round_):
                await self._cross_restart(view)
            else:
                found = await collect(
                    self.chain, self.submissions, view, replica.round, {}, is_patient=False
                )
                await apply(self.state, *found)
            root = await self.runtime.compute(replica.root)
            self.state.events.emit("replayed", round=replica.round, root=root.hex())
            view = await self.chain.look()
        self.state.store.drop_after(replica.round)
        return replica.root()

    async def _load(self, view: NetworkView, at_most: int) -> bool:
        return await load_verified(self.chain, self.state, view, at_most)

    async def _rewind(self, round_: RoundIndex, *, is_undone: bool, is_own_changed: bool) -> None:
        state = self.state
        state.events.emit("round_corrected", round=round_)
        # Before the weights: until they are rewound, the next look finds the correction again.
        if is_undone or is_own_changed:
            await self.runtime.compute(state.residual.rewind, round_)
        try:
            await self.runtime.compute(state.replica.rewind, round_)
        except RewindError as error:
            raise LaggingError(
                error.expected, error.found, f"LAGGING: {error.next_step}"
            ) from error
        state.store.drop_after(round_)
        state.archive.rewind(round_)

    def _report(self, first: int, target: int, pace: Pace) -> None:
        round_ = self.state.replica.round
        left = pace.seconds_left(round_ - first, target - round_)
        self.events.emit("replaying", round=round_, target=target, seconds_left=left)

    async def _advance(self, view: NetworkView, target: int) -> None:
        """Move the replica forward: by replay, or to a checkpoint where the chain forgot rounds.

        Raises StoppedError between two rounds: the way may be long.
        """
        if self.state.stop.is_set():
            raise StoppedError(self.state.replica.round, [])
        run, round_ = view.run, self.state.replica.round
        can_restore = round_ < run.root_round <= target
        if can_restore and self._is_past(run, round_):
            await self.restore.newest(view)
            return
        try:
            await self._step(view, target)
        except LaggingError as error:
            if not can_restore:
                raise
            self.state.events.emit("recovering", round=round_, reason=str(error))
            await self.restore.newest(await self.chain.look())

    def _is_past(self, run: RunView, round_: int) -> bool:
        """Whether neither the ring nor the log holds the round with which a replay would begin."""
        return round_ + run.params.ring <= run.round and round_ not in self.chain.log.rounds

    async def _step(self, view: NetworkView, target: int) -> None:
        """Move the replica over one closed round, or over the restart."""
        if self._must_cross(view.run, target):
            await self._cross_restart(view)
            return
        round_ = self.state.replica.round
        closure, payloads = await collect(self.chain, self.submissions, view, round_, {})
        await check_root(self, closure.canonical_root)
        await carry(self.state, closure)
        await apply(self.state, closure, payloads)
        await settle(self.chain, self.submissions, closure, self.audits.tracker)

    def _is_behind(self, run: RunView, target: int) -> bool:
        return self.state.replica.round < target or self._must_cross(run, target)

    def _must_cross(self, run: RunView, target: int) -> bool:
        """Return whether the way to round `target` crosses the run's restart.

        At the restart round itself there are two states: the one before the halt, after void
        rounds, and the one that Warmup loaded. A replica that did not cross holds the first.
        """
        replica = self.state.replica
        is_restarted = run.restart_round not in (run.restart_root_round, replica.restart_round)
        return is_restarted and replica.round <= run.restart_round <= target

    async def _cross_restart(self, view: NetworkView) -> None:
        """Take the weights of the checkpoint that the run restarted from after Halted.

        Nothing is taken where a view shows another restart by then, or none: the caller looks anew.
        Raises RpcDisagreementError.
        """
        # It replaces weights and resets momentum: one RPC node alone must not cause that.
        await check_restart(self.chain.client, self.chain.at.run, view.run)
        state, expected = self.state, view.run.restart_round
        view = await self._go_to(view, lambda run: run.restart_root_round)
        run = view.run
        if run.restart_round != expected or not self._must_cross(run, expected):
            return
        cursor = run.cursor
        if run.round != run.restart_round:
            account = await self.chain.read_round(run.restart_round)
            if account is None:
                raise out_of_ring(run.restart_round, view)
            cursor = account.cursor
        state.replica.move_to(run.restart_round, cursor)
        state.residual.reset()
        await self.runtime.compute(state.save_weights)
        state.events.emit("restarted", round=run.restart_round, root_round=run.restart_root_round)

    async def _go_to(self, view: NetworkView, target: Target) -> NetworkView:
        """Rewind, load or replay to the start of a round; return the view that names it last.

        The round is read off each view: what one RPC node showed once is followed no longer. A way
        to a root that is stored never crosses the restart, for it began there or before.
        """
        while True:
            round_ = target(view.run)
            if self.state.replica.round >= round_:
                await self._go_back(view, round_)
            if self._is_behind(view.run, round_):
                await self._advance(view, round_)
            elif self.state.replica.round == round_:
                return view
            view = await self.chain.look()

    async def _go_back(self, view: NetworkView, round_: RoundIndex) -> None:
        """Rewind to a round, or load it, or the newest checkpoint where it is that of the round."""
        is_there = await self._is_rewound(round_)
        if is_there or round_ == self.state.replica.round or await self._load(view, round_):
            return
        if round_ != view.run.root_round:
            raise out_of_ring(round_, view)
        await self.restore.newest(view)

    async def _is_rewound(self, round_: RoundIndex) -> bool:
        """Rewind to a round that is kept; tell whether that could be done."""
        replica = self.state.replica
        if not replica.oldest_round <= round_ <= replica.round:
            return False
        try:
            await self.runtime.compute(replica.rewind, round_)
        except RewindError:
            return False
        return True

    async def _is_undone(self, round_: RoundIndex) -> bool:
        """Look again: tell whether a round is open, at no slot before one that was shown."""
        view = await self.chain.look()
        return view.slot >= self.chain.watch.newest_slot and round_ >= view.run.round

    def _own_bit(self, included: int | RoundView | None) -> bool:
        if isinstance(included, RoundView):
            included = included.included
        return included is not None and self.chain.is_in(included)


def copies_of(replica: Replica) -> dict[str, Float32]:
    """Return copies of the weights, float32 by name: for a thread."""
    return {name: value.copy() for name, value in replica.arrays().items()}


@timed("check")
async def check_root(replay: Replay, canonical: bytes) -> None:
    """Compare our root of the replica's round with the canonical one; heal or stop.

    Zeros (a void round) say nothing. Where our own state cannot be replayed, its pieces are
    compared with those of others (HEALING). Raises RootDisputeError, RpcDisagreementError, and as
    `Restore.heal`.
    """
    state, events = replay.state, replay.events
    own, round_ = state.replica.root(), state.replica.round
    if canonical in (ZERO_DIGEST, own):
        return
    events.emit("root_differs", round=round_, canonical=canonical.hex(), own=own.hex())
    # Healing discards our weights, and a dispute ends us: one RPC node alone must not cause it.
    await check_roots(replay.chain.client, replay.chain.at.run, round_)
    # Replaying moves the replica: these are what HEALING compares.
    ours = await state.runtime.compute(copies_of, state.replica)
    found: list[bytes] = [own]
    while len(found) <= MOST_REPLAYS:
        try:
            replayed = await replay.to_round(round_)
        except LaggingError as error:
            events.emit("replay_failed", round=round_, reason=str(error))
            break
        if replayed == canonical:
            await state.runtime.compute(state.save_weights)
            events.emit("healed", round=round_, root=replayed.hex(), tensors=[], fetched_bytes=0)
            return
        events.emit("replay_differs", round=round_, canonical=canonical.hex(), own=replayed.hex())
        if replayed in found:
            # Twice the same from checked parts: it is the majority that is wrong.
            state.store.save_dispute(round_, canonical, replayed)
            raise RootDisputeError(round_, canonical, replayed)
        found.append(replayed)
    await replay.restore.heal(await replay.chain.look(), round_, ours)
