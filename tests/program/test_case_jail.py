"""Jail by the strikes of cases, and the ways around it."""

from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import POSSESSION, CaseDriver

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.view import Status

PATIENT = {"commit_slots": 1_000, "vesting_slots": 19_000, "unbond_slots": 19_000}
"""Cases end while the next round is still in its Commit."""
TARGET, SUBJECT = 3, 5


def test_who_is_jailed_while_it_waits_for_its_activation_is_not_activated() -> None:
    """Anyone may send `activate`, which asks for no jail: the vote for ready must be gone."""
    driver = CaseDriver.started(12, 3, **PATIENT)
    friend = driver.outsider("friend")
    cases = []
    for round_ in range(3):
        driver.challenge(friend, round_, TARGET, POSSESSION, SUBJECT)
        cases.append(driver.vote_all(driver.case(round_, TARGET, POSSESSION), MISMATCH))
    driver.settle_case(cases[0])
    driver.release(cases[0])
    driver.settle_case(cases[1])
    others = [index for index in range(12) if index != TARGET]
    for _ in range(3):
        driver.commit_all(others)
        driver.attest_all(others)
        driver.close()
    assert_fields(driver.entries[TARGET], status=Status.INACTIVE, strikes=2)
    driver.post_ready(TARGET)
    ready_round = driver.entries[TARGET].ready_round
    driver.settle_case(cases[2])
    assert driver.entries[TARGET].status == Status.JAILED
    driver.play()
    back = make.activate(driver.at, driver.cranker.pubkey(), TARGET, ready_round)
    assert driver.refused(back, driver.cranker) == "NotReady"
