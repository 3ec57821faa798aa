"""Many convictions at once: what they cost together, who pays the jurors, what fills the cap."""

from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import BOND, FEE, PAYLOAD, POSSESSION, ROOT, STAKE, CaseDriver
from support.program.losses import REWARD, assert_untouched, penalties

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.case_instructions import NO_SUBJECT
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditView

PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
"""Phases that outlast what happens beside them."""
TARGET = 3


def two_forged_rounds() -> tuple[CaseDriver, AuditView, AuditView]:
    """A trainer forged two rounds in a row, and a jury has found both; neither is settled."""
    driver = CaseDriver.started(12, 2, **PATIENT)
    driver.draw(0)
    return driver, driver.voted(0, TARGET), driver.voted(1, TARGET)


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
    voted = driver.vote_all(driver.case(0, 9, ROOT), MISMATCH)
    one_more = driver.settle_case_instruction(voted)
    assert driver.refused(one_more, driver.cranker) == "SlashCapReached"
    settled = driver.settle_case(driver.voted(0, TARGET)).event("CaseSettled")
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


def challenged(
    driver: CaseDriver, round_: int, kind: AuditKind, subject: int = NO_SUBJECT
) -> AuditView:
    """A friend has challenged the target for a bond, and a jury has found the fault."""
    driver.challenge(driver.outsider("friend"), round_, TARGET, kind, subject)
    return driver.vote_all(driver.case(round_, TARGET, kind), MISMATCH)


def two_false_votes() -> tuple[CaseDriver, AuditView, AuditView]:
    """Friends have challenged two votes of a sybil, and juries have found both false."""
    driver = CaseDriver.started(12, 2, **PATIENT)
    first, second = (challenged(driver, round_, ROOT) for round_ in (0, 1))
    return driver, first, second


def test_a_further_conviction_is_paid_by_whoever_wanted_it_and_not_by_the_pool() -> None:
    """Friends accuse a sybil of false votes in many rounds, and partners sit on the juries.

    The first conviction takes a quarter of the stake, each further one a reward, but seven jurors
    are paid each time. The challenger's bond pays them, or the pool would be emptied by it. Once a
    conviction was decided, no case about an earlier round is opened any more. Threat T77.
    """
    driver, first, second = two_false_votes()
    driver.settle_case(first)
    late = driver.challenge_instruction(driver.outsider("late"), 1, TARGET, ROOT)
    assert driver.refused(late, driver.outsider("late")) == "AlreadyConvicted"
    driver.release(first)
    pool = driver.run.reward_pool
    settled = driver.settle_case(second).event("CaseSettled")
    fees = settled.paid.bit_count() * FEE
    assert_fields(settled, bond_spent=fees, juror_fees=0, bond_returned=BOND - fees, stake=0)
    assert driver.run.reward_pool == pool
    assert_untouched(driver, [TARGET])


def test_further_convictions_of_a_sybil_leave_the_cap_to_a_cheat() -> None:
    """A sybil keeps cases back, one for each epoch, to fill a cap of one. Threat T76."""
    driver = CaseDriver.started(5, 3, rounds_per_epoch=4, seat_load=15, **PATIENT)
    for round_ in (0, 1):
        driver.draw(round_)
    sybil, cheat = 3, 4
    first, kept, wanted = (driver.voted(*who) for who in ((0, sybil), (1, sybil), (2, cheat)))
    driver.settle_case(first)
    too_many = driver.settle_case_instruction(wanted)
    assert driver.refused(too_many, driver.cranker) == "SlashCapReached"
    driver.release(first)
    epoch = driver.run.epoch
    while driver.run.epoch == epoch:
        driver.play(1)
    driver.settle_case(kept)
    settled = driver.settle_case(wanted).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=STAKE // 2)
    assert driver.run.convicted[AuditKind.WORK] == 1 << cheat


def test_the_third_false_possession_jails_although_the_first_was_decided_after_it() -> None:
    """Each is a strike, however little a further one takes. Threat T75."""
    driver = CaseDriver.started(12, 3, **PATIENT)
    cases = [challenged(driver, round_, POSSESSION, 5) for round_ in (0, 1, 2)]
    driver.settle_case(cases[0])
    driver.release(cases[0])
    landed = [driver.settle_case(case).event("CaseSettled") for case in cases[1:]]
    assert [event.stake for event in landed] == [0, 0]
    assert landed[-1].jailed == 1 << TARGET


def test_a_conviction_for_work_takes_what_waits_for_the_end_of_a_probation() -> None:
    """Which audit ends a probation is known in advance; forged rounds beside it were sheltered.

    Rewards that wait are unvested like others: a conviction for work takes them. Threat T07.
    """
    patient = {"commit_slots": 9_000, "vesting_slots": 99_000, "unbond_slots": 99_000}
    driver = CaseDriver.started(12, openings_slots=600, **patient)
    owner = driver.owners[TARGET]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), STAKE), owner)
    driver.open_audit(0, TARGET)
    driver.run_to(driver.of(0, TARGET).stage_end)
    driver.settle(0, TARGET, people=[TARGET])
    driver.play(4)
    entry = driver.entries[TARGET]
    forged = entry.probation_round + 1
    assert entry.withheld >= 3 * REWARD
    driver.draw(forged)
    settled = driver.settle_case(driver.voted(forged, TARGET), people=[TARGET])
    event = settled.event("CaseSettled")
    assert_fields(event, fault=3)
    assert event.unvested >= entry.withheld
    assert driver.entries[TARGET].withheld == 0
