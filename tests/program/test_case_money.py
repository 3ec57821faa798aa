"""What a case finds to take, and what nobody gets out while it is open."""

import pytest
from program.audits import INCONCLUSIVE, MISMATCH, OK, UNAVAILABLE
from program.cases import (
    BOND,
    FEE,
    NO_SUBJECT,
    PAYLOAD,
    POSSESSION,
    ROOT,
    STAKE,
    WORK,
    Trial,
)
from program.rounds import key
from solders.system_program import TransferParams, transfer

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditKind, AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

REWARD = 1_000
ALL_MISMATCH = [MISMATCH] * 5
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}


def test_nothing_is_paid_out_while_a_case_is_open() -> None:
    trial = Trial.in_session()
    owner = trial.owners[3]
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), 7_000), owner)
    trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 7_000), owner)
    case = trial.accuse(0, 3)
    trial.chain.advance(trial.params.unbond_slots + 1)
    withdraw = life.withdraw_stake(trial.at, owner.pubkey(), 0)
    claim = life.claim_reward(trial.at, owner.pubkey())
    assert trial.refused(withdraw, owner) == "Frozen"
    assert trial.refused(claim, owner) == "Frozen"
    # The seed of the case is long gone: one more slot is named, and used.
    trial.send(trial.draw_instruction(case), trial.cranker)
    trial.decide(trial.case(0, 3), OK)
    assert trial.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000
    trial.send(claim, owner)


def test_withdrawing_at_the_last_moment_saves_nothing() -> None:
    trial = Trial.in_session()
    owner = trial.owners[3]
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)
    case = trial.accuse(0, 3)
    assert (trial.entries[3].stake, trial.run.total_unbonding) == (0, STAKE)
    seated = trial.seat_jury(case)
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    missing = trial.settle_case_instruction(seated)
    assert trial.refused(missing, trial.cranker) == "ParticipantMissing"
    settled = trial.settle_case(seated, people=[3]).event("CaseSettled")
    assert (settled.stake, settled.unbonding) == (0, STAKE // 2)
    assert trial.run.total_unbonding == STAKE // 2
    trial.release(case)
    trial.chain.advance(trial.params.unbond_slots)
    paid = trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 0), owner)
    assert paid.event("StakeWithdrawn").lamports == STAKE // 2


def test_a_slash_takes_what_is_there_and_records_the_rest() -> None:
    """A target that lost everything but dust is convicted all the same."""
    trial = Trial.in_session(12, 2)
    trial.challenge(trial.outsider("challenger"), 1, 3, ROOT)
    trial.judge(1, 3, ALL_MISMATCH)
    trial.draw(0)
    trial.judge(0, 3, ALL_MISMATCH)
    trial.decide(trial.case(1, 3), MISMATCH)
    trial.decide(trial.case(0, 3), MISMATCH, people=[3])
    assert trial.entries[3].stake == 0
    settled = trial.decide(trial.case(1, 3, ROOT), MISMATCH).event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.shortfall) == (1, 0, 0)
    closed = trial.release(trial.case(1, 3, ROOT)).event("AuditClosed")
    assert (closed.challenger, closed.treasury, closed.burned) == (0, 0, 0)


def test_dust_rounds_towards_the_fire() -> None:
    trial = Trial.in_session(stake_lamports=60_001)
    case = trial.accuse(0, 3)
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    assert settled.stake == 30_000
    taken = settled.stake + settled.unvested
    closed = trial.release(case).event("AuditClosed")
    bounty, treasury = taken * 5 // 100, taken * 45 // 100
    assert (closed.treasury, closed.burned) == (bounty + treasury, taken - bounty - treasury)


