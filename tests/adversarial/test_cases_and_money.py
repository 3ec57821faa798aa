"""Cases as weapons, and money that wants to leave before it is judged, by the rules alone."""

from collections.abc import Callable

import pytest
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK
from support.program.cases import (
    BOND,
    CLEARED,
    FEE,
    PAYLOAD,
    POSSESSION,
    ROOT,
    STAKE,
    WORK,
    CaseDriver,
)
from support.program.losses import (
    REWARD,
    TX_FEE,
    assert_untouched,
    balance,
    fees_of,
    fined_lamports,
    penalties,
    seats_of,
    wealth,
)
from support.program.rounds import SLOTS_LISTED, params_of

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditFlag
from troth_coordinator.rules.bitmap import indices_of
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.view import Status

TARGET = 3


# Cases as weapons.


def test_a_flood_of_cases_is_paid_by_who_sends_it_and_feeds_the_accused() -> None:
    """A griefer accuses four participants of everything that can be accused, twelve cases at once.

    The accused cannot withdraw and the others must vote. Every case fails: its jurors are paid out
    of its bond, half of the rest goes to the accused, half burns (P9). The pool pays nothing, no
    stake moves, and the griefer has no more to lose when it comes again. Threat T24.
    """
    driver = CaseDriver.started()
    griefer, pool = driver.outsider("griefer"), driver.run.reward_pool
    before = balance(driver, griefer)
    accused = [(target, kind) for target in range(4) for kind in (PAYLOAD, ROOT, POSSESSION)]
    for target, kind in accused:
        driver.challenge(griefer, 0, target, kind, 9 if kind == POSSESSION else 65535)
    assert driver.run.total_bonds == len(accused) * BOND
    assert [driver.entries[target].frozen for target in range(4)] == [3] * 4
    again = driver.challenge_instruction(griefer, 0, 0, PAYLOAD)
    assert driver.refused(again, griefer) == "AccountAlreadyExists", "two at once on one target"
    gained, burned = [0] * 4, 0
    for target, kind in accused:
        settled = driver.decide(driver.case(0, target, kind), OK).event("CaseSettled")
        rest = BOND - settled.paid.bit_count() * FEE
        assert_fields(
            settled,
            outcome=CaseOutcome.ACQUITTED,
            bond_spent=BOND - rest,
            bond_acquitted=rest // 2,
            bond_burned=rest - rest // 2,
        )
        gained[target] += settled.bond_acquitted
        burned += settled.bond_burned
    for target, kind in accused:
        driver.release(driver.case(0, target, kind))
    cost = len(accused) * (BOND + TX_FEE)
    assert before - balance(driver, griefer) == cost, "its rent came back, nothing else"
    assert [driver.entries[target].claimable for target in range(4)] == gained
    assert_fields(driver.run, reward_pool=pool, total_bonds=0)
    assert driver.burned() == burned
    assert_untouched(driver)


def test_a_griefer_cannot_try_the_same_work_twice_or_work_that_nobody_sampled() -> None:
    """It contests cleared work, loses its bond, and wants to go on with the same payload.

    A payload has one work case. Without an audit there is none, and without a bond there is none.
    Threat T24.
    """
    driver = CaseDriver.started()
    griefer = driver.outsider("griefer")
    driver.judge(0, TARGET, CLEARED)
    unsampled = driver.challenge_instruction(griefer, 0, 4, WORK)
    assert driver.refused(unsampled, griefer) == "NotSampled"
    driver.challenge(griefer, 0, TARGET, WORK)
    case = driver.case(0, TARGET)
    settled = driver.decide(case, OK).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.ACQUITTED, fault=0, reward_undone=0)
    rest = BOND - settled.bond_spent
    assert driver.entries[TARGET].claimable == rest // 2 == settled.bond_acquitted
    again = driver.challenge_instruction(griefer, 0, TARGET, WORK)
    assert driver.refused(again, griefer) == "WrongStage"
    driver.release(case)
    assert driver.refused(again, griefer) == "CaseWindowOver"
    assert_untouched(driver)


def test_jurors_that_disagree_cost_the_accused_nothing() -> None:
    """Half of the committee are friends of the challenger, who hopes for its share of a slash.

    Neither side has two thirds: not proven. The bond pays all jurors and the rest returns, so a
    lost case with friends is cheap; but it takes nothing from the accused either. Threat T24, T08.
    """
    driver = CaseDriver.started()
    griefer = driver.outsider("griefer")
    before = balance(driver, griefer)
    driver.challenge(griefer, 0, TARGET, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, TARGET, PAYLOAD))
    num = len(seated.jurors)
    driver.take_votes(seated, [MISMATCH if place % 2 else OK for place in range(num)])
    settled = driver.settle_case(seated).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, stake=0, bond_returned=BOND - num * FEE)
    driver.release(seated)
    assert before - balance(driver, griefer) == num * FEE + TX_FEE
    assert driver.burned() == 0
    assert_untouched(driver)


