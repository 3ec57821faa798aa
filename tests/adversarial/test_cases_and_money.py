"""Cases as weapons, and money that wants to leave before it is judged, by the rules alone."""

from collections.abc import Callable

import pytest
from adversarial.judging_program import (
    REWARD,
    TX_FEE,
    assert_untouched,
    balance,
    fees_of,
    penalties,
    seats_of,
    wealth,
)
from program.audits import MISMATCH, OK
from program.cases import BOND, CLEARED, FEE, PAYLOAD, POSSESSION, ROOT, STAKE, WORK, Trial
from program.rounds import SLOTS_LISTED, params_of

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
    trial = Trial.in_session()
    griefer, pool = trial.outsider("griefer"), trial.run.reward_pool
    before = balance(trial, griefer)
    accused = [(target, kind) for target in range(4) for kind in (PAYLOAD, ROOT, POSSESSION)]
    for target, kind in accused:
        trial.challenge(griefer, 0, target, kind, 9 if kind == POSSESSION else 65535)
    assert trial.run.total_bonds == len(accused) * BOND
    assert [trial.entries[target].frozen for target in range(4)] == [3] * 4
    again = trial.challenge_instruction(griefer, 0, 0, PAYLOAD)
    assert trial.refused(again, griefer) == "AccountAlreadyExists", "two at once on one target"
    gained, burned = [0] * 4, 0
    for target, kind in accused:
        settled = trial.decide(trial.case(0, target, kind), OK).event("CaseSettled")
        rest = BOND - settled.paid.bit_count() * FEE
        assert (settled.outcome, settled.bond_spent) == (2, BOND - rest)
        assert (settled.bond_acquitted, settled.bond_burned) == (rest // 2, rest - rest // 2)
        gained[target] += settled.bond_acquitted
        burned += settled.bond_burned
    for target, kind in accused:
        trial.release(trial.case(0, target, kind))
    cost = len(accused) * (BOND + TX_FEE)
    assert before - balance(trial, griefer) == cost, "its rent came back, nothing else"
    assert [trial.entries[target].claimable for target in range(4)] == gained
    assert (trial.run.reward_pool, trial.burned(), trial.run.total_bonds) == (pool, burned, 0)
    assert_untouched(trial)


def test_a_griefer_cannot_try_the_same_work_twice_or_work_that_nobody_sampled() -> None:
    """It contests cleared work, loses its bond, and wants to go on with the same payload.

    A payload has one work case; without an audit there is none; who has no bond opens none.
    Threat T24.
    """
    trial = Trial.in_session()
    griefer = trial.outsider("griefer")
    trial.judge(0, TARGET, CLEARED)
    unsampled = trial.challenge_instruction(griefer, 0, 4, WORK)
    assert trial.refused(unsampled, griefer) == "NotSampled"
    trial.challenge(griefer, 0, TARGET, WORK)
    case = trial.case(0, TARGET)
    settled = trial.decide(case, OK).event("CaseSettled")
    assert (settled.outcome, settled.fault, settled.reward_undone) == (2, 0, 0)
    rest = BOND - settled.bond_spent
    assert trial.entries[TARGET].claimable == rest // 2 == settled.bond_acquitted
    again = trial.challenge_instruction(griefer, 0, TARGET, WORK)
    assert trial.refused(again, griefer) == "WrongStage"
    trial.release(case)
    assert trial.refused(again, griefer) == "CaseWindowOver"
    assert_untouched(trial)


def test_jurors_that_disagree_cost_the_accused_nothing() -> None:
    """Half of the committee are friends of the challenger, who hopes for its share of a slash.

    Neither side has two thirds: not proven. The bond pays all jurors and the rest returns, so a
    lost case with friends is cheap; but it takes nothing from the accused either. Threat T24, T08.
    """
    trial = Trial.in_session()
    griefer = trial.outsider("griefer")
    before = balance(trial, griefer)
    trial.challenge(griefer, 0, TARGET, PAYLOAD)
    seated = trial.seat_jury(trial.case(0, TARGET, PAYLOAD))
    num = len(seated.jurors)
    trial.poll(seated, [MISMATCH if place % 2 else OK for place in range(num)])
    settled = trial.settle_case(seated).event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.bond_returned) == (3, 0, BOND - num * FEE)
    trial.release(seated)
    assert before - balance(trial, griefer) == num * FEE + TX_FEE
    assert trial.burned() == 0
    assert_untouched(trial)


# Money that wants to leave.