def test_two_cases_at_once_each_take_their_share_of_what_is_left() -> None:
    trial = Trial.in_session()
    stranger = trial.outsider("challenger")
    trial.challenge(stranger, 0, 3, PAYLOAD)
    trial.challenge(stranger, 0, 3, ROOT)
    assert (trial.entries[3].frozen, trial.entries[3].targets) == (2, 2)
    first = trial.decide(trial.case(0, 3, PAYLOAD), MISMATCH).event("CaseSettled")
    second = trial.decide(trial.case(0, 3, ROOT), MISMATCH).event("CaseSettled")
    assert (first.stake, second.stake) == (STAKE // 10, (STAKE - STAKE // 10) // 4)
    trial.release(trial.case(0, 3, PAYLOAD))
    withdraw = life.withdraw_stake(trial.at, trial.owners[3].pubkey(), 0)
    assert trial.refused(withdraw, trial.owners[3]) == "Frozen"
    trial.release(trial.case(0, 3, ROOT))
    assert trial.entries[3].frozen == 0


def test_slashing_oneself_through_a_second_identity_loses_money() -> None:
    trial = Trial.in_session()
    friend = trial.outsider("friend")
    before = trial.chain.accounts.balance(friend.pubkey())
    trial.challenge(friend, 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    rent = trial.chain.accounts.balance(trial.at.audit(0, 3, PAYLOAD))
    settled = trial.decide(case, MISMATCH).event("CaseSettled")
    trial.release(case)
    gained = trial.chain.accounts.balance(friend.pubkey()) - before
    assert rent > 0 and gained < settled.stake * 5 // 100
    assert gained > -BOND - 100_000


def test_without_three_people_a_bond_proves_nothing_and_comes_back() -> None:
    trial = Trial.in_session(4)
    friend, stranger = trial.owners[1], trial.outsider("challenger")
    early = trial.challenge_instruction(friend, 0, 3, PAYLOAD)
    assert trial.refused(early, friend) == "TooFewWitnesses"
    trial.challenge(stranger, 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    trial.send(life.leave_run(trial.at, friend.pubkey()), friend)
    trial.play(1)
    had = trial.entries[3]
    seated = trial.seat_jury(case)
    assert (seated.stage, seated.num_jurors) == (AuditStage.CASE_REVEAL, 0)
    settled = trial.settle_case(seated).event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.bond_returned) == (3, 0, BOND)
    assert (settled.reward_undone, settled.jailed) == (0, 0)
    now = trial.entries[3]
    assert (now.status, now.frozen, now.bucket_amount) == (had.status, 0, had.bucket_amount)
    assert trial.release(case).event("AuditClosed").burned == 0


def test_without_three_people_whom_three_seats_accused_is_excluded_and_not_slashed() -> None:
    trial = Trial.in_session(4)
    trial.judge(0, 3, [MISMATCH] * 3)
    leaver = trial.owners[1]
    trial.send(life.leave_run(trial.at, leaver.pubkey()), leaver)
    trial.play(1)
    pool = trial.run.reward_pool
    seated = trial.seat_jury(trial.case(0, 3))
    assert (seated.stage, seated.num_jurors) == (AuditStage.CASE_REVEAL, 0)
    settled = trial.settle_case(seated).event("CaseSettled")
    assert (settled.outcome, settled.stake, settled.bond_returned) == (4, 0, 0)
    assert settled.reward_undone == 1_000
    assert trial.run.reward_pool == pool + 1_000
    assert (settled.jailed, trial.entries[3].status) == (0b1000, Status.JAILED)
    assert trial.release(seated).event("AuditClosed").burned == 0


def test_a_challenger_that_takes_part_does_not_judge_its_own_case() -> None:
    trial = Trial.in_session(6)
    trial.challenge(trial.owners[1], 0, 3, PAYLOAD)
    seated = trial.seat_jury(trial.case(0, 3, PAYLOAD))
    assert sorted(juror.index for juror in seated.jurors) == [0, 2, 4, 5]


def test_a_case_whose_seed_is_lost_twice_is_not_proven() -> None:
    trial = Trial.in_session()
    stranger = trial.outsider("challenger")
    trial.challenge(stranger, 0, 3, PAYLOAD)
    case = trial.case(0, 3, PAYLOAD)
    assert trial.refused(trial.draw_instruction(case), trial.cranker) == "SeedTooEarly"
    names = []
    for _ in range(2):
        trial.chain.advance(600)
        names += trial.send(trial.draw_instruction(case), trial.cranker).names()
    assert names == ["CaseSeedRetargeted", "CaseSeedLost"]
    settled = trial.settle_case(trial.case(0, 3, PAYLOAD)).event("CaseSettled")
    assert (settled.outcome, settled.bond_returned, settled.paid) == (3, BOND, 0)
    assert trial.entries[3].frozen == 0


def test_a_challenger_that_can_hold_nothing_leaves_its_bond_to_the_treasury() -> None:
    """An emptied account would not be rent exempt: the settlement must not fail for it."""
    trial = Trial.in_session()
    poor = key("poor")
    rent_and_fees = 30_000_000
    trial.chain.airdrop(poor.pubkey(), rent_and_fees)
    trial.challenge(poor, 0, 3, PAYLOAD)
    left = trial.chain.accounts.balance(poor.pubkey()) - 5_000
    to = trial.cranker.pubkey()
    send = transfer(TransferParams(from_pubkey=poor.pubkey(), to_pubkey=to, lamports=left))
    trial.send(send, poor)
    assert trial.chain.accounts.balance(poor.pubkey()) == 0
    treasury = trial.run.treasury
    settled = trial.decide(trial.case(0, 3, PAYLOAD), MISMATCH).event("CaseSettled")
    assert (settled.bond_returned, settled.bond_treasury) == (0, BOND - settled.bond_spent)
    assert trial.run.treasury == treasury + settled.bond_treasury
    closed = trial.release(trial.case(0, 3, PAYLOAD)).event("AuditClosed")
    assert closed.challenger == 0 and closed.treasury == settled.stake // 2


def test_a_ticket_of_a_target_matures_later_by_the_pauses() -> None:
    trial = Trial.in_session()
    owner = trial.owners[3]
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), 7_000), owner)
    trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 7_000), owner)
    start = trial.slot
    authority = trial.authority
    trial.send(life.pause_run(trial.at, authority.pubkey()), authority)
    trial.open_audit(0, 3)
    trial.play(1)
    assert trial.run.phase == Phase.PAUSED
    trial.chain.advance(50)
    resume = life.resume_run(trial.at, authority.pubkey(), trial.run.round)
    trial.send(resume, authority)
    paused = trial.run.pause_used_slots
    withdraw = life.withdraw_stake(trial.at, owner.pubkey(), 0)
    trial.chain.advance(start + trial.params.unbond_slots + paused - 1 - trial.slot)
    assert trial.refused(withdraw, owner) == "NothingToWithdraw"
    trial.chain.advance(1)
    assert trial.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000


