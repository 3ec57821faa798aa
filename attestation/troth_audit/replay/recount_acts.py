"""Phases and windows of acts in the recount (the checks at the head of the program's instructions).

Owns: the phases in which commits, attestations, joins, requests and closes of accounts are taken.
Never: changes the books. Next: `recount_phases.py` for the phases.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_phases import Phases, Step
from troth_audit.replay.recount_script import place_of
from troth_audit.replay.recount_state import Books
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import AuditRequested
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, ZERO_DIGEST
from troth_coordinator.rules.params import joins_are_open
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import IN_ROUND, Phase, ran_to_deadline
from troth_coordinator.rules.standing import is_short
from troth_coordinator.rules.view import Role, Status

_BEFORE_THE_END: Final = (
    of_life.ParticipantAdmitted,
    of_life.ParamsRequested,
    of_life.RosterInitialized,
    of_life.RunFunded,
    of_life.StakeToppedUp,
)
_AFTER_THE_END: Final = (of_life.AccountClosed, of_life.LeftoversPaid, of_life.RunClosed)


def is_known(event: Event) -> bool:
    """Whether an event is about an index that a run can have; others say nothing to the books."""
    indices = (getattr(event, name, 0) for name in ("index", "target"))
    return all(index < MAX_PARTICIPANTS for index in indices)


def check_act(phases: Phases, event: Event) -> Iterator[Finding]:
    """Yield why the program would have refused what an event tells. Raises MisfitError."""
    if not is_known(event):
        found = max(getattr(event, name, 0) for name in ("index", "target"))
        yield discrepancy(Rule.RUN_ACCOUNT, f"an index below {MAX_PARTICIPANTS}", found)
        return
    if phases.books.told.is_closed:
        yield discrepancy(Rule.PHASE, "nothing after RunClosed", event.name, *place_of(event))
    expected, is_allowed = _ACTS.get(type(event), _ANYTHING)
    if not is_allowed(phases, event):
        yield discrepancy(Rule.PHASE, expected, event.name, *place_of(event))


def _commits(phases: Phases, event: of_rounds.PayloadCommitted) -> bool:
    books, is_step = phases.books, phases.phase == Phase.COOLDOWN
    round_ = books.held(books.round)
    is_due = round_ is not None and bool(round_.trainers & ~round_.committed & 1 << event.index)
    is_open = phases.accepts(Phase.COOLDOWN if is_step else Phase.COMMIT, event.slot)
    is_named = event.round == books.round and event.root_vote != ZERO_DIGEST
    return is_open and is_due and is_named and (event.header_hash == ZERO_DIGEST) == is_step


def _attests(phases: Phases, event: of_rounds.Attested) -> bool:
    books = phases.books
    round_ = books.held(books.round)
    if round_ is None or event.round != books.round or not phases.accepts(Phase.ATTEST, event.slot):
        return False
    is_due = bool(round_.members & ~round_.attested & 1 << event.index)
    held = set(bitmap.indices_of(event.bitmap & round_.committed))
    is_within = all(at in held for at, byte in enumerate(event.possession) if byte)
    return is_due and is_within and not event.bitmap & ~round_.committed


def _joins(phases: Phases, event: of_life.ParticipantJoined) -> bool:
    params = phases.books.params
    is_open = phases.phase != Phase.FINISHED and joins_are_open(phases.books.round, params)
    is_role = 0 < event.roles <= int(Role.TRAINER | Role.WITNESS)
    return is_open and is_role and event.index < params.capacity


def _is_over(phases: Phases, event: Event) -> bool:
    books = phases.books
    if phases.phase == Phase.WAITING_FOR_MEMBERS and books.round == 0:
        return not books.owners  # its authority gives up a run that nobody joined
    last = phases.finished + longest_settlement_slots(books.params)
    return phases.phase == Phase.FINISHED and event.slot > last and not books.audits


def _reports(phases: Phases, _: of_rounds.MissingReported) -> bool:
    return phases.is_in_round and phases.phase != Phase.PAUSED


def _activates(phases: Phases, _: of_rounds.Activated) -> bool:
    is_between = phases.phase == Phase.PAUSED and phases.resume_phase == Phase.COMMIT
    return phases.phase in IN_ROUND or is_between


def _requests(phases: Phases, event: AuditRequested) -> bool:
    round_ = phases.books.held(event.round)
    if phases.phase != Phase.ATTEST or phases.step is not None or round_ is None:
        return False
    is_free = bitmap.count(round_.requested) < phases.books.params.audit_cap
    return is_free and bool(round_.committed & ~round_.requested & 1 << event.target)


def _sets_key(phases: Phases, event: of_life.SessionKeySet) -> bool:
    is_active = phases.books.entry(event.index).status == Status.ACTIVE
    return event.at_next_open == (is_active and phases.is_in_round)


def _speaks(phases: Phases, event: of_life.EndpointSet) -> bool:
    return phases.books.entry(event.index).is_present


def _announces(phases: Phases, event: of_life.ManifestAnnounced) -> bool:
    entry, (stored, _) = phases.books.entry(event.index), phases.books.stored_root
    return entry.is_present and entry.owner == bytes(event.owner) and event.round <= stored


def _turns_over(phases: Phases, event: of_rounds.MembershipChanged) -> bool:
    """Whether requests take effect now: as a round opens, or a stretch or a rest ends."""
    is_between = phases.step in (Step.OPENS, Step.REPEATS, Step.VOTED)
    has_rested = phases.phase == Phase.HALTED and ran_to_deadline(event.slot, phases.end)
    return (is_between or has_rested) and bool(event.left | event.rotated | event.short)


def _opens(phases: Phases, event: of_rounds.RoundOpened) -> bool:
    """Whether all that was requested has taken effect; a root-only step keeps leavers once."""
    before = phases.books.held(phases.books.round)
    is_repeated = before is not None and before.is_root_only and not before.is_forced_void
    return _has_turned_over(phases.books, keeps_going=event.root_only and not is_repeated)


def _starts(phases: Phases, event: of_rounds.PhaseStarted) -> bool:
    is_between = event.phase in (Phase.WAITING_FOR_MEMBERS, Phase.FINISHED)
    return not is_between or _has_turned_over(phases.books, keeps_going=False)


def _has_turned_over(books: Books, *, keeps_going: bool) -> bool:
    going = (
        entry.is_leaving or (entry.status == Status.ACTIVE and is_short(entry, books.params))
        for _, entry in books.members()
    )
    rotates = any(entry.has_next_session for _, entry in books.members())
    return not rotates and (keeps_going or not any(going))


def _makes_position(phases: Phases, event: of_life.RoundInitialized) -> bool:
    return phases.phase != Phase.FINISHED and event.position < phases.books.params.ring


def _is_unfinished(phases: Phases, _: Event) -> bool:
    return phases.phase != Phase.FINISHED


def _always(_: Phases, __: Event) -> bool:
    return True


_ANYTHING: Final[tuple[str, Callable[[Phases, Any], bool]]] = "", _always
_ACTS: Final[Mapping[type[Event], tuple[str, Callable[[Phases, Any], bool]]]] = {
    of_rounds.PayloadCommitted: ("a first commit of a trainer, while it is taken", _commits),
    of_rounds.Attested: ("a first word of a member about commits, while it is taken", _attests),
    of_rounds.MissingReported: ("an open round", _reports),
    of_rounds.Activated: ("an open round", _activates),
    of_rounds.MembershipChanged: ("requests that take effect between rounds", _turns_over),
    of_rounds.RoundOpened: ("MembershipChanged before this open", _opens),
    of_rounds.PhaseStarted: ("MembershipChanged before this phase", _starts),
    AuditRequested: ("a committed payload while members attest", _requests),
    of_life.ParticipantJoined: ("an index and roles that may be taken now", _joins),
    of_life.SessionKeySet: ("a key at the next open for members of an open round", _sets_key),
    of_life.EndpointSet: ("somebody who is present", _speaks),
    of_life.ManifestAnnounced: ("a stored checkpoint, by somebody present", _announces),
    of_life.RoundInitialized: ("a position of the ring", _makes_position),
    **dict.fromkeys(_BEFORE_THE_END, ("a run that has not finished", _is_unfinished)),
    **dict.fromkeys(_AFTER_THE_END, ("a run that is over, with all its cases", _is_over)),
}
