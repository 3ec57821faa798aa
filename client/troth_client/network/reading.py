"""Reading the chain: a look reads everything, or only the accounts that can have changed.

Owns: when the watcher asks an RPC node, for which accounts, and the slot in between.
Never: sends, hands out views, or acts on a push: that only says when to read.
Next: `watch.py`; `troth_coordinator/chain/subscription.py` for the pushes.

    Run as it was      -> a commit or an attestation at most: only Run and Round are read
    Run has changed    -> everything is read, at one slot
    an event is pushed -> read at once, but for audits within a round; a second apart at least,
                          two slots where no round is open and the push before was true
    nothing was pushed -> read again after 18 slots, or after 2 s where nobody pushes
    pace of slots new  -> read after 0.2 s
    in between         -> the view as it was, at the slot that the clock makes it
    in the same slot   -> the same view
    a slot of before   -> the view as it was: an RPC node lags. Believed once it lasts
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import inf
from typing import Final, Protocol

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.subscription import Mark, RunPushes, mark_of
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.phase import IN_ROUND
from troth_coordinator.rules.view import NetworkView

PUSHED_SLOTS: Final = 18
"""Where changes are pushed, a view is at most so old: no change is missed for longer."""
POLLED_SECONDS: Final = 2.0
"""Where nobody pushes, a view is at most so old. Elsewhere 18 slots count as no less than this."""
LONGEST_SECONDS: Final = 7.5
"""Elsewhere 18 slots count as no more than this. An RPC node that lags catches up in it."""
FIRST_SECONDS: Final = 0.2
"""A view is at most so old until the pace of slots is known: until then it keeps its slot."""
LATE_SECONDS: Final = 2.0
"""A push may come so much later than a look that shows the same change."""
HEED_SECONDS: Final = 1.0
"""A push leads to at most one look in this time, unless the look before has proven another."""
PROVEN_SLOTS: Final = 2
"""After a look that has shown a push to be true, the next one is heeded so soon while no round is
open. Joins are pushed then, and audits after the last round: somebody has to act on each."""
MAX_AHEAD_SLOTS: Final = 16
"""A push whose slot is so far ahead of the looks counts as false."""
PACE_SECONDS: Final = 2.0
"""The pace of slots is measured over at least this time."""
MAX_JUMP_SLOTS: Final = 64
"""A look may be ahead of the last one by four times the pace, and so many slots."""
STRANGE_LOOKS: Final = 3
"""So many reads in a row must show a jump. One may be a bad answer; after a sleep all show it."""


class Reader(Protocol):
    """The reads of a watcher."""

    async def read(self) -> NetworkView:
        """Read the chain now."""
        ...

    async def newest(self) -> NetworkView:
        """Return the view that is good enough for waiting; read only if that is due."""
        ...

    def expect_change(self) -> None:
        """Learn that an act of ours has landed, which the next view has to show."""

    def early(self) -> Collection[asyncio.Future[None]]:
        """Return what is done when the next look is due before its time; empty where never."""
        ...


@dataclass(frozen=True, slots=True)
class WholeReader:
    """Reads everything at each look."""

    client: CoordinatorClient
    run: Pubkey

    async def read(self) -> NetworkView:
        """Read everything."""
        return await self.client.snapshot(self.run)

    async def newest(self) -> NetworkView:
        """Read everything."""
        return await self.read()

    def expect_change(self) -> None:
        """Do nothing: every look reads everything."""

    def early(self) -> Collection[asyncio.Future[None]]:
        """Return nothing: nobody pushes."""
        return ()


class LeanReader:
    """Reads as little as possible; see the module docstring for the rule. clock: in seconds."""

    def __init__(
        self,
        client: CoordinatorClient,
        run: Pubkey,
        pushes: RunPushes,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._run = run
        self._pushes = pushes
        self._clock = clock
        self._view: NetworkView | None = None
        self._aged: NetworkView | None = None
        self._read_at = 0.0
        self._num_acts = self._num_shown = 0
        self._unpushed: tuple[float, Mark] | None = None
        self._heeded_at = {True: 0.0, False: 0.0}
        self._is_proven = False
        self._num_strange = self._num_past = 0
        self._past_at = 0.0
        self._pace = _Pace()
        self._early: asyncio.Future[None] | None = None
        pushes.listener = self._hear

    @property
    def read_at(self) -> float:
        """The time of the last read, by `clock`; 0 before the first."""
        return self._read_at

    async def read(self) -> NetworkView:
        """Read Run and Round; everything where Run has changed, or a push says so."""
        known, num_acts = self._view, self._num_acts
        view: NetworkView | None = None
        mark = None if known is None else self._pushed(known)
        if known is not None and (mark is None or _is_quorum(mark, known)):
            view = await self._client.reread(known)
        if view is None:
            hint = None if mark is None else mark.round
            view = await self._client.snapshot(self._run, hint)
        self._check_slot(view.slot)
        if known is not None and self._is_past(known, view.slot):
            return self._as_of_now(known)
        self._num_shown = num_acts
        self._compare(known, view)
        if known is not None and mark is not None:
            self._is_proven = _has_proven(mark, known, view)
        self._view, self._read_at = view, self._clock()
        self._aged = view
        self._pace.observe(self._read_at, view.slot)
        return view

    def _check_slot(self, slot: int) -> None:
        """Raise MalformedReplyError for a slot from the future: at it, all windows are over."""
        latest = self._pace.latest(self._clock())
        self._num_strange = self._num_strange + 1 if latest is not None and slot > latest else 0
        if 0 < self._num_strange < STRANGE_LOOKS:
            raise MalformedReplyError("getMultipleAccounts", f"slot {slot}, {latest} at most")
        if self._num_strange:
            self._num_strange, self._pace = 0, _Pace()

    def _is_past(self, known: NetworkView, slot: int) -> bool:
        """Tell whether a read is older than the last one, unless all have been for long.

        Several RPC nodes behind one address may lag behind each other, one of them by hours.
        """
        now = self._clock()
        self._num_past = self._num_past + 1 if slot < known.slot else 0
        if self._num_past == 0:
            return False
        if self._num_past == 1:
            self._past_at = now
        if self._num_past < STRANGE_LOOKS or now - self._past_at < LONGEST_SECONDS:
            return True
        self._num_past, self._pace = 0, _Pace()
        return False

    async def newest(self) -> NetworkView:
        """Return the last view at the slot of now, or read if that is due."""
        known = self._view
        if known is None or self._is_due(known):
            return await self.read()
        return self._as_of_now(known)

    def _as_of_now(self, known: NetworkView) -> NetworkView:
        slot, aged = self._pace.slot(self._clock()), self._aged
        if aged is None or aged.slot != slot:
            self._aged = aged = replace(known, slot=slot)
        return aged

    def expect_change(self) -> None:
        """Read at the next look."""
        self._num_acts += 1

    def early(self) -> Collection[asyncio.Future[None]]:
        """Return what is done once a push calls for a look."""
        if self._early is None or self._early.done():
            self._early = asyncio.get_running_loop().create_future()
        self._hear()
        return (self._early,)

    def _hear(self) -> None:
        early, known = self._early, self._view
        if early is not None and not early.done() and known is not None and self._is_called(known):
            early.set_result(None)

    def _is_due(self, known: NetworkView) -> bool:
        now = self._clock()
        if self._num_acts > self._num_shown or now - self._read_at >= self._patience():
            return True
        if not self._is_called(known):
            return False
        self._heeded_at[self._is_awaited(known)] = now
        return True

    def _is_called(self, known: NetworkView) -> bool:
        """Tell whether a push says that something has changed since a view that is worth a look."""
        is_awaited = self._is_awaited(known)
        if self._pushed(known) is None or (known.run.phase in IN_ROUND and not is_awaited):
            return False
        return self._clock() - self._heeded_at[is_awaited] >= self._pause(known)

    def _pause(self, known: NetworkView) -> float:
        """Return the time from one push that is heeded to the next."""
        is_quick = self._is_proven and self._pushes.is_live and known.run.phase not in IN_ROUND
        return min(HEED_SECONDS, self._pace.seconds(PROVEN_SLOTS)) if is_quick else HEED_SECONDS

    def _is_awaited(self, known: NetworkView) -> bool:
        """Tell whether a push says that the phase, or what everybody waits for, has changed."""
        mark = self._pushed(known)
        return mark is not None and mark.edge != mark_of(known.run, known.slot).edge

    def _patience(self) -> float:
        if not self._pace.is_known:
            return FIRST_SECONDS
        if not self._pushes.is_live:
            return POLLED_SECONDS
        return min(LONGEST_SECONDS, max(POLLED_SECONDS, self._pace.seconds(PUSHED_SLOTS)))

    def _pushed(self, known: NetworkView) -> Mark | None:
        """Return the newest mark if the view does not show it yet."""
        mark = self._pushes.newest
        if mark is None or mark.slot < known.slot:
            return None
        return None if mark == mark_of(known.run, mark.slot) else mark

    def _compare(self, known: NetworkView | None, view: NetworkView) -> None:
        """Drop pushes that did not say what happened, or said what did not."""
        now, mark = self._clock(), self._pushes.newest
        shown = mark_of(view.run, view.slot)
        if mark is not None and mark.slot > view.slot + MAX_AHEAD_SLOTS:
            self._pushes.distrust()
        if not self._pushes.is_live or (self._unpushed and _has_come(mark, self._unpushed[1])):
            self._unpushed = None
        if self._unpushed is not None and now - self._unpushed[0] >= LATE_SECONDS:
            self._unpushed = None
            self._pushes.distrust()
        before = None if known is None else mark_of(known.run, view.slot)
        has_changed = before is not None and shown != before
        if before is not None and shown.edge != before.edge:
            self._heeded_at[True] = -inf  # the push was true: the next one may follow at once
        if has_changed and self._pushes.is_live and not _has_come(mark, shown):
            self._unpushed = self._unpushed or (now, shown)


def _has_come(mark: Mark | None, shown: Mark) -> bool:
    """Tell whether the newest push is as new as what a look has shown."""
    if mark is None:
        return False
    is_same = mark == replace(shown, slot=mark.slot)
    return is_same or mark.slot >= shown.slot or mark.event_sequence > shown.event_sequence


def _has_proven(mark: Mark, known: NetworkView, view: NetworkView) -> bool:
    """Tell whether a look after a push has shown events that were new, up to those of the push."""
    return known.run.event_sequence < mark.event_sequence <= view.run.event_sequence


def _is_quorum(mark: Mark, known: NetworkView) -> bool:
    """Tell whether a mark differs from a view in the quorum only, which the reread shows, too."""
    run = replace(known.run, quorum_slot=mark.quorum_slot)
    return mark == mark_of(run, mark.slot)


class _Pace:
    """The slot of now, from the slots that were read and the clock."""

    def __init__(self) -> None:
        self._anchor: tuple[float, int] | None = None
        self._last = (0.0, 0)
        self._slots_per_second: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether two reads lie far enough apart to tell."""
        return self._slots_per_second is not None

    def observe(self, now: float, slot: int) -> None:
        """Take note of a slot that was read."""
        self._last = (now, slot)
        if self._anchor is None:
            self._anchor = (now, slot)
        elif now - self._anchor[0] >= PACE_SECONDS:
            self._slots_per_second = (slot - self._anchor[1]) / (now - self._anchor[0])
            self._anchor = (now, slot)

    def latest(self, now: float) -> int | None:
        """Return the last slot that can be now; None while the pace is unknown."""
        if self._slots_per_second is None:
            return None
        at, slot = self._last
        return slot + MAX_JUMP_SLOTS + int(4 * (now - at) * max(1.0, self._slots_per_second))

    def seconds(self, num_slots: int) -> float:
        """Return how long so many slots take; without end where the chain stands still."""
        return num_slots / self._slots_per_second if self._slots_per_second else inf

    def slot(self, now: float) -> Slot:
        """Return the slot that was read last, and those that have passed since at that pace."""
        at, slot = self._last
        return Slot(slot + int((now - at) * (self._slots_per_second or 0.0)))
