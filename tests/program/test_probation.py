"""Rewards that wait on a probation: where they go, and that each is taken once."""

from collections.abc import Sequence
from dataclasses import replace

from support.fields import assert_fields, assert_records
from support.program.audits import INCONCLUSIVE, OK, Said
from support.program.cases import CaseDriver
from support.program.closing import leave_and_close
from support.program.losses import REWARD
from support.program.recounted import findings_of, places
from support.program.refusals import TARGET, chosen_round, members, next_round, silent_refusal

from troth_attestation.quorum import AuditOutcome
from troth_audit.replay.findings import Rule
from troth_coordinator.chain.event_types_audits import ProbationChanged
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryFlag, Status

DOUBT: Sequence[Said] = [INCONCLUSIVE] * 5


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
    num_rewards = driver.ledger.recounted.count("rewards")
    driver.attest_all()
    settled = driver.close().event("RoundSettled")
    assert settled.withheld == settled.probation == 0
    assert_fields(driver.round(round_), unpaid=1 << TARGET, included=0b111111)
    assert driver.ledger.recounted.count("rewards") == num_rewards + 5, "five of the six"
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


def audited(said: Sequence[Said]) -> tuple[CaseDriver, int, ProbationChanged]:
    """The seats of two rounds on probation have spoken: nobody could prove the earlier payload.

    The audit of the later one decides the probation, and has ended; that of the earlier is open.
    Returns its round, and what became of the rewards of both.
    """
    driver = members(6, 2)
    silent_refusal(driver, 1, TARGET)
    early, chosen = next_round(driver), next_round(driver)
    for round_ in (early, chosen):
        driver.post(round_, TARGET)
    for round_, words in ((early, DOUBT), (chosen, said)):
        driver.take_verdicts(round_, TARGET, words[:3])
        if words[3:]:
            driver.extend(round_, TARGET)
            driver.take_verdicts(round_, TARGET, words[3:])
    changed = driver.settle(chosen, TARGET).event("ProbationChanged")
    assert isinstance(changed, ProbationChanged)
    return driver, early, changed


def doubted() -> tuple[CaseDriver, int]:
    """Both rewards went back to the pool. Returns the earlier round, whose audit is open."""
    driver, early, changed = audited(DOUBT)
    assert_fields(changed, returned=REWARD, credited=0, is_on=True)
    assert_fields(driver.entries[TARGET], withheld=0)
    return driver, early


def test_a_reward_that_went_back_is_not_taken_out_of_the_next_one_that_waits() -> None:
    """The audit of an earlier round used to take the reward of a later round in its place."""
    driver, early = doubted()
    later = next_round(driver)
    assert driver.entries[TARGET].withheld == REWARD
    settled = driver.settle(early, TARGET).event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNPROVEN, reward_undone=0)
    assert driver.entries[TARGET].withheld == REWARD
    changed = driver.judge(later, TARGET, [OK, OK, OK]).event("ProbationChanged")
    assert_fields(changed, credited=REWARD, is_on=False)
    assert findings_of(driver.ledger.events) == []


def test_a_reward_that_went_back_is_not_taken_out_of_what_was_earned() -> None:
    """Once the probation had ended, it used to come out of buckets, claimable rewards and stake."""
    driver, early = doubted()
    driver.judge(next_round(driver), TARGET, [OK, OK, OK])
    before = driver.entries[TARGET]
    assert not before.flags & EntryFlag.PROBATION
    settled = driver.settle(early, TARGET).event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNPROVEN, reward_undone=0)
    after = driver.entries[TARGET]
    assert_fields(after, stake=before.stake, claimable=before.claimable)
    assert after.bucket_amount == before.bucket_amount
    assert findings_of(driver.ledger.events) == []


def test_a_reward_that_was_credited_is_taken_back_from_what_was_earned() -> None:
    driver, early, changed = audited([OK, OK, OK])
    assert_fields(changed, returned=0, credited=2 * REWARD, is_on=False)
    before = driver.entries[TARGET]
    settled = driver.settle(early, TARGET).event("AuditSettled")
    assert_fields(settled, outcome=AuditOutcome.UNPROVEN, reward_undone=REWARD)
    assert sum(driver.entries[TARGET].bucket_amount) == sum(before.bucket_amount) - REWARD
