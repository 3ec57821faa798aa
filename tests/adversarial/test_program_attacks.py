"""Attacks on audits, cases and stakes with nothing but transactions that the program accepts."""

import dataclasses

import pytest
from adversarial.judging_program import REWARD, TX_FEE, assert_untouched, balance
from program.audits import MISMATCH, OK, UNAVAILABLE
from program.cases import FEE, PAYLOAD, ROOT, STAKE, Trial
from program.rounds import key
from solders.instruction import Instruction

from troth_attestation.quorum import AuditOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import Status

LIE = b"l" * 32
"""A root that no replay gives."""
PATIENT = {"commit_slots": 1_000, "attest_slots": 200}
"""Phases that outlast what happens beside them."""
LONG = {"unbond_slots": 9_000, "vesting_slots": 9_000}


def leave(trial: Trial, index: int) -> None:
    owner = trial.owners[index]
    trial.send(life.leave_run(trial.at, owner.pubkey()), owner)


def second_life(trial: Trial, owner: int, index: int) -> Instruction:
    """An owner who left takes another index."""
    who = trial.owners[owner].pubkey()
    session = key("session of a second life").pubkey()
    return life.join_run(trial.at, who, life.JoinTerms(index, 3, session, "http://again"))


def convict(trial: Trial, round_: int, target: int) -> None:
    """Five seats accuse, and a committee agrees."""
    trial.judge(round_, target, [MISMATCH] * 5)
    trial.decide(trial.case(round_, target), MISMATCH, people=[target])


def bar(trial: Trial, target: int) -> None:
    for round_ in (1, 0):
        convict(trial, round_, target)
    assert trial.entries[target].status == Status.BARRED


def after_two_rounds() -> Trial:
    trial = Trial.in_session(12, 2)
    trial.draw(0)
    return trial


@pytest.mark.parametrize(("members", "is_member", "seat_after"), [(4, 1, 0), (3, 0, 0), (12, 0, 9)])
def test_nobody_is_jailed_by_a_bond_that_comes_back(
    members: int, is_member: bool, seat_after: int
) -> None:
    """Where fewer than three can judge, somebody accuses everybody, one after the other.

    Without a committee nobody hears that it is nonsense. If the accused were excluded and the bond
    went back, anybody could jail a whole run for fees alone: a small one, or any one in its first
    rounds, when no witness may be seated yet. Nor does a friend of the accused use up the one case
    that there may be. Threat T24.
    """
    trial = Trial.in_session(members, seat_after_rounds=seat_after)
    who = trial.owners[1] if is_member else trial.outsider("griefer")
    for victim in [index for index in range(members) if index != 1]:
        nonsense = trial.challenge_instruction(who, 0, victim, PAYLOAD)
        assert trial.refused(nonsense, who) == "TooFewWitnesses"
    assert (trial.run.total_bonds, trial.burned()) == (0, 0)
    assert_untouched(trial)


def test_a_griefer_that_empties_the_committee_gains_nothing() -> None:
    """It accuses when three can judge, and takes its own identity away before they are drawn.

    Threat T24.
    """
    trial = Trial.in_session(4)
    griefer = trial.outsider("griefer")
    before = balance(trial, griefer)
    trial.challenge(griefer, 0, 3, PAYLOAD)
    leave(trial, 1)
    trial.play(1)
    had = trial.entries[3]
    seated = trial.seat_jury(trial.case(0, 3, PAYLOAD))
    assert seated.num_jurors == 0
    trial.settle_case(seated)
    entry = trial.entries[3]
    assert (entry.status, entry.frozen) == (Status.ACTIVE, 0)
    assert entry.bucket_amount == had.bucket_amount
    trial.release(seated)
    assert before - balance(trial, griefer) == TX_FEE
    assert trial.burned() == 0
    assert_untouched(trial, [1])


