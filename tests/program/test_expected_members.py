"""Half of the members that are expected must be there, or no round opens and no root is adopted."""

from collections.abc import Callable, Sequence

import pytest
from support.fields import assert_fields
from support.program.cases import CaseDriver
from support.program.joining import newcomer
from support.program.rounds import SOL, RoundDriver

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.expected_members import ExpectedMembers
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

LIARS, HONEST = (0, 1, 2), tuple(range(3, 12))
OPEN = {"min_members": 3, "capacity": 16, "audit_cap": 4}


def expected(driver: RoundDriver) -> int:
    return ExpectedMembers.of(driver.run).number


def twelve(**changes: int | str) -> RoundDriver:
    driver = RoundDriver(12, **{**OPEN, **changes})
    driver.start()
    driver.play(2)
    return driver


def cut_off(
    driver: RoundDriver, staying: Sequence[int], in_second: Callable[[], None] = lambda: None
) -> None:
    """Play two rounds without the others, which become inactive at the second close."""
    for acts in (lambda: None, in_second):
        driver.commit_all(staying)
        driver.attest_all(staying)
        acts()
        driver.run_out()
        driver.chain.advance(driver.params.close_grace_slots + 1)
        driver.close_void()


def test_a_minority_that_is_left_by_an_outage_plays_no_round():
    driver = twelve()
    root = driver.run.root
    cut_off(driver, LIARS)
    assert {driver.entries[index].status for index in HONEST} == {Status.INACTIVE}
    assert_fields(driver.run, phase=Phase.HALTED, root=root)
    assert expected(driver) == 12


def test_a_minority_begins_nothing_before_half_are_back():
    driver = twelve()
    cut_off(driver, LIARS)
    driver.run_out()
    driver.advance_phase()
    for index in (*LIARS, 3, 4):
        driver.post_ready(index)
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.post_ready(5)
    driver.advance_phase()
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.COMMIT)
    assert expected(driver) == 12
    assert driver.members() == [*LIARS, 3, 4, 5]


def test_a_warmup_in_which_half_are_not_ready_begins_no_round():
    driver = twelve()
    cut_off(driver, LIARS)
    driver.run_out()
    driver.advance_phase()
    newcomers = [driver.add() for _ in range(3)]
    driver.advance_phase()
    for index in LIARS:
        driver.post_ready(index)
    driver.run_out()
    driver.advance_phase()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    assert {driver.entries[index].status for index in newcomers} == {Status.INACTIVE}


def test_half_of_the_members_go_on():
    driver = twelve()
    cut_off(driver, range(6))
    assert_fields(driver.run, phase=Phase.COMMIT)
    assert expected(driver) == 12
    assert driver.members() == list(range(6))


def test_nobody_waits_for_those_who_left():
    driver = twelve()
    for index in HONEST:
        driver.leave(index)
    driver.play(1)
    assert_fields(driver.run, phase=Phase.COMMIT)
    assert expected(driver) == 3
    assert driver.members() == list(LIARS)


def test_nobody_waits_for_those_who_left_while_the_run_was_halted():
    driver = twelve()
    cut_off(driver, LIARS)
    for index in HONEST:
        driver.leave(index)
    assert expected(driver) == len(LIARS)
    driver.run_out()
    driver.advance_phase()
    for index in LIARS:
        driver.post_ready(index)
    driver.advance_phase()
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.COMMIT)


def test_nobody_waits_for_those_who_left_after_they_were_inactive():
    driver = twelve()
    cut_off(driver, range(6))
    for index in range(6, 12):
        driver.leave(index)
    assert expected(driver) == 6
    driver.leave(5)
    driver.play(1)
    assert_fields(driver.run, phase=Phase.COMMIT)
    assert driver.members() == list(range(5))


def test_nobody_waits_for_the_barred():
    driver = CaseDriver.started(8, commit_slots=1_000, vesting_slots=9_000, unbond_slots=9_000)
    driver.offend(3)
    driver.commit(3)
    driver.bar(3)
    assert expected(driver) == 7


def test_those_who_were_members_of_no_round_lower_nothing_when_they_leave():
    """Identities that come and go during an outage would leave a quarter alone. Threat T150."""
    driver = RoundDriver(16, **{**OPEN, "capacity": 32})
    driver.start()
    driver.play(2)
    comers = [driver.add() for _ in range(8)]
    for index in comers:
        driver.post_ready(index)
    driver.play(1)

    def come_and_go() -> None:
        for index in comers:
            driver.activate(index)
            driver.leave(index)

    cut_off(driver, range(4), come_and_go)
    assert_fields(driver.run, phase=Phase.HALTED)
    assert expected(driver) == 16


