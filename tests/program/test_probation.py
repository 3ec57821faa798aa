"""Rewards that wait on a probation: where they go, and that each is taken once."""

from dataclasses import replace

from support.fields import assert_fields, assert_records
from support.program.cases import CaseDriver
from support.program.closing import leave_and_close
from support.program.losses import REWARD
from support.program.recounted import findings_of, places
from support.program.refusals import TARGET, chosen_round, members, silent_refusal

from troth_audit.replay.findings import Rule
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryFlag, Status


def jailed_in_an_open_round() -> CaseDriver:
    """The target has committed to the open round when its third refusal jails it."""
    driver = members(6, 2, max_rounds=7, join_until_round=7)
    round_ = 1
    for _ in range(2):
        silent_refusal(driver, round_, TARGET)
        round_ = chosen_round(driver)
    driver.commit_all()
    silent_refusal(driver, round_, TARGET)
    entry = driver.entries[TARGET]
    assert entry.status == Status.JAILED and entry.flags & EntryFlag.PROBATION
    assert bitmap.has(driver.open.committed, TARGET)
    return driver


def test_a_member_that_is_jailed_in_mid_round_has_the_reward_of_that_round_wait() -> None:
    driver = jailed_in_an_open_round()
    driver.attest_all()
    settled = driver.close().event("RoundSettled")
    assert settled.withheld == 1 << TARGET
    assert driver.entries[TARGET].withheld == driver.run.total_withheld == REWARD


def test_a_reward_after_the_end_of_a_membership_stays_in_the_pool_and_the_run_closes() -> None:
    """A member on probation is jailed in the middle of a round, and leaves at once.

    The close used to withhold its reward. Nothing would have returned it, so that run, roster and
    vault would have stayed for ever.
    """
    driver = jailed_in_an_open_round()
    driver.leave(TARGET)
    assert driver.entries[TARGET].status == Status.LEFT
    round_, pool = driver.run.round, driver.run.reward_pool
    driver.attest_all()
    settled = driver.close().event("RoundSettled")
    assert settled.withheld == settled.probation == 0
    assert_fields(driver.round(round_), unpaid=1 << TARGET, included=0b111111)
    assert_fields(driver.entries[TARGET], withheld=0, last_included=round_)
    assert_fields(driver.run, total_withheld=0, reward_pool=pool - 5 * REWARD)
    driver.draw(round_)
    driver.open_audit(round_, TARGET)
    assert driver.of(round_, TARGET).reward_paid == 0, "there is nothing to take back"

    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    driver.run_to(driver.of(round_, TARGET).stage_end)
    driver.settle(round_, TARGET, people=[TARGET])
    for audit in driver.audits:
        driver.release(audit)
    leave_and_close(driver, waits=30_000)
    assert not driver.chain.accounts.of_program(driver.at.program)


def test_an_auditor_finds_a_reward_that_waits_for_one_that_is_gone() -> None:
    driver = jailed_in_an_open_round()
    driver.leave(TARGET)
    driver.attest_all()
    driver.close()
    events = driver.ledger.events
    assert findings_of(events) == []
    at = places(events, "RoundSettled")[-1]
    found = findings_of(
        [*events[:at], replace(events[at], withheld=1 << TARGET), *events[at + 1 :]]
    )
    assert_records(found, [{"rule": Rule.REWARD, "expected": "withheld 0", "found": "withheld 8"}])
