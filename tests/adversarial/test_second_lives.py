"""Attacks by those who leave and come back: a record outlives the membership.

The record of an owner moves to its account when the index is given away, and to its next index when
it joins again.
"""

import pytest
from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import PAYLOAD, CaseDriver
from support.program.chain import Landed
from support.program.joining import (
    SLOW_ROUNDS,
    join,
    let_vest,
    newcomer,
    outlast_juries,
    participant,
    terms,
)
from support.program.rounds import SOL, RoundDriver, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NO_INDEX, NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import EntryFlag, Status

CHEAT, PLACE = 3, 12
RING = 6
"""An index is free again after so many rounds."""
LONG = {**SLOW_ROUNDS, "ring": RING, "max_rounds": 200, "checkpoint_every": 100}


def leave(driver: RoundDriver, index: int) -> None:
    """Leave; the others finish the open round."""
    driver.leave(index)
    others = [one for one in driver.trainers() if one != index]
    driver.commit_all(others)
    driver.attest_all(others)
    driver.close()
    assert driver.entries[index].status == Status.LEFT
    driver.chain.advance()


def come_back(driver: RoundDriver, index: int, place: int) -> Landed:
    """The owner of `index` joins again at `place`, with a new session key."""
    owner, session = driver.owners[index], key("again", index)
    driver.chain.airdrop(session.pubkey(), SOL)
    if place == len(driver.owners):
        driver.owners.append(owner)
        driver.sessions.append(session)
    else:
        driver.sessions[place] = session
    return driver.send(join(driver, owner, terms(place, session=session.pubkey())), owner)


def convicted(**changes: int) -> CaseDriver:
    """A run whose cheat was convicted once, and has left."""
    driver = CaseDriver.started(12, **{**LONG, **changes})
    driver.convict(0, CHEAT)
    assert driver.entries[CHEAT].work_faults == 1
    leave(driver, CHEAT)
    driver.release(driver.case(0, CHEAT), people=[CHEAT])
    return driver


ELSEWHERE = pytest.mark.long(reason="the same at another index")


@pytest.mark.parametrize("place", [CHEAT, pytest.param(PLACE, marks=ELSEWHERE)])
def test_a_convicted_owner_that_comes_back_is_convicted_for_the_second_time(place: int) -> None:
    """Half of its stake is gone. It leaves, joins again with a fresh stake, and cheats again.

    With a clean record each conviction would be the first, half a stake for ever. The second one
    takes everything and bars it, whichever index it has now. Threat T94.
    """
    driver = convicted()
    driver.play(RING)
    outlast_juries(driver)
    landed = come_back(driver, CHEAT, place)
    moved = landed.event("RecordMoved")
    assert_fields(moved, index=place, is_in_force=True, work_faults=1)
    assert driver.entries[place].work_faults == 1
    assert participant(driver, driver.owners[CHEAT]).record.work_faults == 0, "in one place only"
    driver.post_ready(place)
    driver.play(1)
    driver.activate(place)
    driver.play(1)
    round_ = driver.run.round
    driver.play(1)
    driver.draw(round_)
    driver.convict(round_, place)
    assert_fields(driver.entries[place], status=Status.BARRED, stake=0, work_faults=2)


def test_a_record_survives_somebody_else_at_the_index() -> None:
    """The cheat sends a friend to take its old index over, so that its record is overwritten.

    The program moves the record to the account of its owner first, and demands that account.
    Threat T94.
    """
    driver = convicted()
    driver.play(RING)
    outlast_juries(driver)
    friend, cheat = newcomer(driver), driver.owners[CHEAT]
    assert driver.refused(join(driver, friend, terms(CHEAT)), friend) == "AccountMissing"
    landed = driver.send(join(driver, friend, terms(CHEAT), cheat), friend)
    assert_fields(landed.event("RecordMoved"), index=CHEAT, is_in_force=False, work_faults=1)
    kept = participant(driver, cheat)
    assert kept.record.work_faults == 1 and kept.index == NO_INDEX
    assert driver.entries[CHEAT].work_faults == 0, "the friend has no past"
    landed = come_back(driver, CHEAT, PLACE)
    assert_fields(landed.event("RecordMoved"), index=PLACE, is_in_force=True, work_faults=1)
    assert driver.entries[PLACE].work_faults == 1


