"""Attacks on audits, cases and stakes with nothing but transactions that the program accepts."""

import dataclasses

import pytest
from solders.instruction import Instruction
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK
from support.program.cases import BOND, FEE, PAYLOAD, ROOT, STAKE, CaseDriver
from support.program.losses import TX_FEE, assert_untouched, balance, fined_lamports, penalties
from support.program.rounds import key

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import Status

LIE = b"l" * 32
"""A root that no replay gives."""
PATIENT = {"commit_slots": 1_000, "attest_slots": 200}
"""Phases that outlast what happens beside them."""
LONG = {"unbond_slots": 9_000, "vesting_slots": 9_000}


def second_life(driver: CaseDriver, owner: int, index: int) -> Instruction:
    """An owner who left takes another index."""
    who = driver.owners[owner].pubkey()
    session = key("session of a second life").pubkey()
    return life.join_run(driver.at, who, life.JoinTerms(index, 3, session, "http://again"))


def after_an_offence(target: int) -> CaseDriver:
    """The target was convicted of work once, came back, and is in the newest closed round."""
    driver = CaseDriver.started(12, **PATIENT, **LONG)
    driver.offend(target)
    return driver


@pytest.mark.parametrize(("members", "is_member", "seat_after"), [(4, 1, 0), (3, 0, 0)])
def test_nobody_is_jailed_by_a_bond_that_comes_back(
    members: int, is_member: bool, seat_after: int
) -> None:
    """Where fewer than three can judge, somebody accuses everybody, one after the other.

    Without a committee nobody can find that it is nonsense. Suppose that the accused were excluded
    and the bond went back. Then anybody could jail a whole run for fees alone: a small run, or any
    run in its first rounds, when no witness may be seated yet. Nor may a friend of the accused use
    up the one possible case. Threat T24.
    """
    driver = CaseDriver.started(members, seat_after_rounds=seat_after)
    who = driver.owners[1] if is_member else driver.outsider("griefer")
    for victim in [index for index in range(members) if index != 1]:
        nonsense = driver.challenge_instruction(who, 0, victim, PAYLOAD)
        assert driver.refused(nonsense, who) == "TooFewWitnesses"
    assert driver.run.total_bonds == 0
    assert driver.burned() == 0
    assert_untouched(driver)


def test_a_griefer_that_empties_the_jury_gains_nothing() -> None:
    """It accuses when three can judge, and takes its own identity away before they are drawn.

    It would leave two, who may judge nobody. But whoever was a witness in that round is drawn,
    whether it left or not: the two others acquit, and its silent identity pays. Threat T24, T70.
    """
    driver = CaseDriver.started(4)
    griefer = driver.outsider("griefer")
    before = balance(driver, griefer)
    driver.challenge(griefer, 0, 3, PAYLOAD)
    driver.leave(1)
    driver.play(1)
    seated = driver.seat_jury(driver.case(0, 3, PAYLOAD))
    jurors = [juror.index for juror in seated.jurors]
    assert sorted(jurors) == [0, 1, 2]
    driver.take_votes(seated, [None if index == 1 else OK for index in jurors])
    driver.run_to(driver.case(0, 3, PAYLOAD).stage_end)
    landed = driver.settle_case(seated, people=[1])
    assert_fields(landed.event("CaseSettled"), outcome=CaseOutcome.ACQUITTED, stake=0)
    (fine,) = penalties(landed)
    assert fine.index == 1
    assert fined_lamports(fine) == 2 * FEE
    driver.release(seated)
    assert before - balance(driver, griefer) == TX_FEE + BOND
    assert_untouched(driver, [1])


