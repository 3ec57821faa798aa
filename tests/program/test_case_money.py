"""The lamports that a case can take, and those that stay locked while it is open."""

import pytest
from solders.system_program import TransferParams, transfer
from support.fields import assert_fields
from support.program.audits import INCONCLUSIVE, MISMATCH, OK, UNAVAILABLE
from support.program.cases import (
    BOND,
    FEE,
    NO_SUBJECT,
    PAYLOAD,
    POSSESSION,
    ROOT,
    STAKE,
    WORK,
    CaseDriver,
)
from support.program.losses import fined_lamports
from support.program.rounds import key

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditKind, AuditStage
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

REWARD = 1_000
ALL_MISMATCH = [MISMATCH] * 5
SPLIT = [OK, MISMATCH, OK, MISMATCH, INCONCLUSIVE, OK, MISMATCH]
"""Three of seven on each side: unproven."""
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}


def test_nothing_is_paid_out_while_a_case_is_open() -> None:
    driver = CaseDriver.started()
    owner = driver.owners[3]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 7_000), owner)
    driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 7_000), owner)
    case = driver.accuse(0, 3)
    driver.chain.advance(driver.params.unbond_slots + 1)
    withdraw = life.withdraw_stake(driver.at, owner.pubkey(), 0)
    claim = life.claim_reward(driver.at, owner.pubkey())
    assert driver.refused(withdraw, owner) == "Frozen"
    assert driver.refused(claim, owner) == "Frozen"
    # The seed of the case is long gone: one more slot is named, and used.
    driver.send(driver.draw_instruction(case), driver.cranker)
    driver.decide(driver.case(0, 3), OK)
    assert driver.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000
    driver.send(claim, owner)


def test_withdrawing_at_the_last_moment_saves_nothing() -> None:
    driver = CaseDriver.started()
    owner = driver.owners[3]
    driver.leave(3)
    case = driver.accuse(0, 3)
    assert driver.entries[3].stake == 0
    assert driver.run.total_unbonding == STAKE
    voted = driver.vote_all(case, MISMATCH)
    missing = driver.settle_case_instruction(voted)
    assert driver.refused(missing, driver.cranker) == "ParticipantMissing"
    settled = driver.settle_case(voted, people=[3]).event("CaseSettled")
    assert_fields(settled, stake=0, unbonding=STAKE // 2)
    assert driver.run.total_unbonding == STAKE // 2
    driver.release(case)
    driver.chain.advance(driver.params.unbond_slots)
    paid = driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    assert paid.event("StakeWithdrawn").lamports == STAKE // 2


def test_a_slash_takes_what_is_there_and_records_the_rest() -> None:
    """A target that lost everything but dust is convicted all the same."""
    driver = CaseDriver.started(12, **PATIENT)
    driver.offend(3)
    last = driver.run.round - 1
    driver.challenge(driver.outsider("challenger"), last, 3, ROOT)
    driver.bar(3)
    assert driver.entries[3].stake == 0
    settled = driver.decide(driver.case(last, 3, ROOT), MISMATCH).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=0, shortfall=0, juror_fees=0)
    closed = driver.release(driver.case(last, 3, ROOT)).event("AuditClosed")
    assert_fields(closed, challenger=0, pool=0, burned=0)


def test_dust_rounds_towards_the_fire() -> None:
    driver = CaseDriver.started(min_stake_lamports=60_001)
    case = driver.accuse(0, 3)
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    assert settled.stake == 30_000
    rest = settled.stake + settled.unvested - settled.juror_fees
    closed = driver.release(case).event("AuditClosed")
    assert_fields(closed, challenger=0, burned=rest)


