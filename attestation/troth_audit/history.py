"""What became of an audit, read from the events of the transactions that name its account.

Owns: how events add up to the record of `cases.py`, so that an audit can be shown, and a
conviction proven, after its account is closed. Never: prints.
Next: `commands/case.py`, `demo/trial.py`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import singledispatch

from troth_audit.cases import Bond, CaseFile, Said, of_account
from troth_coordinator.chain import event_types_audits as told
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
    """Return an audit, open or closed, and its events; None where there never was one."""
    # The account first: what it shows has been told by then.
    (account,) = await client.read_audits(at.run, [key])
    named = await client.history(at.audit(*key))
    events = [event for event in named if _key_of(event) == key]
    told_of_it = of_events(key, events)
    if account is None or told_of_it is None:
        return told_of_it if account is None else of_account(account), events
    # Where the bond went, the account no longer knows once the case is decided.
    return replace(of_account(account), bond=told_of_it.bond), events


@dataclass(frozen=True, slots=True)
class Fine:
    """A small penalty, which has neither escrow nor appeal. Amounts in lamports."""

    round: int
    target: int
    index: int
    fault: str
    taken: int
    treasury: int
    acquitted: int
    burned: int


@dataclass(frozen=True, slots=True)
class Slashes:
    """What was decided in a run, whether or not its accounts are still open.

    `cases` are those that ended, by round, target and kind; `events` all that they were read from,
    oldest first.
    """

    cases: tuple[CaseFile, ...]
    fines: tuple[Fine, ...]
    events: tuple[Event, ...]


async def read_slashes(
    client: CoordinatorClient, at: RunAddresses, newest: int | None = None
) -> Slashes:
    """Return the cases and fines of a run from the transactions that name its vault.

    `newest` bounds how many of them are read. Verdicts and votes are not among them: `read_case`.
    """
    events = await client.history(at.vault, newest)
    of_key: defaultdict[AuditKey, list[Event]] = defaultdict(list)
    for event in events:
        key = _key_of(event)
        if key is not None:
            of_key[key].append(event)
    found = [of_events(key, told_of_it) for key, told_of_it in sorted(of_key.items())]
    return Slashes(
        tuple(case for case in found if case is not None and case.case_outcome),
        tuple(_fine(event) for event in events if isinstance(event, told.Penalised)),
        tuple(events),
    )


def of_events(key: AuditKey, events: Iterable[Event]) -> CaseFile | None:
    """Return what the events of one audit, oldest first, add up to; None without any."""
    found: CaseFile | None = None
    for event in events:
        found = _after(event, found or CaseFile(key, AuditStage.REQUESTED.name))
    return found


def _key_of(event: Event) -> AuditKey | None:
    if not hasattr(event, "target") or not hasattr(event, "round"):
        return None
    return event.round, event.target, getattr(event, "audit_kind", int(AuditKind.WORK))


@singledispatch
def _after(_event: Event, case: CaseFile) -> CaseFile:
    """Return the record with one event more."""
    return case


@_after.register
def _(event: told.AuditOpened, case: CaseFile) -> CaseFile:
    seats = [index for index in event.seats if index != NO_INDEX]
    seated = tuple(Said(index, 0) for index in seats[:FIRST_SEATS])
    return replace(case, stage=AuditStage.OPENINGS.name, seats=seated)


@_after.register
def _(event: told.VerdictRevealed, case: CaseFile) -> CaseFile:
    return replace(case, seats=_shown(case.seats, event.index, event.verdict))


@_after.register
def _(event: told.AuditSettled, case: CaseFile) -> CaseFile:
    return replace(case, stage=AuditStage.SETTLED.name, outcome=event.outcome)


@_after.register
def _(event: told.CaseOpened, case: CaseFile) -> CaseFile:
    flags = case.flags | AuditFlag.BONDED
    bond = Bond(posted=event.bond)
    return replace(case, challenger=str(event.challenger), bond=bond, flags=flags)


@_after.register
def _(event: told.CommitteeDrawn, case: CaseFile) -> CaseFile:
    drawn = tuple(Said(index, 0) for index in event.jurors if index != NO_INDEX)
    return replace(case, stage=AuditStage.CASE_COMMIT.name, jurors=drawn)


@_after.register
def _(event: told.VoteRevealed, case: CaseFile) -> CaseFile:
    return replace(case, jurors=_shown(case.jurors, event.index, event.verdict))


@_after.register
def _(event: told.CaseSettled, case: CaseFile) -> CaseFile:
    money = replace(
        case.money,
        stake=event.stake,
        unbonding=event.unbonding,
        unvested=event.unvested,
        shortfall=event.shortfall,
    )
    flags = AuditFlag(event.flags)
    bond = replace(
        case.bond,
        spent=event.bond_spent,
        returned=event.bond_returned,
        acquitted=event.bond_acquitted,
        burned=event.bond_burned,
        treasury=event.bond_treasury,
    )
    decided = replace(case, case_outcome=event.outcome, flags=flags, money=money, bond=bond)
    return replace(decided, stage=AuditStage.DECIDED.name)


@_after.register
def _(_event: told.CaseAppealed, case: CaseFile) -> CaseFile:
    return replace(case, flags=case.flags | AuditFlag.APPEALED)


@_after.register
def _(_event: told.CaseReversed, case: CaseFile) -> CaseFile:
    return replace(case, flags=case.flags | AuditFlag.REVERSED)


@_after.register
def _(event: told.AuditClosed, case: CaseFile) -> CaseFile:
    money = replace(
        case.money,
        challenger=event.challenger,
        treasury=event.treasury,
        burned=event.burned,
        returned=event.returned,
        is_paid=True,
    )
    # Only a reversal gives anything back; it named the account, but perhaps not what was read here.
    flags = case.flags | AuditFlag.REVERSED if event.returned else case.flags
    return replace(case, stage=CLOSED, money=money, flags=flags)


def _fine(event: told.Penalised) -> Fine:
    taken = event.stake + event.unbonding + event.unvested
    parts = (event.treasury, event.acquitted, event.burned)
    return Fine(event.round, event.target, event.index, f"P{event.fault}", taken, *parts)


def _shown(places: tuple[Said, ...], index: int, verdict: int) -> tuple[Said, ...]:
    """Return the places with one verdict more; a seat of the extension is new among them."""
    if all(place.index != index for place in places):
        return (*places, Said(index, verdict))
    return tuple(Said(index, verdict) if place.index == index else place for place in places)
