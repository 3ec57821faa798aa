"""The stake to keep: below it a member is inactive from the next open, and how it comes back."""

from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import STAKE, CaseDriver
from support.program.rounds import root_of
from support.program.swapped import swapped

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

TARGET = 3
PATIENT = {"commit_slots": 2_000, "attest_slots": 200, "vesting_slots": 9_000}
STRICT = {**PATIENT, "unbond_slots": 9_000, "max_rounds": 100, "keep_stake_lamports": STAKE}
"""Every fine that reaches the stake makes it too small."""


def members(num: int = 6, **changes: int | str) -> CaseDriver:
    return CaseDriver.started(num, 2, **{**STRICT, **changes})


def fine(driver: CaseDriver, *targets: int) -> None:
    """They show no openings: 12 rewards each, most of it from the stake."""
    for target in targets:
        driver.open_audit(1, target)
    driver.run_to(max(driver.of(1, target).stage_end for target in targets))
    for target in targets:
        driver.settle(1, target)
        assert driver.entries[target].stake < STAKE


def top_up_instruction(driver: CaseDriver, index: int, lamports: int):
    return life.top_up_stake(driver.at, driver.owners[index].pubkey(), lamports)


def top_up(driver: CaseDriver, index: int) -> None:
    missing = STAKE - driver.entries[index].stake
    driver.send(top_up_instruction(driver, index, missing), driver.owners[index])


def test_a_short_member_serves_the_open_round_and_is_inactive_from_the_next() -> None:
    driver = members()
    fine(driver, TARGET)
    assert driver.entries[TARGET].status == Status.ACTIVE, "the open round counts on it"
    landed = driver.play(1)
    assert bitmap.has(driver.round(2).included, TARGET)
    assert_fields(landed.event("MembershipChanged"), short=1 << TARGET, left=0, rotated=0)
    assert driver.entries[TARGET].status == Status.INACTIVE
    assert not bitmap.has(driver.open.members, TARGET)
    ready = driver.ready_instruction(TARGET)
    assert driver.refused(ready, driver.sessions[TARGET]) == "StakeTooLow"
    top_up(driver, TARGET)
    driver.post_ready(TARGET)
    driver.play(1)
    driver.activate(TARGET)
    driver.play(1)
    assert bitmap.has(driver.open.members, TARGET), "no epoch to wait, and no fee"


def test_one_lamport_at_the_bound_decides() -> None:
    driver = members(keep_stake_lamports=STAKE - 9_999)
    fine(driver, TARGET)
    missing = STAKE - 9_999 - driver.entries[TARGET].stake
    assert missing > 0
    driver.send(top_up_instruction(driver, TARGET, missing - 1), driver.owners[TARGET])
    short = driver.play(1).event("MembershipChanged").short
    assert short == 1 << TARGET
    driver.send(top_up_instruction(driver, TARGET, 1), driver.owners[TARGET])
    driver.post_ready(TARGET)
    driver.play(1)
    driver.activate(TARGET)
    assert_fields(driver.entries[TARGET], status=Status.ACTIVE, stake=STAKE - 9_999)


def test_when_all_are_short_they_still_vote_for_the_root_and_come_back() -> None:
    driver = members(4)
    fine(driver, *range(4))
    driver.play(1)
    assert_fields(driver.run, phase=Phase.COOLDOWN, round=3)
    assert driver.open.trainers == 0b1111, "nobody else knows the root"
    landed = driver.cool_down()
    assert landed.event("MembershipChanged").short == 0b1111
    assert_fields(driver.run, phase=Phase.WAITING_FOR_MEMBERS, root_round=3)
    refused = driver.ready_instruction(0)
    assert driver.refused(refused, driver.sessions[0]) == "StakeTooLow"
    for index in range(4):
        top_up(driver, index)
        driver.post_ready(index)
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.COMMIT, round=3)
    assert driver.open.members == 0b1111


def test_a_convict_is_inactive_until_it_has_the_stake_to_join_with() -> None:
    """Half of the double stake is far above the stake to keep of 60 000, and not enough."""
    driver = members(12, keep_stake_lamports=60_000)
    owner = driver.owners[TARGET]
    driver.send(top_up_instruction(driver, TARGET, STAKE // 2), owner)
    driver.accuse(1, TARGET)
    driver.decide(driver.case(1, TARGET), MISMATCH, people=[TARGET])
    assert_fields(driver.entries[TARGET], stake=75_000, work_faults=1, status=Status.ACTIVE)
    assert driver.play(1).event("MembershipChanged").short == 1 << TARGET
    ready = driver.ready_instruction(TARGET)
    driver.send(top_up_instruction(driver, TARGET, STAKE - 75_000 - 1), owner)
    assert driver.refused(ready, driver.sessions[TARGET]) == "StakeTooLow"
    assert driver.entries[TARGET].frozen, "a top-up is possible while a case is open"
    driver.send(top_up_instruction(driver, TARGET, 1), owner)
    driver.send(ready, driver.sessions[TARGET])


def test_a_top_up_of_nothing_of_another_or_by_a_leaver_is_refused() -> None:
    driver = members(4)
    owner, other = driver.owners[:2]
    assert driver.refused(top_up_instruction(driver, 0, 0), owner) == "ZeroLamports"
    mine = top_up_instruction(driver, 1, 1)
    place = [meta.pubkey for meta in mine.accounts].index(driver.at.participant(other.pubkey()))
    theirs = swapped(mine, place, driver.at.participant(owner.pubkey()))
    assert driver.refused(theirs, other) == "WrongOwner"
    driver.leave(0)
    assert driver.refused(top_up_instruction(driver, 0, 1), owner) == "AlreadyLeaving"


def test_a_cheat_that_was_ready_before_its_conviction_is_not_activated() -> None:
    """It is inactive for misses and sends ready; then a jury takes half of its stake.

    Its ready survives the slash, and nobody can make a member of it before it tops up again.
    Threat T95.
    """
    driver = CaseDriver.started(12, 2, **{**STRICT, "keep_stake_lamports": 60_000})
    driver.accuse(1, TARGET)
    case = driver.vote_all(driver.case(1, TARGET), MISMATCH)
    others = [index for index in driver.members() if index != TARGET]
    while driver.entries[TARGET].status == Status.ACTIVE:
        driver.commit_all(others)
        driver.attest_all(others)
        driver.close()
    assert driver.entries[TARGET].stake == STAKE, "its rewards have paid the fee"
    driver.post_ready(TARGET, root_of(driver.run.round))
    driver.settle_case(case, people=[TARGET])
    driver.commit_all(others)
    driver.attest_all(others)
    driver.close()
    entry = driver.entries[TARGET]
    assert entry.status == Status.INACTIVE and entry.stake < STAKE
    activate = life.activate(driver.at, driver.cranker.pubkey(), TARGET, entry.ready_round)
    assert driver.refused(activate, driver.cranker) == "StakeTooLow"