def test_two_cases_at_once_each_take_their_share_of_what_is_left() -> None:
    driver = CaseDriver.started()
    stranger = driver.outsider("challenger")
    driver.challenge(stranger, 0, 3, PAYLOAD)
    driver.challenge(stranger, 0, 3, ROOT)
    assert_fields(driver.entries[3], frozen=2, targets=2)
    first = driver.decide(driver.case(0, 3, PAYLOAD), MISMATCH).event("CaseSettled")
    second = driver.decide(driver.case(0, 3, ROOT), MISMATCH).event("CaseSettled")
    assert first.stake == STAKE // 10
    assert second.stake == (STAKE - STAKE // 10) // 4
    driver.release(driver.case(0, 3, PAYLOAD))
    withdraw = life.withdraw_stake(driver.at, driver.owners[3].pubkey(), 0)
    assert driver.refused(withdraw, driver.owners[3]) == "Frozen"
    driver.release(driver.case(0, 3, ROOT))
    assert driver.entries[3].frozen == 0


def test_slashing_oneself_through_a_second_identity_loses_money() -> None:
    driver = CaseDriver.started()
    friend = driver.outsider("friend")
    before = driver.chain.accounts.balance(friend.pubkey())
    driver.challenge(friend, 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    rent = driver.chain.accounts.balance(driver.at.audit(0, 3, PAYLOAD))
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    driver.release(case)
    gained = driver.chain.accounts.balance(friend.pubkey()) - before
    assert rent > 0 and gained < settled.stake * 5 // 100
    assert gained > -BOND - 100_000


def test_without_three_people_a_bond_proves_nothing_and_comes_back() -> None:
    driver = CaseDriver.with_four_judges(offender=2)
    friend, stranger = driver.owners[1], driver.outsider("challenger")
    round_ = driver.run.round - 2
    early = driver.challenge_instruction(friend, round_, 3, PAYLOAD)
    assert driver.refused(early, friend) == "TooFewWitnesses"
    driver.challenge(stranger, round_, 3, PAYLOAD)
    case = driver.case(round_, 3, PAYLOAD)
    driver.bar(2)
    had = driver.entries[3]
    seated = driver.seat_jury(case)
    assert_fields(seated, stage=AuditStage.CASE_REVEAL, num_jurors=0)
    settled = driver.settle_case(seated).event("CaseSettled")
    assert_fields(
        settled,
        outcome=CaseOutcome.NOT_PROVEN,
        stake=0,
        bond_returned=BOND,
        reward_undone=0,
        jailed=0,
    )
    now = driver.entries[3]
    assert_fields(now, status=had.status, frozen=0, bucket_amount=had.bucket_amount)
    assert driver.release(case).event("AuditClosed").burned == 0


def test_without_three_people_whom_three_seats_accused_is_excluded_and_not_slashed() -> None:
    driver = CaseDriver.with_four_judges(offender=2)
    round_ = driver.run.round - 2
    driver.judge(round_, 3, [MISMATCH] * 3)
    driver.bar(2)
    pool = driver.run.reward_pool
    seated = driver.seat_jury(driver.case(round_, 3))
    assert_fields(seated, stage=AuditStage.CASE_REVEAL, num_jurors=0)
    settled = driver.settle_case(seated).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.EXCLUDED, stake=0, bond_returned=0)
    assert settled.reward_undone == 1_000
    assert driver.run.reward_pool == pool + 1_000
    assert settled.jailed == 0b1000
    assert driver.entries[3].status == Status.JAILED
    assert driver.release(seated).event("AuditClosed").burned == 0


def test_a_challenger_that_takes_part_does_not_judge_its_own_case() -> None:
    driver = CaseDriver.started(6)
    driver.challenge(driver.owners[1], 0, 3, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    assert sorted(juror.index for juror in seated.jurors) == [0, 2, 4, 5]


def test_a_case_whose_seed_is_lost_twice_is_not_proven() -> None:
    driver = CaseDriver.started()
    stranger = driver.outsider("challenger")
    driver.challenge(stranger, 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    assert driver.refused(driver.draw_instruction(case), driver.cranker) == "SeedTooEarly"
    names = []
    for _ in range(2):
        driver.chain.advance(600)
        names += driver.send(driver.draw_instruction(case), driver.cranker).names()
    assert names == ["CaseSeedRetargeted", "CaseSeedLost"]
    settled = driver.settle_case(driver.case(0, 3, PAYLOAD)).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, bond_returned=BOND, paid=0)
    assert driver.entries[3].frozen == 0


def test_a_challenger_that_can_hold_nothing_leaves_its_bond_to_the_pool() -> None:
    """An emptied account would not be rent exempt: the settlement must not fail for it."""
    driver = CaseDriver.started()
    poor = key("poor")
    rent_and_fees = 30_000_000
    driver.chain.airdrop(poor.pubkey(), rent_and_fees)
    driver.challenge(poor, 0, 3, PAYLOAD)
    left = driver.chain.accounts.balance(poor.pubkey()) - 5_000
    to = driver.cranker.pubkey()
    send = transfer(TransferParams(from_pubkey=poor.pubkey(), to_pubkey=to, lamports=left))
    driver.send(send, poor)
    assert driver.chain.accounts.balance(poor.pubkey()) == 0
    pool = driver.run.reward_pool
    settled = driver.decide(driver.case(0, 3, PAYLOAD), MISMATCH).event("CaseSettled")
    assert_fields(settled, bond_returned=0, bond_pool=BOND - settled.bond_spent)
    assert driver.run.reward_pool == pool + settled.bond_pool
    closed = driver.release(driver.case(0, 3, PAYLOAD)).event("AuditClosed")
    bounty = (settled.stake + settled.unvested) * 5 // 100
    assert_fields(closed, challenger=0, pool=bounty)


def test_no_ticket_matures_while_the_run_is_paused() -> None:
    """A cheat asks for its stake, and a pause stops every window in which it could be judged.

    Tickets therefore count on the same clock as the windows: no pause can outlast a stake.
    Threat T25.
    """
    driver = CaseDriver.started()
    owner = driver.owners[3]
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 7_000), owner)
    driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 7_000), owner)
    start = driver.slot
    authority = driver.authority
    driver.send(life.pause_run(driver.at, authority.pubkey()), authority)
    driver.open_audit(0, 3)
    driver.play(1)
    assert driver.run.phase == Phase.PAUSED
    driver.chain.advance(50)
    resume = life.resume_run(driver.at, authority.pubkey(), driver.run.round)
    driver.send(resume, authority)
    paused = driver.run.pause_used_slots
    withdraw = life.withdraw_stake(driver.at, owner.pubkey(), 0)
    driver.chain.advance(start + driver.params.unbond_slots + paused - 1 - driver.slot)
    assert driver.refused(withdraw, owner) == "NothingToWithdraw"
    driver.chain.advance(1)
    assert driver.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000


