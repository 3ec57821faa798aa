"""A new holder of an index is not liable for acts of the former holder."""

from support.program.audits import MISMATCH
from support.program.cases import PAYLOAD, ROOT, CaseDriver
from support.program.rounds import key

from troth_coordinator.chain import instructions as life
from troth_coordinator.rules.view import Status

SHORT_RING = {"ring": 4, "keep_rounds": 2, "pool": 0}
"""An index is free again after four rounds; without rewards nobody waits for them to vest."""


def succeed(driver: CaseDriver, index: int) -> None:
    """Somebody new takes the index of one who is gone."""
    new = key("newcomer", index)
    driver.chain.airdrop(new.pubkey(), 10**10)
    terms = life.JoinTerms(index, 3, new.pubkey(), "http://new")
    former = driver.owners[index].pubkey()
    driver.send(life.join_run(driver.at, new.pubkey(), terms, former), new)
    assert driver.entries[index].owner == bytes(new.pubkey())


def hand_over(driver: CaseDriver, index: int) -> None:
    """The holder leaves, the ring turns once, somebody new joins."""
    driver.leave(index)
    driver.play(driver.params.ring + 1)
    succeed(driver, index)


def test_a_new_holder_is_no_juror_in_the_place_of_an_old_witness() -> None:
    driver = CaseDriver.started(8, **SHORT_RING)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    hand_over(driver, 5)
    assert driver.entries[5].status == Status.PENDING and case.eligible >> 5 & 1
    seated = driver.seat_jury(case)
    assert {juror.index for juror in seated.jurors} == {0, 1, 2, 4, 6, 7}


def test_a_new_holder_gets_no_strike_for_what_the_old_one_vouched_for() -> None:
    driver = CaseDriver.started(8, **SHORT_RING)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    case = driver.case(0, 3, PAYLOAD)
    assert case.vouchers == 0xFF
    hand_over(driver, 5)
    settled = driver.decide(case, MISMATCH).event("CaseSettled")
    assert settled.vouchers == 0xFF & ~(1 << 5)
    assert [entry.strikes for entry in driver.entries[:8]] == [1, 1, 1, 1, 1, 0, 1, 1]


def test_a_new_holder_is_not_accused_of_what_the_old_one_did_before_it_was_barred() -> None:
    """A paused run keeps the round of the bar in the ring after the index is free again."""
    patient = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
    driver = CaseDriver.started(8, **SHORT_RING, **patient)
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