# Money that wants to leave.


def test_who_leaves_after_a_fraud_is_still_there_when_the_slowest_court_decides() -> None:
    """A trainer cheats in its last round and asks for its stake in the slot of the close.

    Everything then takes as long as it may: both seeds are lost once, every seat and juror speaks
    in its last slot. At no moment is there anything to withdraw. Half of the tickets is slashed
    (P3), the other half is paid when it matures, and not a slot before. Threat T25.
    """
    shortest = longest_settlement_slots(params_of()) + 1
    windows = {"unbond_slots": shortest, "vesting_slots": shortest, "max_pause_slots": 0}
    driver = CaseDriver(12, **windows)
    driver.start()
    driver.play(1)
    owner, left = driver.owners[TARGET], driver.slot
    driver.send(life.leave_run(driver.at, owner.pubkey()), owner)
    withdraw = life.withdraw_stake(driver.at, owner.pubkey(), 0)

    def nothing_leaves() -> None:
        refusal = "Frozen" if driver.entries[TARGET].frozen else "NothingToWithdraw"
        assert driver.refused(withdraw, owner) == refusal

    driver.chain.advance(driver.round(0).seed_slot + 513 - driver.slot)
    driver.send(life.retarget_seed(driver.at, driver.cranker.pubkey(), 0), driver.cranker)
    driver.chain.advance(driver.round(0).seed_slot + SLOTS_LISTED - driver.slot)
    driver.freeze(0)
    wait(driver, driver.round(0).freeze_clock + driver.params.openings_slots, nothing_leaves)
    driver.post(0, TARGET)
    for said in ([MISMATCH] * 3, [MISMATCH] * 2):
        wait(driver, driver.of(0, TARGET).stage_end, nothing_leaves)
        driver.take_verdicts(0, TARGET, said)
        wait(driver, driver.of(0, TARGET).stage_end, nothing_leaves)
        if len(said) == 3:
            driver.extend(0, TARGET)
    driver.settle(0, TARGET)
    driver.chain.advance(driver.case(0, TARGET).case_seed_slot + 513 - driver.slot)
    driver.send(driver.draw_instruction(driver.case(0, TARGET)), driver.cranker)
    driver.chain.advance(driver.case(0, TARGET).case_seed_slot + SLOTS_LISTED - driver.slot)
    seated = driver.seat_jury(driver.case(0, TARGET))
    wait(driver, seated.stage_end, nothing_leaves)
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    settled = driver.settle_case(seated, people=[TARGET]).event("CaseSettled")
    assert_fields(settled, stake=0, unbonding=STAKE // 2, shortfall=0)
    wait(driver, settled.stage_end, nothing_leaves)
    assert driver.slot < left + shortest, "the shortest unbonding that a run may have was enough"
    driver.release(seated)
    driver.chain.advance(left + shortest - 1 - driver.slot)
    assert driver.refused(withdraw, owner) == "NothingToWithdraw"
    driver.chain.advance()
    assert driver.send(withdraw, owner).event("StakeWithdrawn").lamports == STAKE // 2
    assert_untouched(driver, [TARGET])


def wait(driver: CaseDriver, clock: int, holds: Callable[[], None]) -> None:
    """Move to the last slot of a window; something holds before and after."""
    holds()
    driver.chain.advance(max(0, clock - driver.clock))
    holds()


def test_dust_tickets_hide_no_stake_from_a_slash() -> None:
    """A cheat splits its stake into tickets of one lamport and a stake below the minimum.

    It hopes that a slash looks at the stake only, or fails over too many parts. Three tickets are
    all that it may have; half of stake and tickets together is taken, to the lamport. Threat T26.
    """
    driver = CaseDriver.started()
    owner = driver.owners[TARGET]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 7), owner)
    dust = life.withdraw_stake(driver.at, owner.pubkey(), 1)
    for _ in range(3):
        driver.send(dust, owner)
    assert driver.refused(dust, owner) == "TicketsFull"
    below = life.withdraw_stake(driver.at, owner.pubkey(), 5)
    assert driver.refused(below, owner) == "StakeBelowMinimum"
    driver.leave(TARGET)
    assert_fields(driver.entries[TARGET], stake=0, unbonding=STAKE + 7)
    case = driver.accuse(0, TARGET)
    settled = driver.decide(case, MISMATCH, people=[TARGET]).event("CaseSettled")
    taken = (STAKE + 7) // 2
    assert_fields(settled, stake=0, unbonding=taken, shortfall=0)
    assert driver.run.total_unbonding == STAKE + 7 - taken
    driver.release(case)
    driver.chain.advance(driver.params.unbond_slots)
    rest = driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    assert rest.event("StakeWithdrawn").lamports == STAKE + 7 - taken
    contradicted = [seat.index for seat in case.judging[3:]]
    assert_untouched(driver, [TARGET, *contradicted])


