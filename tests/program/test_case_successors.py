"""A new holder of an index is not liable for acts of the former holder."""

from support.program.audits import MISMATCH
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.joining import join, newcomer, outlast_juries, terms
from support.program.rounds import key

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.audit_view import AuditView
from troth_coordinator.rules.membership import is_past_juries
from troth_coordinator.rules.params_checks import jury_duty_slots
from troth_coordinator.rules.view import Status

SHORT_RING = {"ring": 4, "keep_rounds": 2, "pool": 0}
"""An index is free again after four rounds; without rewards nobody waits for them to vest."""
PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}


def succeed(driver: CaseDriver, index: int) -> None:
    """Somebody new takes the index of one who is gone."""
    new = key("newcomer", index)
    driver.chain.airdrop(new.pubkey(), 10**10)
    terms = life.JoinTerms(index, 3, new.pubkey(), "http://new")
    former = driver.owners[index].pubkey()
    driver.send(life.join_run(driver.at, new.pubkey(), terms, former), new)
    assert driver.entries[index].owner == bytes(new.pubkey())


def hand_over(driver: CaseDriver, index: int) -> None:
    """The holder leaves, its time as a juror passes, somebody new joins."""
    driver.leave(index)
    driver.play(driver.params.ring + 1)
    outlast_juries(driver)
    succeed(driver, index)


def test_an_index_is_not_given_away_while_its_holder_may_be_drawn_for_a_jury() -> None:
    driver = CaseDriver.started(8, **SHORT_RING, **PATIENT, max_rounds=40)
    driver.leave(5)
    last = driver.entries[5].last_action
    driver.play(driver.params.ring + 1)
    friend = newcomer(driver)
    attempt = join(driver, friend, terms(5, session=friend.pubkey()))
    assert driver.refused(attempt, friend) == "IndexTaken"
    assert not is_past_juries(driver.entries[5], driver.params, driver.slot)
    until = last + jury_duty_slots(driver.params)
    while driver.slot + 900 < until:
        driver.chain.advance(900)
        driver.play()
    driver.chain.advance(until - driver.slot)
    assert driver.refused(attempt, friend) == "IndexTaken"
    driver.chain.advance()
    assert is_past_juries(driver.entries[5], driver.params, driver.slot)
    driver.send(attempt, friend)
    assert driver.entries[5].owner == bytes(friend.pubkey())


def late_jury(driver: CaseDriver, case: AuditView) -> AuditView:
    """The jury of a case whose seed nobody froze in time."""
    return driver.seat_jury(driver.seat_jury(case))


def test_a_new_holder_is_no_juror_in_the_place_of_an_old_witness() -> None:
    """Nobody draws the jury until the witness owes none any more, and somebody else is there."""
    driver = CaseDriver.started(8, **SHORT_RING, **PATIENT, max_rounds=40)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    hand_over(driver, 5)
    assert driver.entries[5].status == Status.PENDING and case.eligible >> 5 & 1
    seated = late_jury(driver, case)
    assert {juror.index for juror in seated.jurors} == {0, 1, 2, 4, 6, 7}


def test_a_new_holder_gets_no_strike_for_what_the_old_one_vouched_for() -> None:
    driver = CaseDriver.started(8, **SHORT_RING, **PATIENT, max_rounds=40)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    assert case.vouchers == 0xFF
    hand_over(driver, 5)
    seated = late_jury(driver, case)
    driver.take_votes(seated, [MISMATCH] * len(seated.jurors))
    settled = driver.settle_case(seated).event("CaseSettled")
    assert settled.vouchers == 0xFF & ~(1 << 5)
    assert [entry.strikes for entry in driver.entries[:8]] == [1, 1, 1, 1, 1, 0, 1, 1]


def test_a_new_holder_is_not_accused_of_what_the_old_one_did_before_it_was_barred() -> None:
    """A paused run keeps the round of the bar in the ring after the index is free again."""
    driver = CaseDriver.started(8, **SHORT_RING, **PATIENT)
    driver.offend(3)
    barred_in = driver.run.round
    driver.commit(3)
    driver.bar(3)
    driver.release(driver.case(barred_in - 1, 3))
    driver.play_rest()
    driver.play(driver.params.ring - 2)
    boss = driver.authority
    driver.send(life.pause_run(driver.at, boss.pubkey()), boss)
    driver.play(1)
    succeed(driver, 3)
    held = driver.round(barred_in)
    assert held.committed >> 3 & 1 and driver.run.round == barred_in + driver.params.ring
    stranger = driver.outsider("challenger")
    for kind in (ROOT, PAYLOAD):
        claim = driver.challenge_instruction(stranger, barred_in, 3, kind)
        assert driver.refused(claim, stranger) == "CaseWithoutSubject"
    other = driver.challenge_instruction(stranger, barred_in, 4, ROOT)
    driver.send(other, stranger)
