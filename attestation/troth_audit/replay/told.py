"""The facts that a run's events state, up to the newest one: keys, roles, commits, sets.

Owns: the run's terms, who sits at which index with which keys, and the rounds of the ring.
Never: checks anything, reads a file, or grows with the run: old rounds are forgotten.
Next: the checks beside this file, which compare it with what else is known; `recount_state.py` for
what the events imply.

A check takes `(told, event)` before `told.take(event)`: then `told` is what the program saw.
"""

from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import Final

from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.membership import previous_included
from troth_coordinator.rules.params_view import ParamsView

MOST_KEPT_ROUNDS: Final = 4_096
"""Rounds are kept for the ring, and for audits that still name them; never more than these."""


@dataclass(frozen=True, slots=True)
class Member:
    """The participant at an index; keys are 32 bytes. `next_session` waits for the next open."""

    owner: bytes
    session: bytes
    roles: int
    joined_round: int
    next_session: bytes | None = None
    last_included: int = NONE


@dataclass(slots=True)
class RoundTold:
    """One round as its events told it so far.

    `members` are those at its open, by index. Each has the key that it commits with, or the one at
    the open. `included` is that of the close, without what was struck since.
    """

    opened: of_rounds.RoundOpened
    members: dict[int, Member]
    commits: dict[int, of_rounds.PayloadCommitted] = field(default_factory=dict)
    attests: dict[int, of_rounds.Attested] = field(default_factory=dict)
    closed: of_rounds.RoundClosed | None = None
    settled: of_rounds.RoundSettled | None = None
    seed: of_rounds.SeedFrozen | None = None
    included: int = 0
    struck: int = 0

    @property
    def number(self) -> int:
        """Its number; the root-only step has that of the round that would have opened."""
        return self.opened.round

    def rekey(self, index: int, session: bytes) -> None:
        """Note a key that is in force at once, as of somebody who was jailed in this round."""
        if index in self.members and index not in self.commits:
            self.members[index] = replace(self.members[index], session=session)


@dataclass(slots=True)
class Told:
    """The state of a run by its events.

    `residual_rounds` comes from the run's config: previous inclusions are masked to that period.
    """

    residual_rounds: int
    created: of_life.RunCreated | None = None
    params: ParamsView | None = None
    slot: int = 0
    phase_ends: int = 0
    """The last slot of the phase that began last, as its event names it."""
    restart: tuple[int, int] | None = None
    """From the end of a Warmup to its first open: this round, and that of the stored root."""
    stored: of_rounds.CheckpointStored | None = None
    is_closed: bool = False
    """Whether the run's accounts were closed: nothing comes after that."""
    members: dict[int, Member] = field(default_factory=dict)
    rounds: dict[int, RoundTold] = field(default_factory=dict)
    newest: RoundTold | None = None

    def take(self, event: Event) -> None:
        """Take in the next event of the run."""
        self.slot = event.slot
        self._take(event)

    def previous_included(self, round_: RoundTold, index: int) -> int:
        """Return the round whose residual a header of this round may carry on; NONE for none."""
        member = round_.members[index]
        return previous_included(member.last_included, round_.number, self.residual_rounds)

    @singledispatchmethod
    def _take(self, event: Event) -> None:
        """Most events change nothing here."""

    @_take.register
    def _(self, event: of_life.RunCreated) -> None:
        self.created, self.params = event, event.params

    @_take.register
    def _(self, event: of_life.RunClosed) -> None:
        self.is_closed = True

    @_take.register
    def _(self, event: of_life.RunResumed) -> None:
        if self.phase_ends != NONE:
            self.phase_ends += event.paused_slots

    @_take.register
    def _(self, event: of_life.ParamsApplied) -> None:
        self.params = event.params

    @_take.register
    def _(self, event: of_life.ParticipantJoined) -> None:
        keys = bytes(event.owner), bytes(event.session)
        self.members[event.index] = Member(*keys, event.roles, event.round)

    @_take.register
    def _(self, event: of_life.SessionKeySet) -> None:
        member, key = self.members.get(event.index), bytes(event.session)
        if member is None:
            return
        if event.at_next_open:
            self.members[event.index] = replace(member, next_session=key)
            return
        self.members[event.index] = replace(member, session=key, next_session=None)
        if self.newest is not None:
            self.newest.rekey(event.index, key)

    @_take.register
    def _(self, event: of_rounds.MembershipChanged) -> None:
        for index in bitmap.indices_of(event.rotated):
            member = self.members.get(index)
            if member is not None and member.next_session is not None:
                self.members[index] = replace(
                    member, session=member.next_session, next_session=None
                )

    @_take.register
    def _(self, event: of_rounds.WarmupEnded) -> None:
        if not event.ready:
            return
        for index in bitmap.indices_of(event.ready):
            self._include(index, NONE)
        self.restart = event.round, 0 if self.stored is None else self.stored.round

    @_take.register
    def _(self, event: of_rounds.RoundOpened) -> None:
        self.phase_ends = event.ends_slot
        self.restart = None
        self.newest = RoundTold(event, dict(self.members))
        self.rounds[event.round] = self.newest
        self._forget(event.round)

    @_take.register
    def _(self, event: of_rounds.PayloadCommitted) -> None:
        if self.newest is not None:
            self.newest.commits[event.index] = event

    @_take.register
    def _(self, event: of_rounds.Attested) -> None:
        if self.newest is not None:
            self.newest.attests[event.index] = event

    @_take.register
    def _(self, event: of_rounds.RoundClosed) -> None:
        if self.newest is None:
            return
        self.newest.closed, self.newest.included = event, event.included
        for index in bitmap.indices_of(event.included):
            self._include(index, event.round)

    @_take.register
    def _(self, event: of_rounds.RoundSettled) -> None:
        if event.round in self.rounds:
            self.rounds[event.round].settled = event

    @_take.register
    def _(self, event: of_rounds.PayloadStruck) -> None:
        struck = self.rounds.get(event.round)
        if struck is None:
            return
        struck.included = event.included
        struck.struck |= 1 << event.target
        if event.target in struck.members:
            before = struck.members[event.target].last_included
            self._include(event.target, before)

    @_take.register
    def _(self, event: of_rounds.SeedFrozen) -> None:
        if event.round in self.rounds:
            self.rounds[event.round].seed = event

    @_take.register
    def _(self, event: of_rounds.Activated) -> None:
        self._include(event.index, NONE)

    @_take.register
    def _(self, event: of_rounds.CheckpointStored) -> None:
        self.stored = event

    @_take.register
    def _(self, event: of_rounds.PhaseStarted) -> None:
        self.phase_ends = event.ends_slot

    def _include(self, index: int, round_: int) -> None:
        if index in self.members:
            self.members[index] = replace(self.members[index], last_included=round_)

    def _forget(self, newest: int) -> None:
        ring = self.params.ring if self.params is not None else MOST_KEPT_ROUNDS
        oldest = newest - 2 * ring
        for number in [one for one in self.rounds if one < oldest]:
            del self.rounds[number]
