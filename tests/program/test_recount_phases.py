"""An auditor that follows the phases of a run: events that the program cannot make are found."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.fields import assert_fields
from support.program.closing import leave_and_close
from support.program.recounted import changed, checked, findings_of, places, telling
from support.program.rounds import RoundDriver
from support.program.trials import judged, moved, paid

from troth_audit.replay.findings import Finding, Rule
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_life import ParamsRequested
from troth_coordinator.chain.event_types_rounds import Attested
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, Lamports, Slot

STORIES: dict[str, Callable[[], tuple[Event, ...]]] = {
    "judged": judged,
    "moved": moved,
    "paid": paid,
}

TAMPERED = [
    ("paid", "PhaseStarted", "phase", Rule.PHASE),
    ("paid", "PhaseStarted", "round", Rule.PHASE),
    ("paid", "PhaseStarted", "ends_slot", Rule.PHASE),
    ("paid", "RoundOpened", "ends_slot", Rule.PHASE),
    ("paid", "RoundClosed", "flags", Rule.PHASE),
    ("paid", "PayloadCommitted", "round", Rule.PHASE),
    ("paid", "Attested", "round", Rule.PHASE),
    ("moved", "RunPaused", "resume_phase", Rule.PHASE),
    ("moved", "RunResumed", "phase", Rule.PHASE),
    ("moved", "SessionKeySet", "at_next_open", Rule.PHASE),
    ("moved", "ParamsApplied", "params", Rule.RUN_ACCOUNT),
]


def with_slot(events: Sequence[Event], at: int, slot: int) -> list[Event]:
    return [*events[:at], replace(events[at], slot=slot), *events[at + 1 :]]


@pytest.mark.parametrize("story", STORIES)
def test_an_honest_run_gives_no_finding(story: str) -> None:
    assert findings_of(STORIES[story]()) == []


@pytest.mark.parametrize(("story", "name", "field", "rule"), TAMPERED)
def test_a_false_field_is_found(story: str, name: str, field: str, rule: Rule) -> None:
    events = STORIES[story]()
    if field == "params":
        at = places(events, name)[0]
        event: Any = events[at]
        other = replace(event, params=replace(event.params, attest_slots=151))
        forged = [*events[:at], other, *events[at + 1 :]]
    else:
        forged = changed(events, telling(events, name, field), field)
    assert rule in {one.rule for one in findings_of(forged)}


@pytest.mark.parametrize("story", STORIES)
def test_no_event_comes_before_the_one_in_front_of_it(story: str) -> None:
    events = STORIES[story]()
    later = next(at for at in range(1, len(events)) if events[at].slot > events[at - 1].slot)
    found = findings_of(with_slot(events, later, events[later - 1].slot - 1))
    assert Rule.PHASE in {one.rule for one in found}


@pytest.mark.parametrize("name", ["PayloadCommitted", "Attested"])
def test_an_act_after_its_window_is_found(name: str) -> None:
    """The liar moves the act, and everything that follows, beyond the last slot."""
    events = paid()
    at, late = places(events, name)[0], 100_000
    moved_on = [replace(event, slot=event.slot + late) for event in events[at:]]
    found = findings_of([*events[:at], *moved_on])
    assert name in {one.found for one in found if one.rule is Rule.PHASE}


@pytest.mark.parametrize(
    "name", ["PhaseStarted", "RoundOpened", "RunPaused", "RunResumed", "WarmupEnded"]
)
def test_an_event_of_a_phase_that_is_told_twice_is_found(name: str) -> None:
    events = moved()
    at = places(events, name)[-1]
    found = findings_of([*events[: at + 1], *events[at:]])
    assert Rule.PHASE in {one.rule for one in found}


@pytest.mark.parametrize("name", ["PhaseStarted", "RoundOpened", "RunPaused", "RoundClosed"])
def test_an_event_of_a_phase_that_is_left_out_is_found(name: str) -> None:
    events = moved()
    at = places(events, name)[1 if name == "PhaseStarted" else 0]
    assert findings_of([*events[:at], *events[at + 1 :]])


def test_nobody_vouches_for_a_payload_without_a_commit() -> None:
    events = paid()
    at = places(events, "Attested")[0]
    event = events[at]
    assert isinstance(event, Attested)
    beyond = replace(event, bitmap=event.bitmap | 1 << 40)
    found = findings_of([*events[:at], beyond, *events[at + 1 :]])
    assert_fields(found[0], rule=Rule.PHASE, found="Attested", participant=event.index)


@pytest.mark.parametrize("index", [MAX_PARTICIPANTS, 60_000, 65_535])
def test_an_index_that_no_run_has_is_found_and_ends_nothing(index: int) -> None:
    events = list(paid())
    at = places(events, "ParticipantJoined")[0]
    values: dict[str, Any] = {"index": index}
    events[at] = replace(events[at], **values)
    assert findings_of(events)[0].expected == f"an index below {MAX_PARTICIPANTS}"


@pytest.mark.parametrize(
    "changes",
    [
        {"reward_per_payload": 5_000},
        {"reward_per_payload": 100},
        {"attest_slots": 1},
        {"attest_slots": 100_000},
        {"min_members": 60},
        {"unbond_slots": 1},
        {"ring": 40},
    ],
)
def test_an_update_that_the_program_refuses_is_found(changes: dict[str, int]) -> None:
    events = moved()
    at = places(events, "ParamsRequested")[0]
    request = events[at]
    assert isinstance(request, ParamsRequested)
    values: dict[str, Any] = changes
    forged = replace(request, params=replace(request.params, **values))
    first = findings_of([*events[:at], forged, *events[at + 1 :]])[0]
    assert_fields(first, rule=Rule.RUN_ACCOUNT, expected="values that a run can have")


def test_a_raise_that_the_pool_cannot_pay_is_found() -> None:
    driver = RoundDriver(4, keep_stake_lamports=90_000, bond_lamports=90_000, rounds_per_epoch=2)
    params = replace(driver.run.params, reward_per_payload=Lamports(1_500))
    driver.send(make.update_params(driver.at, driver.authority.pubkey(), params), driver.authority)
    events = list(driver.ledger.events)
    at = places(events, "RunFunded")[0]
    funding: dict[str, Any] = {"lamports": 10_000, "reward_pool": 10_000}
    events[at] = replace(events[at], **funding)
    (found,) = findings_of(events)
    assert_fields(found, rule=Rule.RUN_ACCOUNT, expected="a pool of 12000 lamports", found="10000")


def test_parameters_that_waited_long_enough_must_come_into_force() -> None:
    events = moved()
    at = places(events, "ParamsApplied")[0]
    found = findings_of([*events[:at], *events[at + 1 :]])
    assert "ParamsApplied before this open" in {one.expected for one in found}


@pytest.mark.parametrize("field", ["created", "epoch", "round", "root"])
def test_a_false_checkpoint_is_found(field: str) -> None:
    events = moved()
    forged = changed(events, places(events, "CheckpointStored")[0], field)
    assert checked(forged)[0].rule is Rule.CHECKPOINT


def test_a_checkpoint_that_is_due_must_be_stored_and_no_other() -> None:
    events = moved()
    at = places(events, "CheckpointStored")[0]
    (missed,) = checked([*events[:at], *events[at + 1 :]])
    assert_fields(missed, rule=Rule.CHECKPOINT, expected="CheckpointStored")
    again, *_ = checked([*events[: at + 1], *events[at:]])
    assert_fields(again, rule=Rule.CHECKPOINT, expected="no checkpoint yet")


def test_the_run_account_is_in_the_phase_that_the_events_lead_to() -> None:
    driver = RoundDriver(4)
    driver.start()
    driver.play(2)
    recount = driver.ledger.recounted.recount
    assert recount is not None
    for name in ("phase", "phase_end_slot", "round", "void_streak", "root_round"):
        values: dict[str, Any] = {name: getattr(driver.run, name) + 1}
        (found,) = recount.end(replace(driver.run, **values))
        assert name in found.found


def test_the_slot_of_a_quorum_is_compared_where_nobody_can_act_any_more() -> None:
    driver = RoundDriver(3, max_rounds=2, join_until_round=2, checkpoint_every=1)
    driver.start()
    driver.play(1)
    assert differences_of_quorum(driver) == []
    driver.play(1)
    driver.cool_down()
    (found,) = differences_of_quorum(driver)
    assert "quorum_slot" in found.found


def differences_of_quorum(driver: RoundDriver) -> list[Finding]:
    recount = driver.ledger.recounted.recount
    assert recount is not None
    return list(recount.end(replace(driver.run, quorum_slot=Slot(driver.run.quorum_slot - 1))))


def test_nothing_comes_after_the_end_of_a_run_and_no_end_too_early() -> None:
    driver = RoundDriver(3, max_rounds=2, join_until_round=2, checkpoint_every=1)
    driver.start()
    driver.play(2)
    driver.cool_down()
    leave_and_close(driver)
    events = driver.ledger.events
    assert events[-1].name == "RunClosed" and findings_of(events) == []
    (after,) = findings_of([*events, events[-1]])[:1]
    assert_fields(after, rule=Rule.PHASE, expected="nothing after RunClosed")
    finished = places(events, "PhaseStarted")[-1]
    early = replace(events[places(events, "AccountClosed")[0]], slot=events[finished].slot)
    found = findings_of([*events[: finished + 1], early, *events[finished + 1 :]])
    assert_fields(found[0], rule=Rule.PHASE, found="AccountClosed")
