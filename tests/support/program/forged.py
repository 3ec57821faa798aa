"""Histories of a liar with a whole chain of its own: each tells an act that the program refuses.

Every field of the act is as the program would have written it.
Next: recounted.py for the reader of these events; trials.py for honest runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from solders.pubkey import Pubkey

from support.program.cases import CaseDriver
from support.program.recounted import places
from support.program.rounds import RoundDriver, key
from support.program.trials import judged, paid
from troth_coordinator.chain import event_types_life as of_life
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.params_checks import longest_settlement_slots

Events = list[Event]
Kind = TypeVar("Kind", bound=Event)
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
STRANGER = key("a stranger").pubkey()


def then(events: Sequence[Event], kind: type[Kind], **fields: object) -> Events:
    """These events and one more, in the slot of the last of them."""
    last = events[-1]
    values: dict[str, Any] = {"run": last.run, "slot": last.slot, "sequence": 0, "body": b""}
    return [*events, kind(**{**values, **fields})]


def joined(events: Sequence[Event], owner: Pubkey, index: int, roles: int = 3) -> Events:
    """These events, and an owner joins in the round under way."""
    first = events[places(events, "ParticipantJoined")[0]]
    rounds = [event for event in events if event.name == "RoundOpened"]
    number = getattr(rounds[-1], "round", 0)
    values: dict[str, Any] = {"owner": owner, "index": index, "roles": roles, "round": number}
    return [*events, replace(first, slot=events[-1].slot, **values)]


def without(events: Sequence[Event], name: str, at: int) -> Events:
    """These events without one of that name."""
    place = places(events, name)[at]
    return [*events[:place], *events[place + 1 :]]


def owner_of(events: Sequence[Event], index: int) -> Pubkey:
    found = events[places(events, "ParticipantJoined")[index]]
    assert isinstance(found, of_life.ParticipantJoined)
    return found.owner


@cache
def departed() -> tuple[Event, ...]:
    """Of four members one has left; nobody who only witnesses is wanted."""
    driver = RoundDriver(4, max_witness_only=0)
    driver.start()
    driver.play(1)
    driver.leave(3)
    driver.play(2)
    return tuple(driver.ledger.events)


@cache
def returned() -> tuple[Event, ...]:
    """As before, and the owner that left has another index, as it was too early for."""
    return tuple(joined(departed(), owner_of(departed(), 3), 9))


@cache
def admitted() -> tuple[Event, ...]:
    driver = RoundDriver(4, admission="allowlist")
    driver.start()
    return tuple(driver.ledger.events)


@cache
def barred() -> tuple[Event, ...]:
    """Participant 3 was convicted of its work twice, and the audits are closed."""
    driver = CaseDriver.started(12, max_rounds=40, join_until_round=40, **PATIENT)
    driver.offend(3)
    driver.bar(3)
    for audit in driver.audits:
        if audit.target == 3:
            driver.release(audit)
    return tuple(driver.ledger.events)


@cache
def accused() -> tuple[Event, ...]:
    driver = CaseDriver.started(12)
    driver.accuse(0, 3)
    return tuple(driver.ledger.events)


@cache
def finished() -> tuple[Event, ...]:
    """A run that has ended long ago, with every stake inside."""
    driver = RoundDriver(4, max_rounds=3, join_until_round=3, checkpoint_every=1)
    driver.start()
    driver.play(3)
    driver.cool_down()
    return tuple(driver.ledger.events)


@cache
def audited() -> tuple[Event, ...]:
    """Rounds whose seeds were frozen in time."""
    driver = RoundDriver(5, p_new_ppm=1_000_000)
    driver.start()
    driver.play(8)
    return tuple(driver.ledger.events)


def unbonded(events: Sequence[Event], index: int, times: int) -> Events:
    """Stake was added, and so often a part of it starts unbonding."""
    made = list(events)
    for _ in range(times):
        made = then(made, of_life.StakeUnbonding, index=index, lamports=5, matures_clock=9)
    return made


def stolen() -> Events:
    """The authority closes the run, and takes the stakes of its members."""
    events = finished()
    created = events[0]
    assert isinstance(created, of_life.RunCreated)
    slot = events[-1].slot + longest_settlement_slots(created.params) + 5
    taken = then(events, of_life.LeftoversPaid, funder=created.authority, lamports=10**9, slot=slot)
    return then(taken, of_life.RunClosed, funder=created.authority)


def ready_again() -> Events:
    events = paid()
    at = places(events, "ReadyPosted")[0]
    return [*events[: at + 1], *events[at:]]


def zeroed(name: str, field: str) -> Events:
    """A run with judges, and the first hash of this kind is zero."""
    events = list(judged())
    at = places(events, name)[0]
    values: dict[str, Any] = {field: bytes(32)}
    events[at] = replace(events[at], **values)
    return events


def topped_up(index: int, lamports: int) -> Events:
    return then(
        departed(), of_life.StakeToppedUp, index=index, lamports=lamports, stake=100_000 + lamports
    )


def left(events: Sequence[Event], index: int) -> Events:
    fields = {"stake": 0, "matures_clock": 9, "at_next_open": True, "duty_until": 9}
    return then(events, of_life.LeaveRequested, index=index, **fields)


FORGED: dict[tuple[str, str], Callable[[], Events]] = {
    ("ParticipantAdmitted", "AdmissionOpen"): lambda: then(
        departed(), of_life.ParticipantAdmitted, owner=STRANGER
    ),
    ("ParticipantAdmitted", "AccountAlreadyExists"): lambda: then(
        admitted(), of_life.ParticipantAdmitted, owner=owner_of(admitted(), 1)
    ),
    ("ParticipantJoined", "ParticipantBarred"): lambda: joined(barred(), owner_of(barred(), 3), 13),
    ("ParticipantJoined", "NotAdmitted"): lambda: without(admitted(), "ParticipantAdmitted", 2),
    ("ParticipantJoined", "AlreadyJoined"): lambda: joined(departed(), owner_of(departed(), 0), 9),
    ("ParticipantJoined", "WitnessOnlyFull"): lambda: joined(departed(), STRANGER, 9, roles=2),
    ("RunFunded", "ZeroLamports"): lambda: then(
        departed(), of_life.RunFunded, funder=STRANGER, lamports=0, reward_pool=0
    ),
    ("OpeningsPosted", "OpeningsRootZero"): lambda: zeroed("OpeningsPosted", "root"),
    ("VerdictCommitted", "CommitmentZero"): lambda: zeroed("VerdictCommitted", "commitment"),
    ("JurorVoteCommitted", "CommitmentZero"): lambda: zeroed("JurorVoteCommitted", "commitment"),
    ("StakeToppedUp", "ZeroLamports"): lambda: topped_up(0, 0),
    ("StakeToppedUp", "NotJoined"): lambda: topped_up(3, 5),
    ("StakeToppedUp", "AlreadyLeaving"): lambda: topped_up(3, 5),
    ("LeaveRequested", "NotJoined"): lambda: left(returned(), 3),
    ("LeaveRequested", "AlreadyLeaving"): lambda: left(departed(), 3),
    ("LeaveRequested", "TicketsFull"): lambda: left(unbonded(topped_up(0, 30), 0, 4), 0),
    ("StakeUnbonding", "NotJoined"): lambda: unbonded(returned(), 3, 1),
    ("StakeUnbonding", "TicketsFull"): lambda: unbonded(topped_up(0, 30), 0, 4),
    ("StakeUnbonding", "Frozen"): lambda: unbonded(accused(), 3, 1),
    ("StakeWithdrawn", "NothingToWithdraw"): lambda: then(
        departed(), of_life.StakeWithdrawn, owner=owner_of(departed(), 0), lamports=0
    ),
    ("RewardClaimed", "NothingToClaim"): lambda: then(
        departed(), of_life.RewardClaimed, owner=owner_of(departed(), 0), vested=0, lamports=0
    ),
    ("SessionKeySet", "NotJoined"): lambda: then(
        departed(), of_life.SessionKeySet, index=3, session=STRANGER, at_next_open=False
    ),
    ("EndpointSet", "NotJoined"): lambda: then(
        returned(), of_life.EndpointSet, index=3, endpoint="http://host"
    ),
    ("ManifestAnnounced", "WrongOwner"): lambda: then(
        returned(),
        of_life.ManifestAnnounced,
        index=3,
        owner=owner_of(returned(), 3),
        round=0,
        manifest_hash=bytes(32),
        uri="http://host",
    ),
    ("ReadyPosted", "AlreadyReady"): ready_again,
    ("ParticipantClosed", "NothingToClose"): lambda: then(
        barred(),
        of_life.ParticipantClosed,
        owner=owner_of(barred(), 3),
        payer=owner_of(barred(), 3),
    ),
    ("RunClosed", "NothingToClose"): stolen,
    ("RoundOpened", "SeedPending"): lambda: without(audited(), "SeedFrozen", 0),
}
"""Each refusal that the recount knows, by the event of the instruction and the program's name."""