@pytest.mark.parametrize("kind", [WORK, PAYLOAD])
def test_a_case_outlives_the_ring(kind: int) -> None:
    driver = CaseDriver.started(12, 1, keep_rounds=2, ring=4, max_rounds=30)
    if kind == WORK:
        driver.accuse(0, 3)
    else:
        driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    driver.seat_jury(driver.case(0, 3, kind))
    for _ in range(4):
        driver.play(1)
    assert driver.run.round == 5
    seated = driver.case(0, 3, kind)
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    assert driver.settle_case(seated).event("CaseSettled").outcome == CaseOutcome.CONVICTED


def test_nobody_is_paid_for_the_outcome_but_for_judging() -> None:
    """The fee of a juror is the same whether it convicts or acquits."""
    fees = []
    for verdict in (OK, MISMATCH):
        driver = CaseDriver.started()
        case = driver.accuse(0, 3)
        fees.append(driver.decide(case, verdict).event("CaseSettled").fee)
    assert fees == [FEE, FEE]


def test_hiding_from_the_jury_is_a_refusal_like_any_other() -> None:
    """The step that the program would take for openings that were never posted."""
    driver = CaseDriver.started(12, 2, **PATIENT)
    driver.judge(1, 3, ALL_MISMATCH)
    case = driver.case(1, 3)
    pool = driver.run.reward_pool
    landed = driver.decide(case, UNAVAILABLE)
    settled, fine = landed.event("CaseSettled"), landed.event("Penalised")
    assert_fields(settled, outcome=5, fault=5, stake=0, reward_undone=REWARD, seats_paid=0)
    assert_fields(fine, index=3, fault=5)
    assert fined_lamports(fine) == 12 * REWARD
    paid = settled.paid.bit_count() * FEE
    assert pool + REWARD - driver.run.reward_pool == paid, "no bond: the pool pays"
    now = driver.entries[3]
    assert_fields(now, frozen=0, work_faults=0, openings_step=1)
    assert_fields(driver.run, convicted=(0, 0, 0, 0), total_escrow=0)


