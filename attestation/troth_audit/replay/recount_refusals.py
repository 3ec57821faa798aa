"""Refusals of the program in the recount: whoever may join, leave, be paid or close.

Owns: the checks at the head of instructions about people, seeds and the end, by their names.
Never: changes the books. Next: `recount_acts.py` for phases and windows.

A forbidden act that was told is found here; the scripts find a false field of one that is allowed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final

from troth_audit.replay import recount_life as life
from troth_audit.replay.findings import Finding, Rule, discrepancy
from troth_audit.replay.recount_money import totals, unvested_at
from troth_audit.replay.recount_phases import Phases
from troth_audit.replay.recount_script import place_of
from troth_audit.replay.recount_seeds import WAITING
from troth_audit.replay.recount_state import Books, Entry
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.ids import MAX_TICKETS, NONE, ZERO_DIGEST
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.params_view import Admission
from troth_coordinator.rules.phase import IN_ROUND, Phase
from troth_coordinator.rules.view import Role, Status

_OfIndex = (
    of_life.StakeToppedUp
    | of_life.LeaveRequested
    | of_life.StakeUnbonding
    | of_life.SessionKeySet
    | of_life.EndpointSet
    | of_life.ManifestAnnounced
    | of_rounds.ReadyPosted
)
_OfLamports = (
    of_life.RunFunded | of_life.StakeToppedUp | of_life.StakeWithdrawn | of_life.RewardClaimed
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One check of an instruction. `name` is the program's error where it does not hold."""

    name: str
    rule: Rule
    expected: str
    holds: Callable[[Phases, Any], bool]


def check_refusals(phases: Phases, event: Event) -> Iterator[Finding]:
    """Yield why the program would have refused what an event tells. Raises MisfitError."""
    for refusal in REFUSALS.get(type(event), ()):
        if not refusal.holds(phases, event):
            yield discrepancy(refusal.rule, refusal.expected, event.name, *place_of(event))


def _is_allowed(phases: Phases, event: of_life.ParticipantJoined) -> bool:
    owner = phases.books.owners.get(bytes(event.owner))
    return owner is None or not owner.is_barred


def _is_admitted(phases: Phases, event: of_life.ParticipantJoined) -> bool:
    owner = phases.books.owners.get(bytes(event.owner))
    is_open = phases.books.params.admission == Admission.OPEN
    return is_open or (owner is not None and owner.is_admitted)


def _may_join(phases: Phases, event: of_life.ParticipantJoined) -> bool:
    """Whether the former membership of an owner is over, and no case can be about it."""
    books, key = phases.books, bytes(event.owner)
    owner, clock = books.owners.get(key), phases.books.clock(event.slot)
    former = None if owner is None else books.entries.get(owner.index)
    if owner is None or former is None or former.owner != key:
        return True
    longest = longest_settlement_slots(books.params)
    opened = (max(0, matures - books.params.unbond_slots) for matures, _ in owner.tickets)
    is_past = life.is_free(books, former) or all(since + longest < clock for since in opened)
    is_gone = former.status == Status.LEFT and not life.is_named(books, former.index)
    return is_gone and is_past and unvested_at(books, former, event.slot) == 0


def _is_needed(phases: Phases, event: of_life.ParticipantJoined) -> bool:
    """Whether one more participant that only witnesses may come."""
    if event.roles & Role.TRAINER:
        return True
    present = [entry for _, entry in phases.books.members() if entry.is_present]
    only = sum(not entry.roles & Role.TRAINER for entry in present)
    return only < phases.books.params.max_witness_only


def _may_admit(phases: Phases, _: of_life.ParticipantAdmitted) -> bool:
    return phases.books.params.admission == Admission.ALLOWLIST


def _is_unknown(phases: Phases, event: of_life.ParticipantAdmitted) -> bool:
    return bytes(event.owner) not in phases.books.owners


def _entry(phases: Phases, event: _OfIndex) -> Entry | None:
    """Return the entry that an event names; the scripts say where there is none."""
    return phases.books.entries.get(event.index)