def test_a_second_life_does_not_hide_the_stake_of_the_first() -> None:
    """A liar leaves and joins again at once, at another index, with a second stake.

    Its false root vote was not included, so that it holds no rewards that it would have to wait
    for. The ticket with its first stake would count for the new index alone: a case against the
    old one would find nothing, and the ticket would be paid. Threat T25.
    """
    driver = CaseDriver(12)
    driver.start()
    for index in driver.trainers():
        driver.commit(index, LIE if index == 3 else None)
    driver.advance_phase()
    driver.leave(3)
    driver.attest_all()
    driver.close()
    assert driver.entries[3].status == Status.LEFT and driver.entries[3].unbonding == STAKE
    assert driver.refused(second_life(driver, 3, 12), driver.owners[3]) == "AlreadyJoined"
    stranger = driver.outsider("challenger")
    before = balance(driver, stranger)
    driver.challenge(stranger, 0, 3, ROOT)
    settled = driver.decide(driver.case(0, 3, ROOT), MISMATCH, people=[3]).event("CaseSettled")
    case = driver.case(0, 3, ROOT)
    assert_fields(case, escrow=STAKE // 4 - settled.juror_fees, shortfall=0)
    assert settled.juror_fees == settled.paid.bit_count() * FEE
    bounty = STAKE // 4 * 5 // 100
    closed = driver.release(case).event("AuditClosed")
    burned = STAKE // 4 - bounty - settled.juror_fees
    assert_fields(closed, challenger=bounty, burned=burned)
    assert driver.burned() == closed.burned
    assert balance(driver, stranger) == before - TX_FEE + closed.challenger
    assert_untouched(driver, [3])
    # Once no case about the first life can be opened any more, there may be a second one.
    driver.chain.advance(driver.params.unbond_slots)
    driver.send(second_life(driver, 3, 12), driver.owners[3])


def test_a_pause_does_not_vest_what_an_audit_may_still_take() -> None:
    """A cheat's friend pauses the run while its audit is under way, for as long as it may.

    The windows of the audit stand still. If rewards vested meanwhile, the cheat would claim them
    before its conviction could take them. Threat T32.
    """
    times = {"unbond_slots": 18_000, "max_pause_slots": 9_000}
    driver = CaseDriver.started(12, 2, **times)
    driver.draw(0)
    driver.post(0, 3)
    boss, cheat = driver.authority, driver.owners[3]
    driver.send(life.pause_run(driver.at, boss.pubkey()), boss)
    driver.play(1)
    earned = sum(driver.entries[3].bucket_amount)
    driver.chain.advance(driver.params.max_pause_slots)
    claim = life.claim_reward(driver.at, cheat.pubkey())
    assert driver.refused(claim, cheat) == "NothingToClaim"
    resume = life.resume_run(driver.at, boss.pubkey(), driver.run.round)
    driver.send(resume, boss)
    driver.take_verdicts(0, 3, [MISMATCH] * 3)
    driver.extend(0, 3)
    driver.take_verdicts(0, 3, [MISMATCH] * 2)
    driver.settle(0, 3)
    driver.decide(driver.case(0, 3), MISMATCH)
    case = driver.case(0, 3)
    assert case.escrow + case.juror_fees >= STAKE // 2 + earned
    assert driver.burned() == 0
    assert_untouched(driver, [3])


def test_nobody_is_slashed_twice_for_one_fault() -> None:
    """A case is closed once no other can be opened about the same vote; then the authority makes
    the window for cases longer, and the challenger comes again. Threat T24, T32.
    """
    times = {"case_slots": 300, **PATIENT, **LONG}
    driver = CaseDriver.started(12, 1, rounds_per_epoch=4, param_delay_slots=1, **times)
    stranger = driver.outsider("challenger")
    driver.challenge(stranger, 0, 3, ROOT)
    driver.decide(driver.case(0, 3, ROOT), MISMATCH)
    closed = driver.release(driver.case(0, 3, ROOT)).event("AuditClosed")
    had = balance(driver, stranger)
    assert driver.entries[3].stake == STAKE - STAKE // 4
    longer = dataclasses.replace(driver.run.params, case_slots=2_000)
    update = life.update_params(driver.at, driver.authority.pubkey(), longer)
    assert driver.refused(update, driver.authority) == "ImmutableParameter"
    again = driver.challenge_instruction(stranger, 0, 3, ROOT)
    assert driver.refused(again, stranger) == "CaseWindowOver"
    assert balance(driver, stranger) == had
    assert driver.run.total_bonds == 0
    assert driver.burned() == closed.burned
    assert_untouched(driver, [3])


def test_a_bar_ends_only_with_a_conviction_that_set_it() -> None:
    """A cheat who was barred for work is convicted of a vote too, and that one is reversed.

    Threat T64.
    """
    driver = after_an_offence(3)
    last, before = driver.run.round - 1, driver.burned()
    driver.challenge(driver.outsider("challenger"), last, 3, ROOT)
    driver.bar(3)
    driver.decide(driver.case(last, 3, ROOT), MISMATCH, people=[3])
    vote = driver.case(last, 3, ROOT)
    driver.appeal(vote)
    driver.run_to(vote.appeal_end)
    driver.reverse(vote)
    driver.release(vote, people=[3])
    assert driver.entries[3].status == Status.BARRED
    back = second_life(driver, 3, 12)
    assert driver.refused(back, driver.owners[3]) == "ParticipantBarred"
    assert driver.burned() == before
    assert_untouched(driver, [3])


def test_one_that_was_barred_cannot_leave_and_lose_the_way_back() -> None:
    """It would be gone as one who left, and the reversal would find no bar to lift.

    Threat T64.
    """
    driver = after_an_offence(3)
    last, before = driver.run.round - 1, driver.burned()
    driver.bar(3)
    leaving = life.leave_run(driver.at, driver.owners[3].pubkey())
    assert driver.refused(leaving, driver.owners[3]) == "AlreadyLeaving"
    case = driver.case(last, 3)
    driver.appeal(case)
    driver.run_to(case.appeal_end)
    driver.reverse(case)
    driver.release(case, people=[3])
    assert driver.entries[3].status == Status.LEFT
    assert driver.burned() == before
    assert_untouched(driver, [3])


def test_a_cheat_without_anything_left_does_not_fill_the_cap_for_the_rich() -> None:
    """Two colluders cheat. One of them has nothing more to lose, and is to be convicted first.

    It could keep the case of the rich one waiting until the run ends, if it used up the cap of
    every epoch. But a barred participant uses up none. Threat T58.
    """
    driver = CaseDriver.started(5, rounds_per_epoch=1, **PATIENT, **LONG)
    poor, rich = 3, 4
    driver.offend(poor)
    last, before = driver.run.round - 1, driver.burned()
    filler, wanted = (driver.voted(last, target) for target in (poor, rich))
    driver.settle_case(filler, people=[poor])
    assert driver.entries[poor].status == Status.BARRED
    assert driver.refused(driver.settle_case_instruction(wanted), driver.cranker) == (
        "SlashCapReached"
    )
    driver.play(1)
    driver.challenge(driver.outsider("friend"), last, poor, ROOT)
    driver.decide(driver.case(last, poor, ROOT), MISMATCH, people=[poor])
    driver.settle_case(wanted)
    assert driver.entries[rich].stake == STAKE // 2
    assert driver.burned() == before, "everything waits in escrow"
    assert_untouched(driver, [poor, rich])


def test_an_old_pause_does_not_hold_a_ticket_that_was_opened_after_it() -> None:
    """Somebody sees to it that an audit of a participant is open when its ticket matures.

    Tickets count on the run clock, so a pause from before cannot lengthen them, nor can an audit.
    Threat T25.
    """
    driver = CaseDriver(6)
    boss, owner = driver.authority, driver.owners[3]
    driver.send(life.pause_run(driver.at, boss.pubkey()), boss)
    driver.chain.advance(500)
    driver.send(life.resume_run(driver.at, boss.pubkey(), 0), boss)
    driver.send(life.top_up_stake(driver.at, owner.pubkey(), 7_000), owner)
    driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 7_000), owner)
    matures = driver.slot + driver.params.unbond_slots
    driver.chain.advance(driver.params.unbond_slots - 100)
    driver.start()
    driver.play(1)
    driver.draw(0)
    driver.open_audit(0, 3)
    withdraw = life.withdraw_stake(driver.at, owner.pubkey(), 0)
    assert driver.refused(withdraw, owner) == "NothingToWithdraw"
    driver.chain.advance(matures - driver.slot)
    assert driver.send(withdraw, owner).event("StakeWithdrawn").lamports == 7_000
    assert_untouched(driver)