def test_who_leaves_after_a_fraud_is_still_there_when_the_slowest_court_decides() -> None:
    """A trainer cheats in its last round and asks for its stake in the slot of the close.

    Everything then takes as long as it may: both seeds are lost once, every seat and juror speaks
    in its last slot. At no moment is there anything to withdraw. Half of the tickets is slashed
    (P3), the other half is paid when it matures, and not a slot before. Threat T25.
    """
    shortest = longest_settlement_slots(params_of()) + 1
    windows = {"unbond_slots": shortest, "vesting_slots": shortest, "max_pause_slots": shortest}
    trial = Trial(12, **windows)
    trial.start()
    trial.play(1)
    owner, left = trial.owners[TARGET], trial.slot
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    withdraw = life.withdraw_stake(trial.at, owner.pubkey(), 0)

    def nothing_leaves() -> None:
        refusal = "Frozen" if trial.entries[TARGET].frozen else "NothingToWithdraw"
        assert trial.refused(withdraw, owner) == refusal

    trial.chain.advance(trial.round(0).seed_slot + 513 - trial.slot)
    trial.send(life.retarget(trial.at, trial.cranker.pubkey(), 0), trial.cranker)
    trial.chain.advance(trial.round(0).seed_slot + SLOTS_LISTED - trial.slot)
    trial.freeze(0)
    wait(trial, trial.round(0).freeze_clock + trial.params.openings_slots, nothing_leaves)
    trial.post(0, TARGET)
    for said in ([MISMATCH] * 3, [MISMATCH] * 2):
        wait(trial, trial.of(0, TARGET).stage_end, nothing_leaves)
        trial.hear(0, TARGET, said)
        wait(trial, trial.of(0, TARGET).stage_end, nothing_leaves)
        if len(said) == 3:
            trial.extend(0, TARGET)
    trial.settle(0, TARGET)
    trial.chain.advance(trial.case(0, TARGET).case_seed_slot + 513 - trial.slot)
    trial.send(trial.draw_instruction(trial.case(0, TARGET)), trial.cranker)
    trial.chain.advance(trial.case(0, TARGET).case_seed_slot + SLOTS_LISTED - trial.slot)
    seated = trial.seat_jury(trial.case(0, TARGET))
    wait(trial, seated.stage_end, nothing_leaves)
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    settled = trial.settle_case(seated, people=[TARGET]).event("CaseSettled")
    assert (settled.stake, settled.unbonding, settled.shortfall) == (0, STAKE // 2, 0)
    wait(trial, settled.stage_end, nothing_leaves)
    assert trial.slot < left + shortest, "the shortest unbonding that a run may have was enough"
    trial.release(seated)
    trial.chain.advance(left + shortest - 1 - trial.slot)
    assert trial.refused(withdraw, owner) == "NothingToWithdraw"
    trial.chain.advance()
    assert trial.send(withdraw, owner).event("StakeWithdrawn").lamports == STAKE // 2
    assert_untouched(trial, [TARGET])


def wait(trial: Trial, clock: int, holds: Callable[[], None]) -> None:
    """Move to the last slot of a window; something holds before and after."""
    holds()
    trial.chain.advance(max(0, clock - trial.clock))
    holds()


def test_dust_tickets_hide_no_stake_from_a_slash() -> None:
    """A cheat splits its stake into tickets of one lamport and a stake below the minimum.

    It hopes that a slash looks at the stake only, or fails over too many parts. Three tickets are
    all that it may have; half of stake and tickets together is taken, to the lamport. Threat T26.
    """
    trial = Trial.in_session()
    owner = trial.owners[TARGET]
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), 7), owner)
    dust = life.withdraw_stake(trial.at, owner.pubkey(), 1)
    for _ in range(3):
        trial.send(dust, owner)
    assert trial.refused(dust, owner) == "TicketsFull"
    below = life.withdraw_stake(trial.at, owner.pubkey(), 5)
    assert trial.refused(below, owner) == "StakeBelowMinimum"
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    assert (trial.entries[TARGET].stake, trial.entries[TARGET].unbonding) == (0, STAKE + 7)
    case = trial.accuse(0, TARGET)
    settled = trial.decide(case, MISMATCH, people=[TARGET]).event("CaseSettled")
    taken = (STAKE + 7) // 2
    assert (settled.stake, settled.unbonding, settled.shortfall) == (0, taken, 0)
    assert trial.run.total_unbonding == STAKE + 7 - taken
    trial.release(case)
    trial.chain.advance(trial.params.unbond_slots)
    rest = trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 0), owner)
    assert rest.event("StakeWithdrawn").lamports == STAKE + 7 - taken
    contradicted = [seat.index for seat in case.seats[3:]]
    assert_untouched(trial, [TARGET, *contradicted])


