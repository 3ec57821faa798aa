"""The history of an audit, read from the events of the transactions that name its account.

Owns: building the record of `cases.py` from events. So an audit can be shown, and a conviction
proven, after its account is closed. Never: prints.
Next: `slashes.py` for all cases of a run.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch

from troth_audit.cases import Bond, CaseFile, Statement, of_account
from troth_coordinator.chain import event_types_audits as audit_events
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditFlag, AuditKey, AuditKind, AuditStage
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.ids import NO_INDEX

CLOSED = "CLOSED"


async def read_case(
    client: CoordinatorClient, at: RunAddresses, key: AuditKey
) -> tuple[CaseFile | None, list[Event]]:
    """Return an audit, open or closed, and its events; None where there never was one.

    Events from before the creation of the run are of an earlier life of it, and left out. Raises
    AccountMissingError without the run.
    """
    # Read the account first: the events of everything that it shows are there by then.
    run, _rounds, (account,) = await client.read_audited(at.run, [], [key])
    named = await client.history(at.audit(*key), at.run)
    since = [event for event in named if event.slot >= run.created_slot]
    events = [event for event in since if key_of(event) == key]
    from_events = of_events(key, events)
    if account is None or from_events is None:
        return from_events if account is None else of_account(account), events
    # Once the case is decided, only the events show the destinations of the bond.
    return replace(of_account(account), bond=from_events.bond), events


async def read_closed(
    client: CoordinatorClient, at: RunAddresses, newest: int | None = None
) -> list[CaseFile]:
    """Return the audits and cases of a run that are over, by round, target and kind.

    They come from the transactions that name the run's vault, of which `newest` bounds the number.
    Seats, jurors, verdicts and votes are not among those: `read_case` adds them.
    """
    return closed_in(await client.history(at.vault, at.run, newest))


def closed_in(events: Iterable[Event]) -> list[CaseFile]:
    """Return those that are over, of the audits and cases that these events of money are about."""
    found = [of_events(*one) for one in by_audit(events)]
    over = [case for case in found if case is not None and case.stage == CLOSED]
    return [replace(case, has_verdicts=False) for case in over]


def by_audit(events: Iterable[Event]) -> list[tuple[AuditKey, list[Event]]]:
    """Return the events of each audit among them, by round, target and kind."""
    found: defaultdict[AuditKey, list[Event]] = defaultdict(list)
    for event in events:
        key = key_of(event)
        if key is not None:
            found[key].append(event)
    return sorted(found.items(), key=lambda one: one[0])


def of_events(key: AuditKey, events: Iterable[Event]) -> CaseFile | None:
    """Return the record of one audit's events, oldest first; None without any."""
    found: CaseFile | None = None
    for event in events:
        found = _after(event, found or CaseFile(key, AuditStage.REQUESTED.name))
    return found


def key_of(event: Event) -> AuditKey | None:
    """Return the audit that an event is about, None for other events."""
    if not hasattr(event, "target") or not hasattr(event, "round"):
        return None
    return event.round, event.target, getattr(event, "audit_kind", int(AuditKind.WORK))


@singledispatch
def _after(_event: Event, case: CaseFile) -> CaseFile:
    """Return the record with one event more."""
    return case


@_after.register
def _(event: audit_events.AuditOpened, case: CaseFile) -> CaseFile:
    seats = [index for index in event.seats if index != NO_INDEX]
    seated = tuple(Statement(index, 0) for index in seats[:FIRST_SEATS])
    return replace(case, stage=AuditStage.OPENINGS.name, seats=seated)


@_after.register
def _(event: audit_events.VerdictRevealed, case: CaseFile) -> CaseFile:
    return replace(case, seats=_shown(case.seats, event.index, event.verdict))


@_after.register
def _(event: audit_events.AuditSettled, case: CaseFile) -> CaseFile:
    return replace(case, stage=AuditStage.SETTLED.name, outcome=event.outcome)


@_after.register
def _(event: audit_events.CaseOpened, case: CaseFile) -> CaseFile:
    flags = case.flags | AuditFlag.BONDED
    bond = Bond(posted=event.bond)
    return replace(case, challenger=str(event.challenger), bond=bond, flags=flags)


@_after.register
def _(event: audit_events.JuryDrawn, case: CaseFile) -> CaseFile:
    drawn = tuple(Statement(index, 0) for index in event.jurors if index != NO_INDEX)
    return replace(case, stage=AuditStage.CASE_COMMIT.name, jurors=drawn)


@_after.register
def _(event: audit_events.JurorVoteRevealed, case: CaseFile) -> CaseFile:
    return replace(case, jurors=_shown(case.jurors, event.index, event.verdict))


@_after.register
def _(event: audit_events.CaseSettled, case: CaseFile) -> CaseFile:
    money = replace(
        case.money,
        stake=event.stake,
        unbonding=event.unbonding,
        unvested=event.unvested,
        shortfall=event.shortfall,
        jurors=event.juror_fees,
    )
    flags = AuditFlag(event.flags)
    bond = replace(
        case.bond,
        spent=event.bond_spent,
        returned=event.bond_returned,
        acquitted=event.bond_acquitted,
        burned=event.bond_burned,
        pool=event.bond_pool,
    )
    decided = replace(case, case_outcome=event.outcome, flags=flags, money=money, bond=bond)
    return replace(decided, stage=AuditStage.DECIDED.name)


@_after.register
def _(_event: audit_events.CaseAppealed, case: CaseFile) -> CaseFile:
    return replace(case, flags=case.flags | AuditFlag.APPEALED)


@_after.register
def _(_event: audit_events.CaseReversed, case: CaseFile) -> CaseFile:
    return replace(case, flags=case.flags | AuditFlag.REVERSED)


@_after.register
def _(event: audit_events.AuditClosed, case: CaseFile) -> CaseFile:
    money = replace(
        case.money,
        jurors=event.shortfall if event.returned else case.money.jurors,
        challenger=event.challenger,
        pool=event.pool,
        burned=event.burned,
        returned=event.returned,
        is_paid=True,
    )
    # Only a reversal gives lamports back, and its event may be missing among those read here.
    flags = case.flags | AuditFlag.REVERSED if event.returned else case.flags
    return replace(case, stage=CLOSED, money=money, flags=flags)


def _shown(places: tuple[Statement, ...], index: int, verdict: int) -> tuple[Statement, ...]:
    """Return the places with one verdict more; a seat of the extension is new among them."""
    if all(place.index != index for place in places):
        return (*places, Statement(index, verdict))
    return tuple(Statement(index, verdict) if place.index == index else place for place in places)
