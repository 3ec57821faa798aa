"""Trainers that earn while few or none can judge them. Threat T66."""

import pytest
from support.attacks.cheats import (
    ALWAYS,
    CHEAT,
    FIRST_LIE,
    MAL,
    Books,
    assert_convicted_of_work,
    assert_found,
    assert_honest_untouched,
    play_out,
    stage,
    work_cheat,
)
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK
from support.program.cases import CaseDriver
from support.program.losses import REWARD, assert_untouched
from support.runs import BOTH, WINDOWS, start_members

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import Role

TARGET = 3
PATIENT = {"commit_slots": 2_000, "attest_slots": 200, "vesting_slots": 9_000}
LONG = {**PATIENT, "unbond_slots": 9_000, "max_rounds": 100}


def test_the_first_round_of_a_public_run_is_audited() -> None:
    """A free-rider earns in the first twenty rounds, while nobody has earned a seat yet.

    Founders are eligible at once: seats and a jury convict it of its very first payload.
    """
    driver = CaseDriver.started(12, seat_after_rounds=20, **LONG)
    assert_fields(driver.round(0), eligible=(1 << 12) - 1, unpaid=0)
    driver.judge(0, TARGET, [MISMATCH] * 5)
    landed = driver.decide(driver.case(0, TARGET), MISMATCH, people=[TARGET])
    assert landed.event("CaseSettled").outcome == CaseOutcome.CONVICTED
    assert_untouched(driver, guilty=[TARGET])


@pytest.mark.long(reason="a second whole run with a free-rider")
async def test_a_free_rider_of_the_first_rounds_is_convicted(run_factory):
    """Real clients, seats after 20 rounds as on a public cluster: it stops computing in round 3.

    No round before the twentieth had an audit, and all were paid. Its first dishonest payload costs
    it half of its stake; no honest stake moves.
    """
    run, books = await stage(run_factory, work_cheat("free-rider"), seat_after_rounds=20)
    await play_out(run)
    (loss,) = books.convictions()
    assert loss.event.round == FIRST_LIE < 20
    assert_found(run, FIRST_LIE, VerdictKind.MISMATCH, Reason.WORK_DIFFERS)
    assert_convicted_of_work(books, loss)
    await assert_honest_untouched(run, books)


def test_exactly_three_witnesses_are_not_paid_for_what_nobody_can_judge() -> None:
    """In a run with three witnesses each of them knows that nobody can audit it.

    Its sampled payloads are not paid; those of the others are audited.
    """
    driver = CaseDriver(5, roles=[3, 3, 3, 1, 1], seat_load=15, **LONG)
    driver.start()
    driver.play(1)
    landed = driver.draw(0)
    frozen = landed.event("SeedFrozen")
    assert_fields(frozen, unseated=0b00111, reward_undone=3 * REWARD)
    assert driver.round(0).unpaid == 0b00111
    assert [sum(entry.bucket_amount) for entry in driver.entries[:5]] == [0, 0, 0, REWARD, REWARD]
    assert driver.judge(0, 4, [OK] * 3).event("AuditSettled").outcome == AuditOutcome.CLEARED


async def test_a_free_rider_on_one_of_three_seats_is_not_paid(run_factory):
    """Real clients: it is one of three witnesses, so no three others can ever judge it.

    It knew so when a round opened, and was paid for nothing. Now whatever is sampled of its
    payloads earns nothing. It keeps its stake, because nobody has judged it, and the pay of its
    seats, which it earns by judging. The honest witnesses beside it lose the same.
    """
    settings = {"min_members": 3, **WINDOWS, **ALWAYS}
    run = await run_factory.create(FIRST_LIE + 3, **settings)
    run.wrap = work_cheat("free-rider")
    books = Books(run)
    await start_members(run, ["ada"], BOTH)
    await start_members(run, ["bob"], Role.WITNESS)
    await start_members(run, ["cyd", "dan"], Role.TRAINER)
    await start_members(run, [CHEAT], BOTH)
    await play_out(run)
    judged = books.named("AuditSettled")
    assert {event.target for event in judged} == {2, 3}, "only those who are no witnesses"
    frozen = books.named("SeedFrozen")
    for event in frozen:
        assert event.unseated == 1 << 0 | 1 << MAL
        assert event.reward_undone == 2 * run.settings.chain.reward_per_payload
    assert len(frozen) == FIRST_LIE + 3
    entry = (await run.view()).entries[MAL]
    seats = sum(event.fee for event in judged if bitmap.has(event.paid, MAL))
    assert entry.claimable + sum(entry.bucket_amount) == seats > 0
    assert books.convictions() == []
    await assert_honest_untouched(run, books)


def test_sybils_that_leave_so_that_nobody_can_judge_earn_nothing_by_it() -> None:
    """Two of five witnesses belong to a cheat. They leave, and three remain, one of them itself.

    Until they are gone it is audited; from then on its sampled payloads are not paid.
    """
    driver = CaseDriver.started(5, 1, seat_load=15, min_members=2, **LONG)
    assert driver.judge(0, TARGET, [OK] * 3).event("AuditSettled").outcome == AuditOutcome.CLEARED
    for sybil in (0, 1):
        driver.leave(sybil)
    driver.play(1)
    earned = sum(driver.entries[TARGET].bucket_amount)
    driver.play(1)
    frozen = driver.draw(2).event("SeedFrozen")
    assert_fields(frozen, unseated=0b11100, reward_undone=3 * REWARD)
    assert sum(driver.entries[TARGET].bucket_amount) == earned


@pytest.mark.long(reason="thirty-six members and many rounds of draws")
def test_a_crowd_of_newcomers_does_not_halve_the_chance_of_a_cheat_among_them() -> None:
    """A cheat joins together with many honest newcomers, for a cap divides audits among them.

    While more than half of the trainers are new the cap is doubled; afterwards it is not.
    Threat T96.
    """
    rates = {"capacity": 12, "audit_cap": 6, "p_base_ppm": 500_000, "p_new_ppm": 1_000_000}
    driver = CaseDriver.started(12, 24, seat_load=15, **rates, **LONG)
    frozen = [event for event in driver.ledger.events if event.name == "SeedFrozen"]
    sampled = {event.round: bitmap.count(event.sampled) for event in frozen}
    assert {sampled[round_] for round_ in range(20)} == {12}
    late = [num for round_, num in sampled.items() if round_ >= 20]
    assert late and max(late) == 6, late
