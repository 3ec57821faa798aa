"""An audit says which things a run left undone, and accuses nobody of it."""

import pytest
from support.fields import assert_fields
from support.program.audits import AuditDriver
from support.program.cases import CaseDriver
from support.program.recounted import undone
from support.program.rounds import RoundDriver

from troth_audit.replay.findings import Finding, Grade, Rule
from troth_audit.replay.undone import LATE_SLOTS
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules import bitmap


def played(driver: RoundDriver) -> list[Event]:
    return list(driver.ledger.events)


def speak(driver: RoundDriver) -> None:
    """Let the ledger reach this slot: an owner adds to its stake."""
    owner = driver.owners[0]
    driver.send(make.top_up_stake(driver.at, owner.pubkey(), 1), owner)


def drawn(events: list[Event]) -> int:
    """The targets that the seeds drew."""
    return sum(bitmap.count(one.sampled) for one in events if one.name == "SeedFrozen")


def only(found: list[Finding]) -> Finding:
    (one,) = found
    assert one.grade is Grade.NOTE
    return one


def test_drawn_audits_that_nobody_opened_are_one_note_with_their_number() -> None:
    """Members who spare each other let the seeds draw, and never judge."""
    driver = RoundDriver(5, p_new_ppm=1_000_000)
    driver.start()
    driver.play(20)
    driver.chain.advance(driver.params.openings_slots + 1)
    speak(driver)
    events = played(driver)
    notes, counts = undone(events)
    assert_fields(only(notes), rule=Rule.SAMPLE, round=None)
    assert counts["drawn_audits"] == drawn(events) > 20
    assert counts["drawn_opened"] == 0
    assert only(notes).found.startswith(f"{drawn(events)} did not")


def test_what_may_still_be_opened_and_what_was_is_no_note() -> None:
    driver = AuditDriver.started(6)
    driver.open_audit(0, 2)
    notes, counts = undone(played(driver))
    assert notes == []
    assert counts["drawn_opened"] == 1
    assert counts["drawn_audits"] == 6


def test_a_lost_seed_is_a_note_and_counted() -> None:
    driver = RoundDriver(5, keep_rounds=2)
    driver.start()
    driver.play(1)
    again = make.retarget_seed(driver.at, driver.cranker.pubkey(), 0)
    for _ in range(2):
        driver.chain.advance(600)
        driver.send(again, driver.cranker)
    notes, counts = undone(played(driver))
    assert_fields(only(notes), rule=Rule.SEED, round=None)
    assert counts["lost_seeds"] == 1


def test_two_of_whom_nobody_can_judge_the_other_owe_no_audit() -> None:
    driver = RoundDriver(2, min_members=2, p_new_ppm=1_000_000)
    driver.start()
    driver.play(10)
    events = played(driver)
    notes, counts = undone(events)
    assert drawn(events) > 0
    assert notes == []
    assert counts["drawn_audits"] == 0


@pytest.mark.parametrize("num_slots", [0, LATE_SLOTS])
def test_a_case_whose_jury_nobody_draws_is_a_note(num_slots: int) -> None:
    driver = CaseDriver.started(12)
    case = driver.accuse(0, 3)
    driver.chain.advance(max(0, case.case_seed_slot - driver.slot) + 1 + num_slots)
    speak(driver)
    notes = [one for one in undone(played(driver))[0] if one.rule is Rule.CASE]
    assert len(notes) == (num_slots > 0)
    for one in notes:
        assert_fields(one, grade=Grade.NOTE, round=0, participant=3)


@pytest.mark.parametrize("num_slots", [0, LATE_SLOTS])
def test_an_audit_past_its_windows_that_nobody_ends_is_a_note(num_slots: int) -> None:
    driver = AuditDriver.started(6)
    driver.open_audit(0, 2)
    driver.run_to(driver.of(0, 2).stage_end + num_slots)
    speak(driver)
    notes = [one for one in undone(played(driver))[0] if one.rule is Rule.OUTCOME]
    assert len(notes) == (num_slots > 0)
    for one in notes:
        assert_fields(one, grade=Grade.NOTE, round=0, participant=2)
