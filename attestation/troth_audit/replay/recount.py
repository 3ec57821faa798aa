"""The recount of all that the program decided about audits, cases and money, from events alone.

Owns: the order of it: which script an event starts, and what a script expects next.
Never: sees an account before the end, or asks anybody. Grows with ring and open audits only.
Next: `recount_script.py` for what a script is; then the scripts `recount_members.py`,
`recount_rounds.py`, `recount_seeds.py`, `recount_audits.py`, `recount_cases.py`,
`recount_sentence.py` and `recount_life.py`. They read like the files of the program.

Every field of a decision is recomputed exactly. These are the exceptions:

- A slot hash is in no event but the one that used it. The seed is exact given that hash. The slot
  of the hash lies between the seed slot and the slot of the event: only that is checked.
- The program pays a refund, a bounty or the rest of a bond to the pool where the receiver's account
  cannot hold it. Either way is right, and the parts must add up.
- Leftovers hold what strangers sent to the vault: they are at least the pool.
- A withdrawal in part is an owner's choice: it is at most the stake above the minimum.
- Leavers and the short stay for a root-only step. The next open shows whether it was one.
- The signer, the challenger and the payer of rents are taken as told. So are the new parameters of
  a request, if an update may go so far.
- The root and the payloads that a round closes with are taken from its close; `closes.py` checks
  them. The evidence behind a verdict is not judged here.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from troth_attestation.errors import AttestationError
from troth_audit.replay import recount_audits as audits
from troth_audit.replay import recount_cases as cases
from troth_audit.replay import recount_life as life
from troth_audit.replay import recount_members as members
from troth_audit.replay import recount_rounds as rounds
from troth_audit.replay import recount_seeds as seeds
from troth_audit.replay import recount_sentence as sentences
from troth_audit.replay import recount_standing as standing
from troth_audit.replay.errors import MisfitError
from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_acts import check_act, is_known
from troth_audit.replay.recount_money import totals
from troth_audit.replay.recount_phases import Phases
from troth_audit.replay.recount_refusals import check_refusals
from troth_audit.replay.recount_script import Expected, Script, place_of
from troth_audit.replay.recount_state import Books, standing_of
from troth_audit.replay.told import Told
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.errors import RulesError
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView

SCRIPTS: Final[Mapping[type[Event], Callable[[Books, Any], Script]]] = {
    of_life.RunFunded: life.funded,
    of_life.ParamsRequested: life.params_requested,
    of_life.ParamsApplied: life.params_applied,
    of_life.ParticipantJoined: life.joined,
    of_life.RecordMoved: life.record_moved,
    of_life.RewardsMoved: life.rewards_moved,
    of_life.StakeToppedUp: life.topped_up,
    of_life.LeaveRequested: life.leaving,
    of_life.StakeUnbonding: life.unbonding,
    of_life.StakeWithdrawn: life.withdrawn,
    of_life.RewardClaimed: life.claimed,
    of_life.ParticipantClosed: life.participant_closed,
    of_life.LeftoversPaid: life.leftovers,
    of_rounds.RoundOpened: rounds.opened,
    of_rounds.RoundClosed: rounds.closed,
    of_rounds.MembershipChanged: members.membership_changed,
    of_rounds.MissingReported: rounds.missing,
    of_rounds.ReadyPosted: members.ready,
    of_rounds.WarmupEnded: members.warmup_ended,
    of_rounds.Activated: members.activated,
    of_rounds.SeedFrozen: seeds.frozen,
    of_rounds.SeedRetargeted: seeds.retargeted,
    of_rounds.SeedLost: seeds.lost,
    of_audits.ProbationsEnded: members.probations_ended,
    of_audits.AuditRequested: audits.requested,
    of_audits.AuditOpened: audits.opened,
    of_audits.OpeningsPosted: audits.openings_posted,
    of_audits.VerdictCommitted: audits.committed,
    of_audits.VerdictRevealed: audits.revealed,
    of_audits.AuditExtended: audits.extended,
    of_audits.AuditSettled: audits.settled,
    of_audits.CaseOpened: cases.opened,
    of_audits.CaseSeedRetargeted: cases.retargeted,
    of_audits.CaseSeedLost: cases.lost,
    of_audits.JuryDrawn: cases.drawn,
    of_audits.JurorVoteCommitted: cases.committed,
    of_audits.JurorVoteRevealed: cases.revealed,
    of_audits.CaseSettled: cases.settled,
    of_audits.CaseAppealed: sentences.appealed,
    of_audits.CaseReversed: sentences.reversed_,
    of_audits.AuditClosed: sentences.closed,
}
_PRELUDE: Final = (
    of_audits.Penalised,
    of_audits.ProbationChanged,
    of_audits.ProbationsEnded,
    of_audits.FeesScaled,
)
"""Events that the end of an audit or case records before the event that names its outcome."""
_ENDS: Final = (of_audits.AuditSettled, of_audits.CaseSettled)
_NEVER_FIRST: Final = (
    of_life.ParticipantLeft,
    of_rounds.RoundSettled,
    of_rounds.RewardsScaled,
    of_rounds.PayloadStruck,
    of_audits.PrepaidRefunded,
)


class Recount:
    """Recounts a run. `check` takes every event in order, before `told` takes it."""

    def __init__(self, told: Told, run: bytes) -> None:
        self.books = Books(told, run)
        self.phases = Phases(self.books)
        self._script: Script | None = None
        self._expected: Expected | None = None
        self._held: list[Event] = []

    def check(self, event: Event) -> Iterator[Finding]:
        """Yield what of an event does not follow from those before it."""
        try:
            yield from check_act(self.phases, event)
            yield from check_refusals(self.phases, event)
            yield from self.phases.check(event)
        except (MisfitError, RulesError) as error:
            yield _misfit(error, event)
        if not is_known(event):
            return
        yield from self._recount(event)
        try:
            self.phases.note(event)
        except (MisfitError, RulesError) as error:
            yield _misfit(error, event)

    def _recount(self, event: Event) -> Iterator[Finding]:
        if isinstance(event, of_rounds.CheckpointStored):
            return
        if self._script is not None and isinstance(event, _expected_type(self._expected)):
            yield from self._go_on(event)
            return
        yield from self._end_script(event.name, event)
        if isinstance(event, _PRELUDE):
            self._held.append(event)
            return
        yield from self._start_all(event)

    def end(self, run: RunView | None = None) -> Iterator[Finding]:
        """Yield what the whole leaves open; with the Run account, whether each lamport is there."""
        yield from self._end_script("the end", None)
        yield from self._stray(self._held)
        self._held = []
        if run is None:
            return
        for name, value in dataclasses.asdict(totals(self.books)).items():
            found = getattr(run, name)
            if found != value:
                yield discrepancy(Rule.VAULT, f"{name} {value}", f"{name} {found}")
        yield from self.phases.differences(run)
        pending = {"seeds_pending": seeds.pending(self.books)}
        for name, value in {**standing_of(self.books), **pending}.items():
            found = getattr(run, name)
            if found != value:
                yield discrepancy(Rule.RUN_ACCOUNT, f"{name} {value}", f"{name} {found}")

    def _start_all(self, event: Event) -> Iterator[Finding]:
        held, self._held = self._held, []
        if not isinstance(event, _ENDS):
            yield from self._stray(held)
            held = []
        yield from self._start(event, [*held, event])

    def _stray(self, held: list[Event]) -> Iterator[Finding]:
        """Events that came before no outcome: memberships may end without one."""
        for one in held:
            if isinstance(one, of_audits.ProbationsEnded):
                yield from self._start(one, [one])
            else:
                rule = Rule.REWARD
                rule = Rule.PENALTY if isinstance(one, of_audits.Penalised) else rule
                yield discrepancy(rule, "the outcome that it is part of", one.name, *place_of(one))

    def _start(self, cause: Event, events: list[Event]) -> Iterator[Finding]:
        made = SCRIPTS.get(type(cause))
        if made is None:
            yield from self._take_plain(cause)
            return
        self._script = made(self.books, cause)
        yield from self._advance(None, cause)
        for event in events:
            if self._script is None:
                break
            if not isinstance(event, _expected_type(self._expected)):
                yield from self._end_script(event.name, event)
                break
            yield from self._go_on(event)

    def _go_on(self, event: Event) -> Iterator[Finding]:
        if self._expected is not None:
            yield from self._expected.compare(event)
        yield from self._advance(event, event)

    def _advance(self, event: Event | None, cause: Event) -> Iterator[Finding]:
        """Run the script to the next event that it expects; `cause` is where it stands."""
        if self._script is None:
            return
        try:
            self._expected = next(self._script) if event is None else self._script.send(event)
        except StopIteration:
            self._script = self._expected = None
        except (MisfitError, RulesError, AttestationError) as error:
            self._script = self._expected = None
            yield _misfit(error, cause)

    def _end_script(self, found: str, event: Event | None) -> Iterator[Finding]:
        """Something else came than the script expects."""
        if self._expected is not None:
            where = place_of(event) if event is not None else (None, None)
            yield discrepancy(self._expected.rule, self._expected.type.__name__, found, *where)
        self._script = self._expected = None

    def _take_plain(self, event: Event) -> Iterator[Finding]:
        """Take in what decides nothing by itself."""
        try:
            yield from _note(self.books, event)
        except (MisfitError, RulesError) as error:
            yield _misfit(error, event)


def _misfit(error: MisfitError | RulesError | AttestationError, event: Event) -> Finding:
    if isinstance(error, MisfitError):
        return discrepancy(error.rule, error.expected, error.found, *place_of(event))
    return discrepancy(Rule.RUN_ACCOUNT, "values that a run can have", error, *place_of(event))


def _expected_type(expected: Expected | None) -> type[Event]:
    return Event if expected is None else expected.type


def _note(books: Books, event: Event) -> Iterator[Finding]:
    if isinstance(event, _NEVER_FIRST):
        yield discrepancy(Rule.REWARD, "what it is part of", event.name, *place_of(event))
    elif isinstance(event, of_life.RunResumed):
        yield from _resume(books, event)
    else:
        _take_in(books, event)


def _take_in(books: Books, event: Event) -> None:
    match event:
        case of_rounds.PayloadCommitted() | of_rounds.Attested():
            _act(books, event)
        case of_rounds.PhaseStarted():
            members.phase_started(books, event)
        case of_life.ParticipantAdmitted():
            books.owner(bytes(event.owner)).is_admitted = True
            if books.newest_round == NONE:
                admitted = books.expected.admitted + 1
                books.expected = dataclasses.replace(books.expected, admitted=admitted)
        case of_life.SessionKeySet():
            books.entry(event.index).has_next_session = event.at_next_open
        case of_life.RunPaused():
            books.paused_at, books.phase = event.slot, Phase.PAUSED
            books.resume_phase = event.resume_phase
        case _:
            return


def _act(books: Books, event: of_rounds.PayloadCommitted | of_rounds.Attested) -> None:
    standing.act(books, books.entry(event.index), event.slot)
    round_ = books.round_of(event.round, Rule.ROUND_SETS)
    if isinstance(event, of_rounds.Attested):
        round_.vouched[event.index] = event.bitmap
    else:
        round_.committed |= 1 << event.index
        round_.votes[event.index] = event.root_vote


def _resume(books: Books, event: of_life.RunResumed) -> Iterator[Finding]:
    elapsed = event.slot - books.paused_at if books.paused_at != NONE else 0
    books.pause_total += elapsed
    books.paused_at, books.phase = NONE, event.phase
    fields = {"paused_slots": elapsed, "pause_total_slots": books.pause_total}
    yield from Expected(of_life.RunResumed, Rule.RUN_ACCOUNT, fields).compare(event)