@pytest.mark.parametrize(("kind", "percent"), [(WORK, 50), (PAYLOAD, 10), (ROOT, 25)])
def test_slashing_oneself_through_a_friend_loses_what_burns(kind: int, percent: int) -> None:
    """A cheat sees that it will be caught, and lets a second identity of its own accuse it.

    It hopes to get its stake back as the challenger's share, before somebody else earns it. Of the
    slash 5 % come back; the other 95 % pay the jurors and burn. Threat T34.
    """
    driver = CaseDriver.started()
    if kind == WORK:
        driver.judge(0, TARGET, CLEARED)
    friend = driver.outsider("friend")
    before = wealth(driver, TARGET) + balance(driver, friend)
    driver.challenge(friend, 0, TARGET, kind)
    case = driver.case(0, TARGET, kind)
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    taken = settled.stake + settled.unvested
    assert settled.stake == STAKE * percent // 100
    closed = driver.release(case).event("AuditClosed")
    assert closed.challenger == taken * 5 // 100
    after = wealth(driver, TARGET) + balance(driver, friend)
    assert before - after == taken - closed.challenger + TX_FEE
    assert closed.burned == taken - closed.challenger - settled.juror_fees
    fined = [] if kind != WORK else seats_of(case)
    assert driver.burned() == closed.burned + len(fined) * 10_000, "wrong verdicts burn at once"
    assert_untouched(driver, [TARGET, *fined, *indices_of(settled.vouchers)])


def test_an_acquittal_bought_from_oneself_costs_half_of_the_bond() -> None:
    """An identity accuses another one of its owner of what it did not do.

    It hopes that the bond, paid to the acquitted, is money laundered or at least kept. Half of it
    burns, and the jurors are paid from it. Threat T34, T24.
    """
    driver = CaseDriver.started()
    friend = driver.outsider("friend")
    before = wealth(driver, TARGET) + balance(driver, friend)
    driver.challenge(friend, 0, TARGET, PAYLOAD)
    case = driver.case(0, TARGET, PAYLOAD)
    settled = driver.decide(case, OK).event("CaseSettled")
    driver.release(case)
    lost = before - wealth(driver, TARGET) - balance(driver, friend)
    assert lost == settled.bond_spent + settled.bond_burned + TX_FEE
    assert settled.bond_burned == (BOND - settled.bond_spent) // 2
    assert_untouched(driver)


