"""The phases of a run in the recount: what begins and ends when (program: `round/waiting.rs`).

Owns: the phase with its window, the order of phases, pauses, the marks that a close carries.
Never: moves lamports, or decides what a close includes.
Next: `recount_acts.py` for what may be done in a phase.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import singledispatchmethod
from typing import Final

from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_members import attendance
from troth_audit.replay.recount_rounds import is_last_step
from troth_audit.replay.recount_script import Expected, place_of
from troth_audit.replay.recount_state import Books
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.bitmap import count
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.lateness import VOID_ROUNDS_TO_HALT
from troth_coordinator.rules.membership import sets_of
from troth_coordinator.rules.params import joins_are_open
from troth_coordinator.rules.phase import (
    IN_ROUND,
    Phase,
    accepts_actions,
    end_by_time,
    has_quorum,
    may_end,
    ran_to_deadline,
)
from troth_coordinator.rules.view import RoundFlag, RunView

_PAUSED_AT_ONCE: Final = (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP, Phase.COOLDOWN)


class Step(Enum):
    """A point in the middle of a transaction, and what comes next there."""

    OPENS = "an open round"
    VOTED = "the end of a stretch of rounds"
    REPEATS = "the root-only step again"
    FEW = "the wait for members"


@dataclass(slots=True)
class Phases:
    """Follows the phases. `check` takes an event before the books do, `note` after that."""

    books: Books
    phase: int = Phase.WAITING_FOR_MEMBERS
    resume_phase: int = Phase.WAITING_FOR_MEMBERS
    start: int = 0
    end: int = NONE
    quorum: int = NONE
    step: Step | None = None
    marks: int = 0
    """Marks of the open round so far."""
    waiting_since: int = NONE
    had_last_warmup: bool = False
    is_pause_requested: bool = False
    pause_window: int = 0
    pause_used: int = 0
    finished: int = NONE

    def check(self, event: Event) -> Iterator[Finding]:
        """Yield what cannot come now. Raises MisfitError, RulesError."""
        if event.slot < self.books.told.slot:
            expected = f"slot {self.books.told.slot} or a later one"
            yield discrepancy(Rule.PHASE, expected, f"slot {event.slot}", *place_of(event))
        yield from self._check(event)

    def note(self, event: Event) -> None:
        """Remember the slot in which four fifths had acted."""
        counts = of_rounds.ReadyPosted | of_life.ParticipantLeft  # fewer may be enough
        if isinstance(event, counts) and self.phase == Phase.WARMUP:
            found = attendance(self.books)
            self._note_quorum(count(found.ready), count(found.pending), event.slot)
            return
        is_act = isinstance(event, of_rounds.PayloadCommitted | of_rounds.Attested)
        round_ = self.books.held(self.books.round) if is_act else None
        if round_ is None or self.step is not None:
            return
        is_commit = isinstance(event, of_rounds.PayloadCommitted)
        acted = round_.committed if is_commit else round_.attested
        due = round_.trainers if is_commit else round_.members
        self._note_quorum(count(acted), count(due), event.slot)

    def accepts(self, phase: int, slot: int) -> bool:
        """Whether an act of this phase still counts."""
        return self.step is None and self.phase == phase and accepts_actions(slot, self.end)

    @property
    def is_in_round(self) -> bool:
        """Whether a round or the root-only step is open."""
        phase = self.resume_phase if self.phase == Phase.PAUSED else self.phase
        is_open = phase in (*IN_ROUND, Phase.COOLDOWN)
        return is_open and not (self.phase == Phase.PAUSED and phase in IN_ROUND)

    def differences(self, run: RunView) -> Iterator[Finding]:
        """Yield where the Run account at the end of the events is in another phase.

        Commits and attestations may set the slot of the quorum, and the chain hash absorbs neither.
        While they may come, an account of the same hash may be older or newer than the events.
        """
        ours = {
            "phase": self.phase,
            "phase_start_slot": self.start,
            "phase_end_slot": self.end,
            "quorum_slot": self.quorum,
            "waiting_since": self.waiting_since,
            "expected_admitted": self.books.expected.admitted,
            "expected_members": self.books.expected.of_epoch,
            "expected_before": self.books.expected.before,
            "expected_epoch": self.books.expected.epoch,
            "pause_used_slots": self.pause_used,
            "finished_slot": self.finished,
        }
        if self.phase in (*IN_ROUND, Phase.COOLDOWN):
            del ours["quorum_slot"]
        for name, value in ours.items():
            found = getattr(run, name)
            if found != value:
                yield discrepancy(Rule.PHASE, f"{name} {value}", f"{name} {found}")

    @singledispatchmethod
    def _check(self, event: Event) -> Iterator[Finding]:
        """Most events mean nothing here."""
        yield from ()

    @_check.register
    def _(self, event: of_life.RunCreated) -> Iterator[Finding]:
        self._wait(event.slot)
        yield from ()

    @_check.register
    def _(self, event: of_rounds.PhaseStarted) -> Iterator[Finding]:
        params, books = self.books.params, self.books
        yield from self._allowed(event, self._next_phases(event.slot))
        if event.phase not in set(Phase):
            return
        if event.phase == Phase.WAITING_FOR_MEMBERS:
            self._wait(event.slot)
        elif event.phase == Phase.WARMUP:
            self.had_last_warmup |= self._has_waited_long(event.slot)
            self._enter(event.phase, event.slot, params.warmup_slots)
            found = attendance(books)
            self._note_quorum(count(found.ready), count(found.pending), event.slot)
        else:
            if event.phase == Phase.ATTEST and ran_to_deadline(event.slot, self.end):
                self.marks |= RoundFlag.COMMIT_RAN_TO_DEADLINE
            windows = {Phase.ATTEST: params.attest_slots, Phase.HALTED: params.halt_slots}
            self._enter(event.phase, event.slot, windows.get(Phase(event.phase)))
        if event.phase == Phase.FINISHED:
            self.finished = event.slot
        if event.phase == Phase.HALTED:
            self.is_pause_requested = False
        fields = {"round": books.round, "ends_slot": self.end}
        yield from Expected(of_rounds.PhaseStarted, Rule.PHASE, fields).compare(event)

    @_check.register
    def _(self, event: of_rounds.RoundOpened) -> Iterator[Finding]:
        is_due = self.step in (Step.OPENS, Step.REPEATS) and not self._must_halt()
        if not is_due or self.is_pause_requested or not event.trainers:
            yield _misplaced(event, self._here)
        self._enter(
            Phase.COOLDOWN if event.root_only else Phase.COMMIT,
            event.slot,
            self.books.params.commit_slots,
        )
        self.marks = int(RoundFlag.ROOT_ONLY) if event.root_only else 0
        fields = {"ends_slot": self.end}
        yield from Expected(of_rounds.RoundOpened, Rule.PHASE, fields).compare(event)

    @_check.register
    def _(self, event: of_rounds.RoundClosed) -> Iterator[Finding]:
        round_ = self.books.round_of(event.round, Rule.PHASE)
        is_forced, is_cooldown = round_.is_forced_void, self.phase == Phase.COOLDOWN
        acted, due = (
            (round_.committed, round_.trainers)
            if is_cooldown
            else (round_.attested, round_.members)
        )
        is_time = is_forced or self._may_end(count(acted), count(due), event.slot)
        closable = (Phase.ATTEST, Phase.COOLDOWN, *((Phase.COMMIT,) if is_forced else ()))
        if self.phase not in closable or self.step is not None or not is_time:
            yield _misplaced(event, self._here)
        marks = self.marks | RoundFlag.CLOSED | event.flags & RoundFlag.VOID
        if is_forced:
            marks |= RoundFlag.FORCED_VOID | RoundFlag.VOID
        if ran_to_deadline(event.slot, self.end):
            is_attest = self.phase == Phase.ATTEST
            ran = RoundFlag.ATTEST_RAN_TO_DEADLINE if is_attest else None
            marks |= ran or RoundFlag.COMMIT_RAN_TO_DEADLINE
        fields = {"round": self.books.round, "flags": int(marks)}
        yield from Expected(of_rounds.RoundClosed, Rule.PHASE, fields).compare(event)
        is_void = bool(event.flags & RoundFlag.VOID)
        self.step = Step.OPENS
        if round_.is_root_only:
            self.step = Step.REPEATS if is_void else Step.VOTED
        elif not is_void:
            self.waiting_since, self.had_last_warmup = NONE, False

    @_check.register
    def _(self, event: of_rounds.WarmupEnded) -> Iterator[Finding]:
        found = attendance(self.books)
        is_time = self._may_end(count(found.ready), count(found.pending), event.slot)
        if self.phase != Phase.WARMUP or self.step is not None or not is_time:
            yield _misplaced(event, self._here)
        self.step = Step.OPENS if event.ready else Step.FEW

    @_check.register
    def _(self, event: of_life.PauseRequested) -> Iterator[Finding]:
        is_open = self.phase in IN_ROUND and self.step is None
        if not is_open or self.is_pause_requested or not self._has_pauses_left(event.slot):
            yield _misplaced(event, self._here)
        self.is_pause_requested = True

    @_check.register
    def _(self, event: of_life.PauseCancelled) -> Iterator[Finding]:
        if not self.is_pause_requested:
            yield _misplaced(event, "no pause that was requested")
        self.is_pause_requested = False

    @_check.register
    def _(self, event: of_life.RunPaused) -> Iterator[Finding]:
        resumes = self.phase
        is_void = self.books.void_streak >= VOID_ROUNDS_TO_HALT
        if self.step is Step.OPENS and self.is_pause_requested and not is_void:
            resumes = Phase.COMMIT
        elif self.step is not None or self.phase not in _PAUSED_AT_ONCE:
            yield _misplaced(event, self._here)
        elif not self._has_pauses_left(event.slot):
            yield _misplaced(event, "a budget for pauses that is spent")
        fields = {"resume_phase": int(resumes)}
        yield from Expected(of_life.RunPaused, Rule.PHASE, fields).compare(event)
        self.phase, self.resume_phase, self.step = Phase.PAUSED, resumes, None
        self.is_pause_requested = False

    @_check.register
    def _(self, event: of_life.RunResumed) -> Iterator[Finding]:
        if self.phase != Phase.PAUSED:
            yield _misplaced(event, self._here)
        fields = {"phase": int(self.resume_phase)}
        yield from Expected(of_life.RunResumed, Rule.PHASE, fields).compare(event)
        since = self.books.paused_at
        elapsed = 0 if since == NONE else max(0, event.slot - since)
        moments = (self.start, self.end, self.quorum)
        self.start, self.end, self.quorum = (
            one if one == NONE else one + elapsed for one in moments
        )
        self.pause_used += elapsed
        self.pause_window, self.phase = event.slot, self.resume_phase
        self.step = Step.OPENS if self.phase == Phase.COMMIT else None

    @property
    def _here(self) -> str:
        return self.step.value if self.step else f"{Phase(self.phase).name.lower()} under way"

    def _allowed(
        self, event: of_rounds.PhaseStarted, phases: tuple[Phase, ...]
    ) -> Iterator[Finding]:
        if event.phase not in phases:
            names = " or ".join(one.name.lower() for one in phases) or self._here
            yield discrepancy(Rule.PHASE, names, f"{event.name}, phase {event.phase}", event.round)

    def _next_phases(self, slot: int) -> tuple[Phase, ...]:
        """Return the phases that may be announced now."""
        if self.step in (Step.OPENS, Step.REPEATS):
            return (Phase.HALTED,) if self._must_halt() else ()
        if self.step is not None:
            is_over = self.books.round >= self.books.params.max_rounds
            is_last = self.step is Step.VOTED and is_over
            return (Phase.FINISHED if is_last else Phase.WAITING_FOR_MEMBERS,)
        if self.phase == Phase.WAITING_FOR_MEMBERS:
            return self._after_waiting(slot)
        is_rest_over = self.phase == Phase.HALTED and ran_to_deadline(slot, self.end)
        round_ = self.books.held(self.books.round)
        if self.phase == Phase.COMMIT and round_ is not None:
            acted, due = count(round_.committed), count(round_.trainers)
            return (Phase.ATTEST,) if self._may_end(acted, due, slot) else ()
        return (Phase.WAITING_FOR_MEMBERS,) if is_rest_over else ()

    def _must_halt(self) -> bool:
        """Whether too many rounds were void, or nobody or a minority is left to vote."""
        books = self.books
        if books.void_streak >= VOID_ROUNDS_TO_HALT:
            return True
        keeps_going = is_last_step(books)
        sets = sets_of(books.entries, books.round, books.params, keeps_going=keeps_going)
        return not sets.trainers or not books.expected.is_half(count(sets.members))

    def _after_waiting(self, slot: int) -> tuple[Phase, ...]:
        books, params, found = self.books, self.books.params, attendance(self.books)
        least, is_over = params.min_members, books.round >= params.max_rounds
        num_there, has_trainer = count(found.pending), found.trainers != 0
        least_of_all = books.expected.least_to_begin(least)
        may_begin = not is_over and num_there >= least and has_trainer
        can_begin = may_begin and num_there >= least_of_all
        is_ready = can_begin and count(found.ready) >= least_of_all
        had_its_chance = not can_begin or self.had_last_warmup
        in_vain = self._has_waited_long(slot) and not is_ready and had_its_chance
        if can_begin and not in_vain:
            return (Phase.WARMUP,)
        if can_begin and books.round == 0:
            return Phase.WARMUP, Phase.FINISHED  # the authority may give it up, nobody else
        if may_begin:
            return Phase.WARMUP, *((Phase.FINISHED,) if in_vain else ())  # the authority began it
        is_late = not joins_are_open(books.round, params) and count(found.present) < least
        return (Phase.FINISHED,) if is_over or is_late or in_vain else ()

    def _has_waited_long(self, slot: int) -> bool:
        waited = max(0, self.books.clock(slot) - self.waiting_since)
        return waited > self.books.params.unbond_slots

    def _has_pauses_left(self, slot: int) -> bool:
        if slot >= self.pause_window + self.books.params.unbond_slots:
            self.pause_used = 0
        return self.pause_used < self.books.params.max_pause_slots

    def _may_end(self, acted: int, due: int, slot: int) -> bool:
        return may_end(slot, end_by_time(self.start, self.end, self.quorum), acted, due)

    def _note_quorum(self, acted: int, due: int, slot: int) -> None:
        if self.quorum == NONE and has_quorum(acted, due):
            self.quorum = slot

    def _wait(self, slot: int) -> None:
        self.waiting_since = min(self.waiting_since, self.books.clock(slot))
        self._enter(Phase.WAITING_FOR_MEMBERS, slot, None)

    def _enter(self, phase: int, slot: int, slots: int | None) -> None:
        self.phase, self.start, self.step = phase, slot, None
        self.end = NONE if slots is None else slot + slots
        self.quorum = NONE


def _misplaced(event: Event, here: str) -> Finding:
    return discrepancy(Rule.PHASE, here, event.name, *place_of(event))