def _holds_index(phases: Phases, event: _OfIndex) -> bool:
    """Whether an index is the last one that its owner got."""
    entry = _entry(phases, event)
    owner = None if entry is None else phases.books.owners.get(entry.owner)
    return entry is None or (owner is not None and owner.index == event.index)


def _is_present(phases: Phases, event: _OfIndex) -> bool:
    entry = _entry(phases, event)
    return entry is None or (entry.is_present and _holds_index(phases, event))


def _stays(phases: Phases, event: _OfIndex) -> bool:
    entry = _entry(phases, event)
    return entry is None or (entry.is_present and not entry.is_leaving)


def _may_set_key(phases: Phases, event: of_life.SessionKeySet) -> bool:
    """Whether somebody is present, or an audit or a case needs its word."""
    entry = _entry(phases, event)
    if entry is None:
        return True
    is_judge = life.is_named(phases.books, event.index) and entry.status != Status.BARRED
    is_here = entry.is_present and phases.phase != Phase.FINISHED
    return _holds_index(phases, event) and (is_judge or is_here)


def _has_ticket(phases: Phases, event: _OfIndex) -> bool:
    """Whether a ticket is free; the last one is kept for leaving."""
    entry = _entry(phases, event)
    owner = None if entry is None else phases.books.owners.get(entry.owner)
    is_last = isinstance(event, of_life.LeaveRequested)
    most = MAX_TICKETS if is_last else MAX_TICKETS - 1
    is_needed = not is_last or (entry is not None and entry.stake > 0)
    return owner is None or not is_needed or len(owner.tickets) < most


def _is_unfrozen(phases: Phases, event: of_life.StakeUnbonding) -> bool:
    entry = _entry(phases, event)
    return entry is None or not life.is_frozen(phases.books, entry.owner)


def _is_some(_: Phases, event: _OfLamports) -> bool:
    return bool(event.lamports)


def _is_not_ready(phases: Phases, event: of_rounds.ReadyPosted) -> bool:
    books, entry = phases.books, _entry(phases, event)
    if books.phase in IN_ROUND or entry is None or entry.ready is None:
        return True
    return entry.status != Status.PENDING or entry.ready[0] != books.stored_root[0]


def _is_closable(phases: Phases, event: of_life.ParticipantClosed) -> bool:
    """Whether no case can name an owner any more, and the run need not remember it."""
    books, key = phases.books, bytes(event.owner)
    owner = books.owners.get(key)
    if owner is None:
        return True
    last = phases.finished + longest_settlement_slots(books.params)
    is_over = phases.finished != NONE and event.slot > last and not books.audits
    theirs = [entry for _, entry in books.members() if entry.owner == key]
    is_idle = all(
        entry.status in life.GONE
        and not life.is_named(books, entry.index)
        and (is_over or _is_past_duty(books, entry, event.slot))
        for entry in theirs
    )
    is_remembered = owner.is_barred or owner.record.is_remembered(books.round)
    is_remembered |= any(life.is_remembered(books, entry) for entry in theirs)
    return is_idle and (phases.finished != NONE or not is_remembered)


def _is_past_duty(books: Books, entry: Entry, slot: int) -> bool:
    last = entry.presence.last_action + longest_settlement_slots(books.params)
    return entry.active_round == NONE or books.clock(slot) > last


def _owes_nothing(phases: Phases, _: of_life.RunClosed) -> bool:
    return not phases.books.owners and not any(astuple(totals(phases.books)))


def _has_settled_seed(phases: Phases, event: of_rounds.RoundOpened) -> bool:
    """Whether the seed of the round `keep_rounds` back is frozen or lost."""
    books = phases.books
    number = books.round - books.params.keep_rounds
    kept = books.held(number) if number >= 0 else None
    return event.root_only or kept is None or kept.seed_status not in WAITING


def _has_root(_: Phases, event: of_audits.OpeningsPosted) -> bool:
    return event.root != ZERO_DIGEST