def test_one_member_after_another_that_comes_and_goes_lowers_nothing():
    driver = twelve()
    cut_off(driver, range(6))
    for _ in range(3):
        comer = driver.add()
        driver.post_ready(comer)
        driver.play(1)
        driver.activate(comer)
        driver.leave(comer)
        driver.play(1)
    assert expected(driver) == 12


def test_a_crowd_that_comes_and_goes_pushes_nobody_out():
    """Three of twelve are cut off, and a round with four others is fuller. Threat T150."""
    driver = twelve()
    cut_off(driver, range(9))
    comers = [driver.add() for _ in range(4)]
    for index in comers:
        driver.post_ready(index)
    driver.play(1)
    for index in comers:
        driver.activate(index)
    driver.play(1)
    assert len(driver.members()) == 13
    for index in comers:
        driver.leave(index)
    driver.play(1)
    assert expected(driver) == 12


def test_fewer_than_a_quarter_of_the_expected_adopt_no_root():
    """Half are cut off for two rounds, and most of the others for one Commit. Threat T150."""
    driver = RoundDriver(16, **OPEN)
    driver.start()
    driver.play(2)
    cut_off(driver, range(8))
    lie = b"L" * 32
    for index in LIARS:
        driver.commit(index, lie)
    for index in (3, 4):
        driver.commit(index)
    driver.run_out()
    driver.advance_phase()
    driver.attest_all(range(5))
    assert driver.refused(driver.close_instruction(lie), driver.cranker) == "CandidateNotCanonical"


def test_an_epoch_expects_those_of_the_one_before():
    """Else two cuts around the end of an epoch would leave a quarter alone. Threat T150."""
    driver = RoundDriver(12, **OPEN, rounds_per_epoch=5)
    driver.start()
    driver.play(2)
    cut_off(driver, range(6))
    driver.play(1)
    assert_fields(driver.run, round=5, phase=Phase.COMMIT)
    assert expected(driver) == 12
    cut_off(driver, LIARS)
    assert_fields(driver.run, round=7, phase=Phase.HALTED)
    assert expected(driver) == 12


def test_after_a_whole_epoch_nobody_waits_for_those_who_went():
    driver = RoundDriver(12, **OPEN, rounds_per_epoch=4)
    driver.start()
    driver.play(1)
    cut_off(driver, range(6))
    driver.play(5)
    assert_fields(driver.run, round=8, phase=Phase.COMMIT)
    assert expected(driver) == 6


@pytest.mark.parametrize(("num_there", "refusal"), [(4, "NothingDue"), (5, "")])
def test_half_of_those_admitted_may_begin_a_run_and_fewer_may_not(num_there, refusal):
    driver = admitted(10, num_there)
    assert driver.attempt(driver.tick_instruction(), driver.cranker) == refusal


def test_the_authority_may_begin_with_fewer_than_half():
    driver = admitted(10, 4)
    authority = driver.authority
    tick = make.advance_phase(driver.at, authority.pubkey(), driver.run.round)
    driver.send(tick, authority)
    assert_fields(driver.run, phase=Phase.WARMUP)
    assert expected(driver) == 4
    for index in range(4):
        driver.post_ready(index)
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.COMMIT)
    assert expected(driver) == 4


def test_after_the_authority_began_those_who_were_there_are_expected():
    """Else whoever is ready first would begin alone. Threat T150."""
    driver = admitted(30, 10)
    authority = driver.authority
    driver.send(make.advance_phase(driver.at, authority.pubkey(), driver.run.round), authority)
    for index in LIARS:
        driver.post_ready(index)
    driver.run_out()
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.WAITING_FOR_MEMBERS)
    assert expected(driver) == 10


def admitted(num: int, num_there: int) -> RoundDriver:
    """A run that has admitted so many owners, of whom some have joined."""
    driver = RoundDriver(num_there, **OPEN, admission="allowlist")
    for number in range(num - num_there):
        owner = newcomer(driver, ("admitted", number), 2 * SOL).pubkey()
        driver.send(make.admit(driver.at, driver.authority.pubkey(), owner), driver.authority)
    assert expected(driver) == num
    return driver