def test_a_second_life_does_not_hide_the_stake_of_the_first() -> None:
    """A liar leaves and joins again at once, at another index, with a second stake.

    Its false root vote was not included, so that it holds no rewards that it would have to wait
    for. The ticket with its first stake would count for the new index alone: a case against the
    old one would find nothing, and the ticket would be paid. Threat T25.
    """
    trial = Trial(12)
    trial.start()
    for index in trial.trainers():
        trial.commit(index, LIE if index == 3 else None)
    trial.tick()
    leave(trial, 3)
    trial.attest_all()
    trial.close()
    assert trial.entries[3].status == Status.LEFT and trial.entries[3].unbonding == STAKE
    assert trial.refused(second_life(trial, 3, 12), trial.owners[3]) == "AlreadyJoined"
    stranger = trial.outsider("challenger")
    before = balance(trial, stranger)
    trial.challenge(stranger, 0, 3, ROOT)
    settled = trial.decide(trial.case(0, 3, ROOT), MISMATCH, people=[3]).event("CaseSettled")
    case = trial.case(0, 3, ROOT)
    assert (case.escrow, case.shortfall) == (STAKE // 4, 0)
    trial.release(case)
    assert trial.burned() == STAKE // 8
    fees = settled.paid.bit_count() * FEE
    assert balance(trial, stranger) == before - TX_FEE - fees + STAKE // 4 * 5 // 100
    assert_untouched(trial, [3])
    # Once no case about the first life can be opened any more, there may be a second one.
    trial.chain.advance(trial.params.unbond_slots)
    trial.send(second_life(trial, 3, 12), trial.owners[3])


def test_a_pause_does_not_vest_what_an_audit_may_still_take() -> None:
    """A cheat's friend pauses the run while its audit is under way, for as long as it may.

    The windows of the audit stand still. If rewards vested meanwhile, the cheat would claim them
    before its conviction could take them. Threat T32.
    """
    times = {"unbond_slots": 9_000, "max_pause_slots": 9_000}
    trial = Trial.in_session(12, 2, **times)
    trial.draw(0)
    trial.post(0, 3)
    boss, cheat = trial.authority, trial.owners[3]
    trial.send(life.pause_run(trial.at, boss.pubkey()), boss)
    trial.play(1)
    earned = sum(trial.entries[3].bucket_amount)
    trial.chain.advance(trial.params.max_pause_slots)
    claim = life.claim_reward(trial.at, cheat.pubkey())
    assert trial.refused(claim, cheat) == "NothingToClaim"
    resume = life.resume_run(trial.at, boss.pubkey(), trial.run.round)
    trial.send(resume, boss)
    trial.hear(0, 3, [MISMATCH] * 3)
    trial.extend(0, 3)
    trial.hear(0, 3, [MISMATCH] * 2)
    trial.settle(0, 3)
    trial.decide(trial.case(0, 3), MISMATCH)
    assert trial.case(0, 3).escrow >= STAKE // 2 + earned
    assert trial.burned() == 0
    assert_untouched(trial, [3])


def test_nobody_is_slashed_twice_for_one_fault() -> None:
    """A case is closed once no other can be opened about the same vote; then the authority makes
    the window for cases longer, and the challenger comes again. Threat T24, T32.
    """
    times = {"case_slots": 300, **PATIENT, **LONG}
    trial = Trial.in_session(12, 1, rounds_per_epoch=4, param_delay_slots=1, **times)
    stranger = trial.outsider("challenger")
    trial.challenge(stranger, 0, 3, ROOT)
    trial.decide(trial.case(0, 3, ROOT), MISMATCH)
    trial.release(trial.case(0, 3, ROOT))
    had = balance(trial, stranger)
    assert trial.entries[3].stake == STAKE - STAKE // 4
    longer = dataclasses.replace(trial.run.params, case_slots=2_000)
    update = life.update_params(trial.at, trial.authority.pubkey(), longer)
    assert trial.refused(update, trial.authority) == "ImmutableParameter"
    again = trial.challenge_instruction(stranger, 0, 3, ROOT)
    assert trial.refused(again, stranger) == "CaseWindowOver"
    assert (balance(trial, stranger), trial.run.total_bonds) == (had, 0)
    assert trial.burned() == STAKE // 8
    assert_untouched(trial, [3])


def test_a_bar_ends_only_with_a_conviction_that_set_it() -> None:
    """A cheat who was barred for work is convicted of a vote too, and that one is reversed.

    Threat T64.
    """
    trial = after_two_rounds()
    trial.challenge(trial.outsider("challenger"), 1, 3, ROOT)
    bar(trial, 3)
    trial.decide(trial.case(1, 3, ROOT), MISMATCH, people=[3])
    vote = trial.case(1, 3, ROOT)
    trial.appeal(vote)
    trial.run_to(vote.appeal_end)
    trial.reverse(vote)
    trial.release(vote, people=[3])
    assert trial.entries[3].status == Status.BARRED
    back = second_life(trial, 3, 12)
    assert trial.refused(back, trial.owners[3]) == "ParticipantBarred"
    assert trial.burned() == 0
    assert_untouched(trial, [3])


def test_one_that_was_barred_cannot_leave_and_lose_the_way_back() -> None:
    """It would be gone as one who left, and the reversal would find no bar to lift.

    Threat T64.
    """
    trial = after_two_rounds()
    bar(trial, 3)
    leaving = life.leave_run(trial.at, trial.owners[3].pubkey())
    assert trial.refused(leaving, trial.owners[3]) == "AlreadyLeaving"
    case = trial.case(0, 3)
    trial.appeal(case)
    trial.run_to(case.appeal_end)
    trial.reverse(case)
    trial.release(case, people=[3])
    assert trial.entries[3].status == Status.LEFT
    assert trial.burned() == 0
    assert_untouched(trial, [3])


def test_a_cheat_without_anything_left_does_not_fill_the_cap_for_the_rich() -> None:
    """Two colluders cheat. One of them is soon barred, with cases on all of its rounds still open.

    Were each of its convictions counted, one of them at the start of every epoch would keep the
    case of the other one waiting until the run ends. Threat T58.
    """
    trial = Trial.in_session(5, 3, rounds_per_epoch=1, **PATIENT, **LONG)
    poor, rich = 3, 4
    cases = []
    for round_ in (0, 1):
        trial.draw(round_)
    for round_, target in ((0, poor), (1, poor), (2, poor), (2, rich)):
        trial.judge(round_, target, [MISMATCH] * 4)
        case = trial.seat_jury(trial.case(round_, target))
        trial.poll(case, [MISMATCH] * len(case.jurors))
        cases.append(case)
    *fillers, wanted = cases
    for case in fillers:
        trial.settle_case(case, people=[poor])
        if case is not fillers[-1]:
            assert trial.refused(trial.settle_case_instruction(wanted), trial.cranker) == (
                "SlashCapReached"
            )
            trial.play(1)
    assert trial.entries[poor].status == Status.BARRED
    trial.settle_case(wanted)
    assert trial.entries[rich].stake == STAKE // 2
    assert trial.burned() == 0, "everything waits in escrow"
    assert_untouched(trial, [poor, rich])


def test_an_old_pause_does_not_hold_a_ticket_that_was_opened_after_it() -> None:
    """Somebody sees to it that an audit of a participant is open when its ticket matures.

    The tickets of a target wait for the pauses that made its audits longer, not for all pauses
    that there ever were. Threat T25.
    """
    trial = Trial(6)
    boss, owner = trial.authority, trial.owners[3]
    trial.send(life.pause_run(trial.at, boss.pubkey()), boss)
    trial.chain.advance(500)
    trial.send(life.resume_run(trial.at, boss.pubkey(), 0), boss)
    trial.send(life.top_up_stake(trial.at, owner.pubkey(), 7_000), owner)
    trial.send(life.withdraw_stake(trial.at, owner.pubkey(), 7_000), owner)
    matures = trial.slot + trial.params.unbond_slots
    trial.chain.advance(trial.params.unbond_slots - 100)
    trial.start()
    trial.play(1)
    trial.draw(0)
    trial.open_audit(0, 3)
    withdraw = life.withdraw_stake(trial.at, owner.pubkey(), 0)
    assert trial.refused(withdraw, owner) == "NothingToWithdraw"
    trial.chain.advance(matures - trial.slot)
    assert trial.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000
    assert_untouched(trial)


def test_three_seats_never_take_more_than_ten_rewards_by_their_word_alone() -> None:
    """Three colluders sit in every audit of an honest participant, and say that it serves nothing.

    `unavailable` is no fault and has no second instance: the second time would cost half the stake
    and the third all of it, without a committee, an escrow or an appeal. Threat T23.
    """
    trial = Trial.in_session(12, 3, **PATIENT, **LONG)
    for round_ in (0, 1):
        trial.draw(round_)
    for round_ in (0, 1, 2):
        trial.judge(round_, 3, [UNAVAILABLE] * 3 + [OK] * 2)
        assert trial.case(round_, 3).outcome == AuditOutcome.NO_OPENINGS
    entry = trial.entries[3]
    assert (entry.stake, entry.work_faults) == (STAKE - 30 * REWARD, 0)
    assert entry.status == Status.INACTIVE
    assert trial.burned() == (30 + 3) * REWARD // 2, "half of that and of three unvested rewards"
    assert_untouched(trial, [3])


def test_one_outage_is_one_refusal() -> None:
    """Somebody cuts a participant off while two of its rounds are sampled and not yet opened.

    A second refusal costs half of the stake: it is one only if the round was opened after the
    first one had been punished. Threat T36.
    """
    trial = Trial.in_session(12, 2)
    trial.draw(0)
    for round_ in (0, 1):
        trial.open_audit(round_, 3)
    trial.run_to(max(trial.of(round_, 3).stage_end for round_ in (0, 1)))
    for round_ in (0, 1):
        assert trial.settle(round_, 3).event("Penalised").fault == 5
    assert trial.entries[3].stake == STAKE - 20 * REWARD
    assert trial.burned() == (20 + 2) * REWARD // 2, "half of that and of two unvested rewards"
    assert_untouched(trial, [3])