def test_rewards_are_claimed_once_and_not_after_they_were_slashed() -> None:
    """A cheat claims what it had earned: before, twice, while it is accused, and afterwards.

    Rewards that had vested and were claimed are its own. The conviction takes the others, and they
    do not come back when their window ends. Threat T35.
    """
    driver = CaseDriver.started(commit_slots=1_950, vesting_slots=4_800, unbond_slots=4_800)
    owner = driver.owners[TARGET]
    claim = life.claim_reward(driver.at, owner.pubkey())
    for _ in range(3):
        assert driver.refused(claim, owner) == "NothingToClaim"
        driver.chain.advance(1_900)
        driver.play(1)
    driver.draw(3)
    driver.chain.advance(7_201 - driver.slot)
    before = balance(driver, owner)
    paid = driver.send(claim, owner).event("RewardClaimed")
    assert_fields(paid, "the first window's two", vested=2 * REWARD, lamports=2 * REWARD)
    assert balance(driver, owner) == before - TX_FEE + 2 * REWARD
    assert driver.refused(claim, owner) == "NothingToClaim"
    driver.play(1)
    driver.draw(4)
    case = driver.accuse(4, TARGET)
    assert driver.refused(claim, owner) == "Frozen"
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    assert_fields(settled, stake=STAKE // 2, unvested=3 * REWARD)
    assert driver.refused(claim, owner) == "Frozen", "while the escrow waits"
    driver.release(case)
    driver.chain.advance(2 * driver.params.vesting_slots)
    assert driver.refused(claim, owner) == "NothingToClaim", "what was slashed never vests"
    contradicted = [seat.index for seat in case.judging[3:]]
    assert_untouched(driver, [TARGET, *contradicted])


# Too many convictions at once.


def test_a_cartel_that_convicts_everybody_convicts_a_third_and_the_council_undoes_it() -> None:
    """A cartel, or a bug in everybody's driver, accuses five of twelve and convicts whom it can.

    More than a third of the sampled are accused: the breaker holds what is taken. A third of the
    present is all that an epoch may convict, and the fifth waits for the next. The council
    reverses: everybody has again what it had, to the lamport, and nothing has burned. Threat T58.
    """
    driver = CaseDriver.started(rounds_per_epoch=4)
    had = [wealth(driver, index) for index in range(5)]
    for target in range(5):
        driver.judge(0, target, [MISMATCH] * 5)
    for target in range(4):
        settled = driver.decide(driver.case(0, target), MISMATCH).event("CaseSettled")
        assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=STAKE // 2)
        assert settled.flags & AuditFlag.BREAKER
        assert settled.stage_end == settled.appeal_end + driver.params.breaker_slots
    fifth = driver.vote_all(driver.case(0, 4), MISMATCH)
    assert (
        driver.refused(driver.settle_case_instruction(fifth), driver.cranker) == "SlashCapReached"
    )
    assert_fields(driver.entries[4], stake=STAKE, frozen=1)
    for target in range(4):
        case = driver.case(0, target)
        driver.run_to(case.appeal_end)
        driver.reverse(case)
    for target in range(4):
        case = driver.case(0, target)
        closed = driver.release(case).event("AuditClosed")
        assert_fields(closed, pool=0, burned=0)
    earned = [fees_of(driver, index) for index in range(4)]
    assert [wealth(driver, index) - earned[index] for index in range(4)] == had[:4]
    assert driver.burned() == 0
    assert driver.run.total_escrow == 0
    assert all(driver.entries[index].work_faults == 0 for index in range(5))
    assert_untouched(driver, range(5))


def test_a_false_conviction_is_appealed_and_what_others_paid_for_it_is_not_returned() -> None:
    """Three seats and five jurors collude to convict honest work.

    Its owner appeals, the council reverses: it has everything again but the fee of its transaction.
    The two seats that had said ok paid ten recomputations each at the conviction, split at once:
    that stays lost, which is why the council is a last resort. Threat T23, T30.
    """
    driver = CaseDriver.started()
    had = wealth(driver, TARGET)
    case = driver.accuse(0, TARGET)
    honest = [seat.index for seat in case.judging[3:]]
    landed = driver.decide(case, MISMATCH)
    assert {one.index: fined_lamports(one) for one in penalties(landed)} == dict.fromkeys(
        honest, 10_000
    )
    driver.appeal(case)
    driver.run_to(driver.case(0, TARGET).appeal_end)
    driver.reverse(case)
    closed = driver.release(case).event("AuditClosed")
    assert closed.returned == STAKE // 2 + REWARD
    assert wealth(driver, TARGET) == had - TX_FEE
    entry = driver.entries[TARGET]
    assert_fields(entry, frozen=0, work_faults=0, strikes=0)
    assert driver.burned() == len(honest) * 10_000
    assert_untouched(driver, [TARGET, *honest])


def test_with_fewer_than_three_jurors_the_accused_is_excluded_and_keeps_its_stake() -> None:
    """In a run with four witnesses all three seats accuse the fourth, and one of them is barred.

    Two are left to judge, and nobody is convicted by two. The accused sits out an epoch without the
    reward of that round; its stake, and what it earned before, stay its own. Threat T24, T23.
    """
    driver = CaseDriver.with_four_judges(offender=0)
    round_ = driver.run.round - 2
    driver.judge(round_, TARGET, [MISMATCH] * 3)
    driver.bar(0)
    case = driver.case(round_, TARGET)
    pool, earned = driver.run.reward_pool, sum(driver.entries[TARGET].bucket_amount)
    landed = driver.settle_case(driver.seat_jury(case))
    settled = landed.event("CaseSettled")
    assert_fields(
        settled,
        outcome=CaseOutcome.EXCLUDED,
        fault=0,
        stake=0,
        reward_undone=REWARD,
        jailed=1 << TARGET,
    )
    assert penalties(landed) == []
    entry = driver.entries[TARGET]
    assert_fields(entry, stake=STAKE, status=Status.JAILED, frozen=0)
    assert sum(entry.bucket_amount) == earned - REWARD
    assert driver.run.reward_pool == pool + REWARD