def test_a_late_strike_at_an_old_index_does_not_overwrite_the_record() -> None:
    """A cheat vouches for a malformed payload, leaves while the case is open, and comes back.

    The case strikes its old index. Then it is convicted for work, leaves, and sends a friend to
    the new index, so that the conviction is in its account. Another friend goes to the old one,
    whose strike took the place of that conviction. Threat T94.
    """
    driver = CaseDriver.started(12, pool=0, **LONG)
    maker = 5
    driver.challenge(driver.outsider("somebody"), 0, maker, PAYLOAD)
    seated = driver.seat_jury(driver.case(0, maker, PAYLOAD))
    jurors = {juror.index for juror in seated.jurors}
    old = next(index for index in range(12) if index not in jurors | {maker})
    cheat = driver.owners[old]
    driver.take_votes(seated, [MISMATCH] * len(jurors))
    leave(driver, old)
    driver.play(RING)
    come_back(driver, old, PLACE)
    driver.settle_case(seated, people=[maker])
    assert driver.entries[old].strikes == 1 and driver.entries[PLACE].strikes == 0
    driver.post_ready(PLACE)
    driver.play(1)
    driver.activate(PLACE)
    driver.play(1)
    round_ = driver.run.round
    driver.play(1)
    driver.draw(round_)
    driver.convict(round_, PLACE)
    leave(driver, PLACE)
    driver.release(driver.case(round_, PLACE), people=[PLACE])
    driver.play(RING)
    outlast_juries(driver)
    for index in (PLACE, old):
        friend = newcomer(driver, ("friend", index))
        there = terms(index, session=key("friend", index).pubkey())
        landed = driver.send(join(driver, friend, there, cheat), friend)
        assert ("RecordMoved" in landed.names()) is (index == PLACE)
        assert_fields(participant(driver, cheat).record, work_faults=1, strikes=0)


def test_jail_does_not_end_by_leaving() -> None:
    """A trainer that withholds its payloads is jailed for an epoch. It leaves and joins again.

    Threat T94.
    """
    driver = RoundDriver(6, **LONG)
    driver.start()
    driver.jail(CHEAT)
    until = driver.entries[CHEAT].jailed_until_round
    driver.leave(CHEAT)
    let_vest(driver)
    come_back(driver, CHEAT, CHEAT)
    entry = driver.entries[CHEAT]
    assert_fields(entry, status=Status.PENDING, jailed_until_round=until, strikes=3)
    assert driver.run.round < until
    ready = driver.ready_instruction(CHEAT)
    assert driver.refused(ready, driver.sessions[CHEAT]) == "StillJailed"


def test_an_account_with_a_record_stays_until_the_run_has_finished() -> None:
    """The cheat withdraws all that is left, so that its account closes and nobody remembers it.

    An account without a record closes with its last ticket. Threat T94.
    """
    driver = convicted(max_rounds=14)
    owner, clean = driver.owners[CHEAT], driver.owners[4]
    driver.play(2)
    leave(driver, 4)
    for _ in range(6):
        driver.chain.advance(1_400)
        driver.play(1)
    driver.send(make.claim_reward(driver.at, clean.pubkey()), clean)
    for one in (owner, clean):
        driver.send(make.withdraw_stake(driver.at, one.pubkey(), 0), one)
    assert participant(driver, clean) is None
    assert participant(driver, owner) is not None
    again = make.withdraw_stake(driver.at, owner.pubkey(), 0)
    assert driver.refused(again, owner) == "NothingToWithdraw"
    while driver.run.phase == Phase.COMMIT:
        driver.play(1)
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    driver.chain.advance(driver.params.unbond_slots)
    assert "ParticipantClosed" in driver.send(again, owner).names()
    assert participant(driver, owner) is None


def test_probation_does_not_end_by_leaving() -> None:
    """A trainer that showed no openings earns nothing until an audit clears. It leaves instead.

    Threat T94.
    """
    driver = CaseDriver.started(12, **LONG)
    driver.open_audit(0, CHEAT)
    driver.run_to(driver.of(0, CHEAT).stage_end)
    driver.settle(0, CHEAT)
    driver.release(driver.of(0, CHEAT))
    entry = driver.entries[CHEAT]
    assert entry.flags & EntryFlag.PROBATION and entry.openings_step == 1
    leave(driver, CHEAT)
    driver.play(RING)
    driver.chain.advance(2 * driver.params.vesting_slots)
    landed = come_back(driver, CHEAT, PLACE)
    assert_fields(landed.event("RecordMoved"), openings_step=1, work_faults=0)
    entry = driver.entries[PLACE]
    assert entry.flags & EntryFlag.PROBATION
    assert_fields(entry, openings_step=1, probation_round=NONE)