def test_a_hidden_round_was_not_paid_for_however_its_audit_had_ended() -> None:
    """Unproven by the seats, its reward is undone already; the refusal takes other rounds' only."""
    driver = CaseDriver.started(12, 2)
    undone = driver.judge(1, 3, SPLIT).event("AuditSettled")
    assert undone.reward_undone == REWARD
    unvested = sum(driver.entries[3].bucket_amount)
    driver.challenge(driver.outsider("challenger"), 1, 3, WORK)
    landed = driver.decide(driver.case(1, 3), UNAVAILABLE)
    assert landed.event("CaseSettled").reward_undone == 0
    assert fined_lamports(landed.event("Penalised")) == 12 * REWARD
    assert sum(driver.entries[3].bucket_amount) == max(0, unvested - 12 * REWARD)
    assert driver.round(1).unpaid >> 3 & 1


def test_two_thirds_must_have_asked_in_vain_and_silence_is_on_no_side() -> None:
    driver = CaseDriver.started()
    seated = driver.seat_jury(driver.accuse(0, 3))
    assert len(seated.jurors) == 6
    driver.take_votes(seated, [UNAVAILABLE] * 3 + [None] * 3)
    driver.run_to(driver.case(0, 3).stage_end)
    landed = driver.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NOT_PROVEN, fault=0)
    assert settled.paid == 0, "without a majority, to have asked in vain earns nothing"
    fined = [event.index for event in landed.events if event.name == "Penalised"]
    assert fined == [juror.index for juror in seated.jurors[3:]], "for silence, and nobody else"


@pytest.mark.parametrize("is_bonded", [True, False])
def test_serving_a_part_of_the_jury_is_no_cheaper_than_serving_nobody(is_bonded: bool) -> None:
    """Three of seven are served late, and see the forgery; four have said unavailable by then."""
    driver = CaseDriver.started(12)
    if is_bonded:
        driver.judge(0, 3, [OK] * 3)
        driver.challenge(driver.outsider("challenger"), 0, 3, WORK)
    else:
        driver.judge(0, 3, [UNAVAILABLE] * 3 + [OK] * 2)
    seated = driver.seat_jury(driver.case(0, 3))
    num_blind = len(seated.jurors) - 3
    driver.take_votes(seated, [MISMATCH] * 3 + [UNAVAILABLE] * num_blind)
    landed = driver.settle_case(driver.case(0, 3))
    settled = landed.event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.NO_OPENINGS, fault=5, stake=0)
    assert settled.paid == sum(1 << juror.index for juror in seated.jurors), "both have found it"
    assert fined_lamports(landed.event("Penalised")) == 12 * REWARD
    assert driver.entries[3].openings_step == 1


def test_serving_a_part_of_the_seats_brings_the_work_before_a_jury() -> None:
    """One seat of a partner made it undecided, which costs one reward."""
    driver = CaseDriver.started(12)
    said = [OK, MISMATCH, UNAVAILABLE, MISMATCH, UNAVAILABLE, MISMATCH, UNAVAILABLE]
    undone = driver.judge(0, 3, said).event("AuditSettled")
    assert_fields(undone, outcome=AuditOutcome.UNAVAILABLE, reward_undone=0)
    settled = driver.decide(driver.case(0, 3), MISMATCH, people=[3]).event("CaseSettled")
    assert_fields(settled, outcome=CaseOutcome.CONVICTED, stake=STAKE // 2)


@pytest.mark.parametrize(("kind", "subject"), [(PAYLOAD, NO_SUBJECT), (POSSESSION, 4)])
def test_nobody_owes_the_evidence_of_an_exact_case(kind: AuditKind, subject: int) -> None:
    driver = CaseDriver.started()
    driver.challenge(driver.outsider("challenger"), 0, 3, kind, subject)
    landed = driver.decide(driver.case(0, 3, kind), UNAVAILABLE)
    assert landed.event("CaseSettled").outcome == CaseOutcome.NOT_PROVEN
    assert driver.entries[3].stake == STAKE