def _has_hash(_: Phases, event: of_audits.VerdictCommitted | of_audits.JurorVoteCommitted) -> bool:
    return event.commitment != ZERO_DIGEST


REFUSALS: Final[Mapping[type[Event], tuple[Refusal, ...]]] = {
    of_life.ParticipantAdmitted: (
        Refusal("AdmissionOpen", Rule.ROUND_SETS, "a run with an allowlist", _may_admit),
        Refusal("AccountAlreadyExists", Rule.ROUND_SETS, "an owner not admitted yet", _is_unknown),
    ),
    of_life.ParticipantJoined: (
        Refusal("ParticipantBarred", Rule.PENALTY, "an owner that is not barred", _is_allowed),
        Refusal("NotAdmitted", Rule.ROUND_SETS, "an owner that was admitted", _is_admitted),
        Refusal("AlreadyJoined", Rule.ROUND_SETS, "an owner with no other membership", _may_join),
        Refusal("WitnessOnlyFull", Rule.ROUND_SETS, "no more mere witnesses", _is_needed),
    ),
    of_life.StakeToppedUp: (
        Refusal("ZeroLamports", Rule.VAULT, "some lamports", _is_some),
        Refusal("NotJoined", Rule.VAULT, "the index of somebody present", _is_present),
        Refusal("AlreadyLeaving", Rule.VAULT, "a member that stays", _stays),
    ),
    of_life.LeaveRequested: (
        Refusal("NotJoined", Rule.VAULT, "the index that its owner holds", _holds_index),
        Refusal("AlreadyLeaving", Rule.VAULT, "a member that stays", _stays),
        Refusal("TicketsFull", Rule.VAULT, "a ticket that is free", _has_ticket),
    ),
    of_life.StakeUnbonding: (
        Refusal("NotJoined", Rule.VAULT, "the index that its owner holds", _holds_index),
        Refusal("TicketsFull", Rule.VAULT, "a ticket that is free", _has_ticket),
        Refusal("Frozen", Rule.VAULT, "nothing unbonded under an accusation", _is_unfrozen),
    ),
    of_life.StakeWithdrawn: (Refusal("NothingToWithdraw", Rule.VAULT, "some lamports", _is_some),),
    of_life.RewardClaimed: (Refusal("NothingToClaim", Rule.VAULT, "some lamports", _is_some),),
    of_life.SessionKeySet: (
        Refusal("NotJoined", Rule.ROUND_SETS, "somebody present, or a judge", _may_set_key),
    ),
    of_life.EndpointSet: (
        Refusal("NotJoined", Rule.ROUND_SETS, "the index that its owner holds", _holds_index),
    ),
    of_life.ManifestAnnounced: (
        Refusal("WrongOwner", Rule.ROUND_SETS, "the index that its owner holds", _holds_index),
    ),
    of_rounds.ReadyPosted: (
        Refusal("AlreadyReady", Rule.ROUND_SETS, "somebody who is not ready yet", _is_not_ready),
    ),
    of_life.ParticipantClosed: (
        Refusal("NothingToClose", Rule.PENALTY, "an owner that no case can name", _is_closable),
    ),
    of_life.RunClosed: (
        Refusal("NothingToClose", Rule.VAULT, "nothing owed, no participant left", _owes_nothing),
    ),
    of_life.RunFunded: (Refusal("ZeroLamports", Rule.VAULT, "some lamports", _is_some),),
    of_audits.OpeningsPosted: (
        Refusal("OpeningsRootZero", Rule.OPENINGS, "a root that is not zero", _has_root),
    ),
    **dict.fromkeys(
        (of_audits.VerdictCommitted, of_audits.JurorVoteCommitted),
        (Refusal("CommitmentZero", Rule.VERDICT, "a hash that is not zero", _has_hash),),
    ),
    of_rounds.RoundOpened: (
        Refusal(
            "SeedPending", Rule.SEED, "SeedFrozen or SeedLost of an older round", _has_settled_seed
        ),
    ),
}
