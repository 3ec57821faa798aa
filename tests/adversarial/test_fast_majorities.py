"""Attacks by those who are fast: a phase may end early once four fifths have acted.

The slower members then miss phases through no fault of their own. Threat T90.
"""

from support.fields import assert_fields
from support.program.rounds import RoundDriver

from troth_coordinator.rules.view import Status

FAST = range(10)
SLOW = (10, 11)


def hurry(driver: RoundDriver) -> None:
    """One round in which ten of twelve commit and end Commit as early as they may."""
    for index in FAST:
        driver.commit(index)
    driver.chain.advance(8)
    driver.advance_phase()
    driver.attest_all()
    driver.close()
    driver.chain.advance()


def test_the_slow_pay_no_fee_and_may_come_back_at_once_however_often_the_fast_end_a_phase() -> None:
    """Ten of twelve trainers end every Commit before the two slowest can answer.

    Twelve misses in a row make the slow inactive, so that a run does not wait for the dead. But
    nobody may take a fee from them, or keep them away for the rest of an epoch, by being faster.
    Threat T90.
    """
    driver = RoundDriver(12)
    driver.start()
    stake = driver.params.min_stake_lamports
    for _ in range(2):
        first = driver.run.round
        while driver.entries[10].status == Status.ACTIVE:
            hurry(driver)
        assert driver.run.round - first == 12, "one miss a round"
        for index in SLOW:
            fields = {"status": Status.INACTIVE, "stake": stake, "return_round": 0}
            assert_fields(driver.entries[index], **fields)
            driver.post_ready(index)
        driver.play(1)
        for index in SLOW:
            driver.activate(index)
        driver.play(1)
    assert driver.open.members == (1 << 12) - 1


def test_whoever_is_absent_while_phases_run_out_still_pays() -> None:
    """The same two are dead: nobody ends a phase early, and three deadlines cost the fee."""
    driver = RoundDriver(12)
    driver.start()
    fee = driver.params.absence_fee
    for _ in range(2):
        driver.commit_all(FAST)
        driver.attest_all(FAST)
        landed = driver.close()
    settled = landed.event("RoundSettled")
    assert_fields(settled, fees=2 * fee, inactivated=0b11 << 10)
    for index in SLOW:
        assert driver.entries[index].stake == driver.params.min_stake_lamports - fee