@pytest.mark.parametrize(("kind", "percent"), [(WORK, 50), (PAYLOAD, 10), (ROOT, 25)])
def test_slashing_oneself_through_a_friend_loses_what_burns_and_what_the_treasury_gets(
    kind: int, percent: int
) -> None:
    """A cheat sees that it will be caught, and lets a second identity of its own accuse it.

    It hopes to get its stake back as the challenger's share, before somebody else earns it. Both
    together have exactly 95 % of the slash less, and the jurors' fees. Threat T34.
    """
    trial = Trial.in_session()
    if kind == WORK:
        trial.judge(0, TARGET, CLEARED)
    friend = trial.outsider("friend")
    before = wealth(trial, TARGET) + balance(trial, friend)
    trial.challenge(friend, 0, TARGET, kind)
    case = trial.case(0, TARGET, kind)
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    taken = settled.stake + settled.unvested
    assert settled.stake == STAKE * percent // 100
    closed = trial.release(case).event("AuditClosed")
    assert closed.challenger == taken * 5 // 100
    after = wealth(trial, TARGET) + balance(trial, friend)
    assert before - after == taken - closed.challenger + settled.bond_spent + TX_FEE
    assert closed.burned == taken - closed.challenger - taken * 45 // 100
    fined = [] if kind != WORK else seats_of(case)
    assert trial.burned() == closed.burned + len(fined) * 5_000, "wrong verdicts burn at once"
    assert_untouched(trial, [TARGET, *fined, *indices_of(settled.vouchers)])


def test_an_acquittal_bought_from_oneself_costs_half_of_the_bond() -> None:
    """An identity accuses another one of its owner of what it did not do.

    It hopes that the bond, paid to the acquitted, is money laundered or at least kept. Half of it
    burns, and the jurors are paid from it. Threat T34, T24.
    """
    trial = Trial.in_session()
    friend = trial.outsider("friend")
    before = wealth(trial, TARGET) + balance(trial, friend)
    trial.challenge(friend, 0, TARGET, PAYLOAD)
    case = trial.case(0, TARGET, PAYLOAD)
    settled = trial.decide(case, OK).event("CaseSettled")
    trial.release(case)
    lost = before - wealth(trial, TARGET) - balance(trial, friend)
    assert lost == settled.bond_spent + settled.bond_burned + TX_FEE
    assert settled.bond_burned == (BOND - settled.bond_spent) // 2
    assert_untouched(trial)