@pytest.mark.parametrize("kind", [WORK, PAYLOAD])
def test_a_case_outlives_the_ring(kind: int) -> None:
    trial = Trial.in_session(12, 1, keep_rounds=2, ring=4, max_rounds=30)
    if kind == WORK:
        trial.accuse(0, 3)
    else:
        trial.challenge(trial.outsider("challenger"), 0, 3, PAYLOAD)
    trial.seat_jury(trial.case(0, 3, kind))
    for _ in range(4):
        trial.play(1)
    assert trial.run.round == 5
    seated = trial.case(0, 3, kind)
    trial.poll(seated, [MISMATCH] * len(seated.jurors))
    assert trial.settle_case(seated).event("CaseSettled").outcome == 1


def test_nobody_is_paid_for_the_outcome_but_for_judging() -> None:
    """The fee of a juror is the same whether it convicts or acquits."""
    fees = []
    for verdict in (OK, MISMATCH):
        trial = Trial.in_session()
        case = trial.accuse(0, 3)
        fees.append(trial.decide(case, verdict).event("CaseSettled").fee)
    assert fees == [FEE, FEE]


def test_who_hides_from_the_second_committee_pays_a_refusal_that_never_grows() -> None:
    """Twice within 500 rounds: the word of judges is no second time and makes none."""
    trial = Trial.in_session(12, 2, **PATIENT)
    owner = trial.owners[3]
    trial.judge(1, 3, ALL_MISMATCH)
    case = trial.case(1, 3)
    pool, unvested = trial.run.reward_pool, sum(trial.entries[3].bucket_amount)
    landed = trial.decide(case, UNAVAILABLE)
    settled, fine = landed.event("CaseSettled"), landed.event("Penalised")
    assert (settled.outcome, settled.fault, settled.stake) == (5, 5, 0)
    assert (fine.index, fine.fault) == (3, 5)
    assert (fine.stake, fine.unvested) == (10 * REWARD, unvested)
    assert pool - trial.run.reward_pool == settled.paid.bit_count() * FEE, "no bond: the pool pays"
    now = trial.entries[3]
    assert (now.frozen, now.work_faults, now.openings_fault_round) == (0, 0, NONE)
    assert now.status == Status.INACTIVE, "less than the minimum at stake"
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), 10 * REWARD), owner)
    trial.play(1)
    trial.draw(2)
    trial.judge(2, 3, ALL_MISMATCH)
    fine = trial.decide(trial.case(2, 3), UNAVAILABLE).event("Penalised")
    assert (fine.fault, fine.stake) == (5, 10 * REWARD)
    assert (trial.run.num_convicted, trial.run.total_escrow) == (0, 0)


def test_a_hidden_round_was_not_paid_for_however_its_audit_had_ended() -> None:
    """Unproven by the seats, its reward is undone already; the refusal takes other rounds' only."""
    trial = Trial.in_session(12, 2)
    undone = trial.judge(1, 3, [OK, MISMATCH, OK, MISMATCH, INCONCLUSIVE]).event("AuditSettled")
    assert undone.reward_undone == REWARD
    unvested = sum(trial.entries[3].bucket_amount)
    trial.challenge(trial.outsider("challenger"), 1, 3, WORK)
    landed = trial.decide(trial.case(1, 3), UNAVAILABLE)
    assert landed.event("CaseSettled").reward_undone == 0
    assert landed.event("Penalised").unvested == unvested
    assert trial.round(1).unpaid >> 3 & 1


def test_two_thirds_must_have_asked_in_vain_and_silence_is_on_no_side() -> None:
    trial = Trial.in_session()
    seated = trial.seat_jury(trial.accuse(0, 3))
    assert len(seated.jurors) == 6
    trial.poll(seated, [UNAVAILABLE] * 3 + [None] * 3)
    trial.run_to(trial.case(0, 3).stage_end)
    landed = trial.settle_case(seated)
    settled = landed.event("CaseSettled")
    assert (settled.outcome, settled.fault, settled.paid.bit_count()) == (3, 0, 3)
    fined = [event.index for event in landed.events if event.name == "Penalised"]
    assert fined == [juror.index for juror in seated.jurors[3:]], "for silence, and nobody else"


@pytest.mark.parametrize(("kind", "subject"), [(PAYLOAD, NO_SUBJECT), (POSSESSION, 4)])
def test_nobody_owes_the_evidence_of_an_exact_case(kind: AuditKind, subject: int) -> None:
    trial = Trial.in_session()
    trial.challenge(trial.outsider("challenger"), 0, 3, kind, subject)
    landed = trial.decide(trial.case(0, 3, kind), UNAVAILABLE)
    assert landed.event("CaseSettled").outcome == 3
    assert trial.entries[3].stake == STAKE
