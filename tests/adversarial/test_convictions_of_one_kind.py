"""Many convictions at once: what they cost together, who pays the jurors, what fills the cap."""

from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import FEE, PAYLOAD, ROOT, STAKE, CaseDriver
from support.program.losses import REWARD, assert_untouched, penalties

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditView

PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Phases that outlast what happens beside them."""
TARGET = 3


def voted(driver: CaseDriver, round_: int, target: int) -> AuditView:
    """Seats and jury say that the work does not match; the case can be settled."""
    driver.judge(round_, target, [MISMATCH] * 5)
    seated = driver.seat_jury(driver.case(round_, target))
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    return driver.case(round_, target)


def two_forged_rounds() -> tuple[CaseDriver, AuditView, AuditView]:
    """A trainer forged two rounds in a row, and a jury has found both; neither is settled."""
    driver = CaseDriver.started(12, 2, **PATIENT)
    driver.draw(0)
    return driver, voted(driver, 0, TARGET), voted(driver, 1, TARGET)


def test_a_second_conviction_waits_until_the_first_one_stands() -> None:
    """A trainer that a bug made forge two rounds is convicted of both before it knows.

    Both would have barred it. The second one waits for the first, and then costs the reward of its
    round: it was opened before the first was decided. Threat T75.
    """
    driver, first, second = two_forged_rounds()
    driver.settle_case(first)
    again = driver.settle_case_instruction(second, people=[TARGET])
    assert driver.refused(again, driver.cranker) == "ConvictionPending"
    driver.release(first)
    had = driver.entries[TARGET]
    settled = driver.settle_case(second, people=[TARGET]).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, fault=3, stake=0, unbonding=0)
    assert settled.reward_undone == settled.unvested == REWARD
    assert settled.flags & AuditFlag.FURTHER
    now = driver.entries[TARGET]
    assert_fields(now, status=had.status, work_faults=1, stake=had.stake - REWARD)
    driver.release(second)
    assert_untouched(driver, [TARGET])


def test_where_the_first_conviction_is_reversed_the_next_one_takes_its_place() -> None:
    """Otherwise a cheat would gain if a friendly jury convicted it first of what it did not do.

    Threat T75.
    """
    driver, first, second = two_forged_rounds()
    driver.settle_case(first)
    now = driver.case(0, TARGET)
    driver.appeal(now)
    driver.run_to(now.appeal_end)
    driver.reverse(now)
    driver.release(now)
    assert_fields(driver.entries[TARGET], work_faults=0, stake=STAKE // 2, pending_kinds=0)
    settled = driver.settle_case(second).event("CaseSettled")
    assert_fields(settled, stake=STAKE // 4, reward_undone=0)
    assert not settled.flags & AuditFlag.FURTHER
    assert_fields(driver.entries[TARGET], work_faults=1, pending_kinds=1)


def test_a_further_conviction_that_is_reversed_gives_its_reward_back() -> None:
    """The reward waits in escrow like all that a jury takes. Threat T75."""
    driver, first, second = two_forged_rounds()
    driver.settle_case(first)
    driver.release(first)
    driver.settle_case(second)
    now = driver.case(1, TARGET)
    driver.appeal(now)
    driver.run_to(now.appeal_end)
    driver.reverse(now)
    closed = driver.release(now).event("AuditClosed")
    assert_fields(closed, returned=REWARD, shortfall=0)
    assert_fields(driver.entries[TARGET], work_faults=1, claimable=REWARD, frozen=0)


def test_sybils_that_are_convicted_of_cheap_faults_leave_the_cap_for_work_alone() -> None:
    """Four sybils let friends convict them of false votes, so that no cheat fits into the epoch.

    Each kind has its own cap, and counts participants: a fifth false vote has to wait, false work
    does not. The last conviction that the cap of an exact kind allows waits for the council.
    Threat T76.
    """
    driver = CaseDriver.started(12, **PATIENT)
    friend, sybils = driver.outsider("friend"), [5, 6, 7, 8]
    for number, sybil in enumerate(sybils):
        driver.challenge(friend, 0, sybil, ROOT)
        settled = driver.decide(driver.case(0, sybil, ROOT), MISMATCH).event("CaseSettled")
        assert bool(settled.flags & AuditFlag.BREAKER) == (number == 3)
    driver.challenge(friend, 0, 9, ROOT)
    seated = driver.seat_jury(driver.case(0, 9, ROOT))
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    one_more = driver.settle_case_instruction(seated)
    assert driver.refused(one_more, driver.cranker) == "SlashCapReached"
    settled = driver.settle_case(voted(driver, 0, TARGET)).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=STAKE // 2)
    assert driver.run.convicted[AuditKind.ROOT].bit_count() == 4
    assert driver.run.convicted[AuditKind.WORK] == 1 << TARGET


def test_what_a_conviction_took_pays_its_jurors_and_a_reversal_gets_that_from_the_pool() -> None:
    """An empty pool used to leave jurors unpaid, and a bond used to pay for a true accusation.

    The slash pays first. Where the council reverses, the pool gives as much back as it has, and the
    event names what is missing. Threat T34.
    """
    driver = CaseDriver.started(pool=12 * REWARD + 3 * FEE, **PATIENT)
    driver.challenge(driver.outsider("challenger"), 0, TARGET, PAYLOAD)
    landed = driver.decide(driver.case(0, TARGET, PAYLOAD), MISMATCH)
    settled = landed.event("CaseSettled")
    fees = settled.paid.bit_count() * FEE
    assert_fields(settled, stake=STAKE // 10, juror_fees=fees, bond_spent=0)
    case = driver.case(0, TARGET, PAYLOAD)
    assert_fields(case, escrow=STAKE // 10 - fees, juror_fees=fees)
    pool = driver.run.reward_pool
    assert 0 < pool < fees
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    closed = driver.release(case).event("AuditClosed")
    assert_fields(closed, returned=STAKE // 10 - fees + pool, shortfall=fees - pool, burned=0)
    assert driver.run.reward_pool == 0
    assert penalties(landed) == []