def test_rewards_are_claimed_once_and_not_after_they_were_slashed() -> None:
    """A cheat claims what it had earned: before, twice, while it is accused, and afterwards.

    What had vested and was claimed is its own. What had not is taken by the conviction, and does
    not come back when its window ends. Threat T35.
    """
    trial = Trial.in_session(commit_slots=2_000, vesting_slots=4_800, unbond_slots=4_800)
    owner = trial.owners[TARGET]
    claim = life.claim_reward(trial.at, owner.pubkey())
    for _ in range(3):
        assert trial.refused(claim, owner) == "NothingToClaim"
        trial.chain.advance(1_900)
        trial.play(1)
    trial.draw(3)
    trial.chain.advance(7_201 - trial.slot)
    before = balance(trial, owner)
    paid = trial.send(claim, owner).event("RewardClaimed")
    assert (paid.vested, paid.lamports) == (2 * REWARD, 2 * REWARD), "the first window's two"
    assert balance(trial, owner) == before - TX_FEE + 2 * REWARD
    assert trial.refused(claim, owner) == "NothingToClaim"
    trial.play(1)
    trial.draw(4)
    case = trial.accuse(4, TARGET)
    assert trial.refused(claim, owner) == "Frozen"
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    assert (settled.stake, settled.unvested) == (STAKE // 2, 3 * REWARD)
    assert trial.refused(claim, owner) == "Frozen", "while the escrow waits"
    trial.release(case)
    trial.chain.advance(2 * trial.params.vesting_slots)
    assert trial.refused(claim, owner) == "NothingToClaim", "what was slashed never vests"
    contradicted = [seat.index for seat in case.seats[3:]]
    assert_untouched(trial, [TARGET, *contradicted])


# Too many convictions at once.


def test_a_cartel_that_convicts_everybody_convicts_a_third_and_the_council_undoes_it() -> None:
    """A cartel, or a bug in everybody's driver, accuses five of twelve and convicts whom it can.

    More than a third of the sampled are accused: the breaker holds what is taken. A third of the
    present is all that an epoch may convict, and the fifth waits for the next. The council
    reverses: everybody has again what it had, to the lamport, and nothing has burned. Threat T58.
    """
    trial = Trial.in_session(rounds_per_epoch=4)
    had = [wealth(trial, index) for index in range(5)]
    for target in range(5):
        trial.judge(0, target, [MISMATCH] * 5)
    for target in range(4):
        settled = trial.decide(trial.case(0, target), MISMATCH).event("CaseSettled")
        assert (settled.outcome, settled.stake) == (1, STAKE // 2)
        assert settled.flags & AuditFlag.BREAKER
        assert settled.stage_end == settled.appeal_end + trial.params.breaker_slots
    fifth = trial.seat_jury(trial.case(0, 4))
    trial.poll(fifth, [MISMATCH] * len(fifth.jurors))
    assert trial.refused(trial.settle_case_instruction(fifth), trial.cranker) == "SlashCapReached"
    assert (trial.entries[4].stake, trial.entries[4].frozen) == (STAKE, 1)
    for target in range(4):
        case = trial.case(0, target)
        trial.run_to(case.appeal_end)
        trial.reverse(case)
    for target in range(4):
        case = trial.case(0, target)
        closed = trial.release(case).event("AuditClosed")
        assert (closed.treasury, closed.burned) == (0, 0)
    earned = [fees_of(trial, index) for index in range(4)]
    assert [wealth(trial, index) - earned[index] for index in range(4)] == had[:4]
    assert (trial.burned(), trial.run.total_escrow) == (0, 0)
    assert all(trial.entries[index].work_faults == 0 for index in range(5))
    assert_untouched(trial, range(5))


def test_a_false_conviction_is_appealed_and_what_others_paid_for_it_is_not_returned() -> None:
    """Three seats and five of the second committee collude to convict honest work.

    Its owner appeals, the council reverses: it has everything again but the fee of its transaction.
    The two seats that had said ok paid ten recomputations each at the conviction, split at once:
    that stays lost, which is why the council is a last resort. Threat T23, T30.
    """
    trial = Trial.in_session()
    had = wealth(trial, TARGET)
    case = trial.accuse(0, TARGET)
    honest = [seat.index for seat in case.seats[3:]]
    landed = trial.decide(case, MISMATCH)
    assert [(e.index, e.stake) for e in penalties(landed)] == [(i, 10_000) for i in honest]
    trial.appeal(case)
    trial.run_to(trial.case(0, TARGET).appeal_end)
    trial.reverse(case)
    closed = trial.release(case).event("AuditClosed")
    assert closed.returned == STAKE // 2 + REWARD
    assert wealth(trial, TARGET) == had - TX_FEE
    entry = trial.entries[TARGET]
    assert (entry.frozen, entry.work_faults, entry.strikes) == (0, 0, 0)
    assert trial.burned() == len(honest) * 5_000
    assert_untouched(trial, [TARGET, *honest])


def test_with_fewer_than_three_jurors_the_accused_is_excluded_and_keeps_its_stake() -> None:
    """In a run of four all three seats accuse the fourth, and one of them leaves before the draw.

    Two are left to judge, and nobody is convicted by two. The accused sits out an epoch without the
    reward of that round; its stake, and what it earned before, stay its own. Threat T24, T23.
    """
    trial = Trial.in_session(4, 2)
    trial.judge(1, TARGET, [MISMATCH] * 3)
    case = trial.case(1, TARGET)
    gone = trial.owners[seats_of(case)[0]]
    trial.send(life.leave_run(trial.at, gone.pubkey()), gone)
    trial.play(1)
    pool, earned = trial.run.reward_pool, sum(trial.entries[TARGET].bucket_amount)
    landed = trial.settle_case(trial.seat_jury(case))
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.fault, settled.stake) == (4, 0, 0)
    assert (settled.reward_undone, settled.jailed) == (REWARD, 1 << TARGET)
    assert penalties(landed) == []
    entry = trial.entries[TARGET]
    assert (entry.stake, entry.status, entry.frozen) == (STAKE, Status.JAILED, 0)
    assert sum(entry.bucket_amount) == earned - REWARD
    assert (trial.run.reward_pool, trial.burned()) == (pool + REWARD, 0)
