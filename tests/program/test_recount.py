"""An auditor that recounts a run: it finds nothing in an honest one, and each field that is false.

Every driver of the tests passes through the same recount (support/program/ledger.py); here the
events are changed afterwards, as by an RPC node that lies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from random import Random
from typing import Any

import pytest
from support.fields import assert_fields, assert_records
from support.program.recounted import changed, checked, findings_of, places, telling
from support.program.rounds import RoundDriver
from support.program.trials import judged, paid

from troth_audit.replay.findings import Finding, Grade, Rule
from troth_audit.replay.recount import SCRIPTS, Recount
from troth_audit.replay.told import Told
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.rules.ids import NONE

STORIES: dict[str, Callable[[], tuple[Event, ...]]] = {"judged": judged, "paid": paid}
FRAME = ("run", "slot", "sequence", "body")
"""Fields that the chain hash speaks about, not the recount."""
UNTOLD = {
    # Set by whoever acted; a later event shows the truth of it, or nothing does.
    ("CaseOpened", "challenger"),
    ("OpeningsPosted", "root"),
    ("ParticipantJoined", "endpoint"),
    ("ParticipantJoined", "session"),
    # Rents are not the run's money.
    ("AuditClosed", "payer"),
    # Slots of hashes are only bounded: no event tells the slots that the chain skipped. Here the
    # seed was frozen at once, which leaves no other slot.
    ("JuryDrawn", "found_slot"),
    # The close has a check of its own, and so has the cursor.
    ("RoundClosed", "canonical_root"),
    ("RoundClosed", "chain_hash"),
    ("RoundOpened", "cursor"),
}
"""Fields that other checks answer for, or nobody can."""

TAMPERED = [
    ("judged", "RoundClosed", "seed_slot", Rule.SEED),
    ("judged", "SeedFrozen", "seed", Rule.SEED),
    ("judged", "SeedFrozen", "seed_slot", Rule.SEED),
    ("judged", "SeedFrozen", "sampled", Rule.SAMPLE),
    ("judged", "SeedFrozen", "unseated", Rule.SAMPLE),
    ("judged", "SeedFrozen", "reward_undone", Rule.REWARD),
    ("judged", "SeedFrozen", "price_new", Rule.PENALTY),
    ("judged", "AuditRequested", "prepaid", Rule.REWARD),
    ("judged", "AuditOpened", "seats", Rule.SEATS),
    ("judged", "AuditOpened", "stage_end", Rule.SEATS),
    ("judged", "OpeningsPosted", "stage_end", Rule.OPENINGS),
    ("judged", "VerdictCommitted", "stage_end", Rule.VERDICT),
    ("judged", "VerdictRevealed", "verdict", Rule.VERDICT),
    ("judged", "VerdictRevealed", "evidence", Rule.VERDICT),
    ("judged", "VerdictRevealed", "sketch", Rule.VERDICT),
    ("judged", "VerdictRevealed", "salt", Rule.VERDICT),
    ("judged", "AuditExtended", "num_seats", Rule.OUTCOME),
    ("judged", "AuditSettled", "outcome", Rule.OUTCOME),
    ("judged", "AuditSettled", "paid", Rule.REWARD),
    ("judged", "AuditSettled", "fee", Rule.REWARD),
    ("judged", "AuditSettled", "case_seed_slot", Rule.OUTCOME),
    ("judged", "PrepaidRefunded", "refunded", Rule.REWARD),
    ("judged", "Penalised", "burned", Rule.PENALTY),
    ("judged", "Penalised", "stake", Rule.PENALTY),
    ("judged", "Penalised", "unvested", Rule.PENALTY),
    ("judged", "Penalised", "fault", Rule.PENALTY),
    ("judged", "ProbationChanged", "is_on", Rule.REWARD),
    ("judged", "CaseOpened", "bond", Rule.CASE),
    ("judged", "JuryDrawn", "case_seed", Rule.JURY),
    ("judged", "JuryDrawn", "eligible", Rule.JURY),
    ("judged", "JuryDrawn", "jurors", Rule.JURY),
    ("judged", "JurorVoteRevealed", "verdict", Rule.VERDICT),
    ("judged", "CaseSettled", "outcome", Rule.CASE),
    ("judged", "CaseSettled", "stake", Rule.PENALTY),
    ("judged", "CaseSettled", "unvested", Rule.PENALTY),
    ("judged", "CaseSettled", "juror_fees", Rule.REWARD),
    ("judged", "CaseSettled", "bond_burned", Rule.REWARD),
    ("judged", "CaseSettled", "bond_returned", Rule.REWARD),
    ("judged", "CaseSettled", "vouchers", Rule.PENALTY),
    ("judged", "CaseAppealed", "stage_end", Rule.CASE),
    ("judged", "AuditClosed", "returned", Rule.PENALTY),
    ("judged", "AuditClosed", "burned", Rule.PENALTY),
    ("judged", "AuditClosed", "challenger", Rule.PENALTY),
    ("paid", "RunFunded", "reward_pool", Rule.VAULT),
    ("paid", "ParticipantJoined", "stake", Rule.VAULT),
    ("paid", "ReadyPosted", "vote", Rule.ROOT_VOTE),
    ("paid", "WarmupEnded", "ready", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "eligible", Rule.ROUND_SETS),
    ("paid", "RoundOpened", "is_new", Rule.ROUND_SETS),
    ("paid", "Activated", "active_round", Rule.ROUND_SETS),
    ("paid", "MembershipChanged", "left", Rule.ROUND_SETS),
    ("paid", "RewardsScaled", "reward_paid", Rule.REWARD),
    ("paid", "RoundSettled", "reward_paid", Rule.REWARD),
    ("paid", "RoundSettled", "fees", Rule.REWARD),
    ("paid", "RoundSettled", "inactivated", Rule.REWARD),
    ("paid", "PayloadStruck", "reward_undone", Rule.REWARD),
    ("paid", "PayloadStruck", "vouchers", Rule.REWARD),
    ("paid", "StakeToppedUp", "stake", Rule.VAULT),
    ("paid", "StakeUnbonding", "matures_clock", Rule.VAULT),
    ("paid", "LeaveRequested", "stake", Rule.VAULT),
    ("paid", "StakeWithdrawn", "lamports", Rule.VAULT),
    ("paid", "RewardClaimed", "lamports", Rule.VAULT),
    ("paid", "RewardClaimed", "vested", Rule.VAULT),
]


@pytest.mark.parametrize("story", STORIES)
def test_an_honest_run_gives_no_finding(story: str) -> None:
    assert findings_of(STORIES[story]()) == []


@pytest.mark.parametrize(("story", "name", "field", "rule"), TAMPERED)
def test_a_false_field_is_found_with_its_rule_and_place(
    story: str, name: str, field: str, rule: Rule
) -> None:
    events = STORIES[story]()
    at = telling(events, name, field)
    first, *_ = findings_of(changed(events, at, field))
    whom = [getattr(events[at], name, None) for name in ("index", "target")]
    participant = next((one for one in whom if one is not None), None)
    round_ = getattr(events[at], "round", None)
    assert_fields(first, round=round_, participant=participant)
    assert_fields(first, grade=Grade.DISCREPANCY, rule=rule)
    assert first.expected != first.found


DECISIONS = [row for row in TAMPERED if row[2] not in ("verdict", "evidence", "sketch", "salt")]
"""False decisions; the others are false words of judges, from which other decisions follow."""


@pytest.mark.parametrize(("story", "name", "field", "rule"), DECISIONS)
def test_one_false_decision_is_one_finding(story: str, name: str, field: str, rule: Rule) -> None:
    events = STORIES[story]()
    found = checked(changed(events, telling(events, name, field), field))
    assert [finding.rule for finding in found] == [rule]


@cache
def unnoticed(story: str) -> frozenset[tuple[str, str]]:
    """The fields that can be false without a finding, of the events that scripts answer for."""
    events = STORIES[story]()
    names = {event.name for event in events if type(event) in SCRIPTS}
    free = set()
    for name in names:
        for field in _fields(events[places(events, name)[0]]):
            if not findings_of(changed(events, telling(events, name, field), field)):
                free.add((name, field))
    return frozenset(free)


def _fields(event: Event) -> Iterator[str]:
    return (field.name for field in fields(event) if field.name not in FRAME)


def test_every_field_of_a_decision_is_recounted_but_those_that_are_named() -> None:
    assert unnoticed("judged") | unnoticed("paid") == UNTOLD


@pytest.mark.parametrize(
    ("name", "rule"),
    [("Penalised", Rule.PENALTY), ("ProbationChanged", Rule.REWARD), ("PrepaidRefunded", None)],
)
def test_a_consequence_that_is_not_told_is_missed(name: str, rule: Rule | None) -> None:
    events = list(judged())
    del events[places(events, name)[0]]
    found = findings_of(events)
    assert found[0].rule == (rule or Rule.REWARD) and name in found[0].expected


@pytest.mark.parametrize("name", ["Penalised", "PrepaidRefunded", "RoundSettled", "PayloadStruck"])
def test_a_consequence_without_a_cause_is_found(name: str) -> None:
    events = [*judged(), *paid()]
    extra = replace(events[places(events, name)[0]], slot=judged()[-1].slot)
    found = findings_of([*judged(), extra])
    assert [name in (finding.found, finding.expected) for finding in found] == [True]


def test_a_second_settlement_of_an_audit_is_found() -> None:
    events = list(judged())
    at = places(events, "AuditClosed")[0]
    found = findings_of([*events[: at + 1], events[at], *events[at + 1 :]])
    assert_records(found, [{"rule": Rule.PENALTY, "expected": "an open audit"}])


def test_a_newcomer_with_another_root_is_found_when_it_is_activated() -> None:
    events = paid()
    last = places(events, "ReadyPosted")[-1]
    (found,) = findings_of(changed(events, last, "vote"))
    assert_fields(found, rule=Rule.ROOT_VOTE, participant=6)


def test_events_of_somebody_who_never_joined_are_found_and_end_nothing() -> None:
    events = list(paid())
    del events[places(events, "ParticipantJoined")[3]]
    found = findings_of(events)
    assert found[0].expected == "somebody who has joined" and found[0].participant == 3


def test_the_totals_of_the_run_account_are_held_against_the_events() -> None:
    driver = RoundDriver(4)
    driver.start()
    driver.play(2)
    recount = recounted(driver.ledger.events)
    assert list(recount.end(driver.run)) == []
    for name in ("total_stake", "total_unvested", "reward_pool", "total_escrow"):
        values: dict[str, Any] = {name: getattr(driver.run, name) + 1}
        false = replace(driver.run, **values)
        (found,) = recount.end(false)
        assert_fields(found, rule=Rule.VAULT, round=None, participant=None)
        assert name in found.expected and name in found.found


def recounted(events: Sequence[Event]) -> Recount:
    """A recount of these events, without a finding."""
    created, *rest = events
    assert isinstance(created, RunCreated)
    told = Told(created.params.residual_rounds)
    recount = Recount(told, bytes(created.run))
    found: list[Finding] = []
    for event in (created, *rest):
        found += recount.check(event)
        told.take(event)
    assert found == []
    return recount


def test_what_is_kept_does_not_grow_with_the_rounds() -> None:
    driver = RoundDriver(3, ring=6, max_rounds=100, checkpoint_every=50)
    driver.start()
    sizes = []
    for _ in range(3):
        driver.play(8)
        books = recounted(driver.ledger.events).books
        sizes.append((len(books.ring), len(books.entries), len(books.owners), len(books.audits)))
    assert sizes == [(6, 3, 3, 0)] * 3


def mangled(events: Sequence[Event], dice: Random) -> list[Event]:
    """The events with one of them lost, doubled, moved, or with a wild value in it."""
    made, at = list(events), dice.randrange(1, len(events))
    match dice.randrange(6):
        case 0:
            del made[at]
        case 1:
            made.insert(at, made[at])
        case 2:
            made.insert(dice.randrange(1, len(made)), made.pop(at))
        case _:
            event = made[at]
            numbers = [name for name in _fields(event) if type(getattr(event, name)) is int]
            name = dice.choice([*numbers, "slot"])
            wild = dice.choice([0, 1, 3, 9, 63, 64, 65_535, dice.getrandbits(64), 2**64 - 1])
            values: dict[str, Any] = {name: wild}
            made[at] = replace(event, **values)
    return made


@pytest.mark.parametrize("story", STORIES)
def test_mangled_events_are_read_to_the_end(story: str) -> None:
    dice = Random(7)
    events = STORIES[story]()
    found = [findings_of(mangled(events, dice)) for _ in range(80)]
    assert sum(map(bool, found)) > 40


@pytest.mark.parametrize("changes", [{"ring": 0, "rounds_per_epoch": 0}, {"admission": 9}])
def test_parameters_that_no_run_can_have_are_found(changes: dict[str, Any]) -> None:
    created, *rest = paid()
    assert isinstance(created, RunCreated)
    false = replace(created, params=replace(created.params, **changes))
    found = findings_of([false, *rest])
    assert found[0].rule == Rule.RUN_ACCOUNT and "chain" in found[0].found


def test_whoever_comes_back_begins_with_a_zero_residual() -> None:
    driver = RoundDriver(4, residual_rounds=100)
    driver.start()
    driver.play(1)
    for _ in range(3):
        driver.freeze_old_seed()
        driver.commit_all([0, 1, 2])
        driver.attest_all([0, 1, 2])
        driver.close()
    driver.post_ready(3)
    driver.commit_all()
    driver.attest_all()
    driver.close()
    driver.activate(3)
    driver.play(1)
    told = recounted(driver.ledger.events).books.told
    assert told.newest is not None
    previous = [told.previous_included(told.newest, index) for index in range(4)]
    assert previous == [ballot.previous_included for ballot in driver.open.ballots[:4]]
    assert previous == [5, 5, 5, NONE]


def test_a_membership_that_could_not_be_left_is_found() -> None:
    """Three tickets and the one of leaving are in use: a program lets their owner join again."""
    driver = RoundDriver(1)
    (owner,) = driver.owners
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 30), owner)
    for _ in range(2):
        driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 10), owner)
    driver.leave(0)
    driver.join(0)
    events = driver.ledger.events
    assert findings_of(events) == []
    (at, _) = places(events, "StakeUnbonding")
    found = findings_of([*events[:at], events[at], *events[at:]])
    assert "a ticket left for leaving" in [one.expected for one in found]
