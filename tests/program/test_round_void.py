"""Silence: which rounds close void, what void rounds cost, how a run halts and comes back."""

import pytest
from support.fields import assert_fields
from support.program.rounds import RoundDriver, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status

DEADLINES = RoundFlag.COMMIT_RAN_TO_DEADLINE | RoundFlag.ATTEST_RAN_TO_DEADLINE


def started(num: int = 6, **changes: int | str) -> RoundDriver:
    driver = RoundDriver(num, **changes)
    driver.start()
    return driver


def void(driver: RoundDriver) -> None:
    """A round in which everybody commits and only one attests: another one each time, so that
    nobody misses often enough to become inactive."""
    driver.commit_all()
    driver.attest_all([driver.run.round % len(driver.members())])
    driver.close()


def test_half_of_the_members_silent_voids_the_round_without_strikes() -> None:
    driver = started(6)
    driver.commit_all([0, 1])
    driver.attest_all([0, 1])
    landed = driver.close()
    closed = driver.round(0)
    assert closed.flags == RoundFlag.CLOSED | RoundFlag.VOID | DEADLINES
    assert_fields(closed, included=0, canonical_root=bytes(32))
    assert closed.seed_slot == NONE
    assert driver.run.seeds_pending == 0
    settled = landed.event("RoundSettled")
    assert_fields(settled, struck=0, jailed=0, reward_paid=0)
    assert settled.missed_commit == settled.missed_attest == 0b111100
    run = driver.run
    assert_fields(run, phase=Phase.COMMIT, round=1, cursor=12, void_streak=1)
    assert driver.entries[2].misses_in_row == driver.entries[2].deadline_misses_in_row == 2
    assert driver.open.base_round == NONE, "nothing was included, nothing can be missing"


def test_a_third_silent_and_the_round_closes() -> None:
    driver = started(6)
    driver.commit_all([0, 1, 2, 3])
    driver.attest_all([0, 1, 2, 3])
    landed = driver.close()
    closed = driver.round(0)
    assert closed.flags == RoundFlag.CLOSED | DEADLINES
    assert closed.included == 0b1111
    assert landed.event("RoundSettled").struck == 0
    assert driver.run.void_streak == 0


@pytest.mark.parametrize(
    ("commits", "attests", "is_void"),
    [(2, 3, True), (3, 3, False), (1, 6, True), (6, 2, True), (6, 3, False), (0, 6, True)],
)
def test_the_bounds_of_a_void_round(commits: int, attests: int, is_void: bool) -> None:
    driver = started(6)
    driver.commit_all(range(commits))
    driver.attest_all(range(attests))
    driver.close()
    assert bool(driver.round(0).flags & RoundFlag.VOID) == is_void


def test_a_void_round_closes_void_whatever_the_candidate() -> None:
    driver = started(4)
    driver.commit_all([])
    driver.attest_all([])
    driver.close(b"x" * 32)
    assert driver.round(0).flags & RoundFlag.VOID
    assert driver.round(0).canonical_root == bytes(32)


def test_split_votes_close_only_void_and_only_after_the_grace() -> None:
    driver = started(4)
    for index in range(4):
        driver.commit(index, root_of(100 + index % 2))
    driver.advance_phase()
    driver.attest_all()
    for candidate in (root_of(100), root_of(101), root_of(0)):
        close = driver.close_instruction(candidate)
        assert driver.refused(close, driver.cranker) == "CandidateNotCanonical"
    close = make.close_void(driver.at, driver.cranker.pubkey(), 0)
    driver.chain.advance(driver.run.phase_end_slot + driver.params.close_grace_slots - driver.slot)
    assert driver.refused(close, driver.cranker) == "CloseGraceRemaining"
    driver.chain.advance()
    landed = driver.send(close, driver.cranker)
    assert driver.round(0).flags & RoundFlag.VOID
    assert landed.event("RoundSettled").struck == 0
    # Everybody acted: the misses in a row are over.
    assert all(entry.misses_in_row == 0 for entry in driver.entries[:4])


def test_three_void_rounds_halt_and_the_run_restarts_at_the_newest_checkpoint() -> None:
    driver = started(3, checkpoint_every=1, min_members=2)
    driver.play(2)
    assert driver.run.root_round == 1
    for streak in (1, 2, 3):
        void(driver)
        assert driver.run.void_streak == streak
    run = driver.run
    assert_fields(run, phase=Phase.HALTED, round=5, base_round=NONE)
    assert run.phase_end_slot == driver.slot + driver.params.halt_slots
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.run_out()
    driver.advance_phase()
    run = driver.run
    assert_fields(
        run,
        phase=Phase.WAITING_FOR_MEMBERS,
        void_streak=0,
        root=root_of(1),
        root_round=1,
        root_cursor=6,
    )
    assert [e.status for e in driver.entries[:3]] == [Status.PENDING] * 3
    # Two of the three post ready for the stored root: they are the members.
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP
    for index in (0, 1):
        driver.post_ready(index)
    driver.run_out()
    ended = driver.advance_phase().event("WarmupEnded")
    assert_fields(ended, ready=0b011, absent=0b100)
    assert driver.entries[2].status == Status.INACTIVE
    assert driver.entries[2].stake == driver.params.min_stake_lamports, "no fee for a missed warmup"
    run = driver.run
    assert_fields(run, "round and cursor stay", phase=Phase.COMMIT, round=5, cursor=30)
    assert_fields(run, restart_round=5, restart_root_round=1)
    assert driver.open.members == 0b011
    assert all(slot.previous_included == NONE for slot in driver.open.ballots)
    driver.play(1)
    assert driver.round(5).included == 0b011


def test_two_rounds_of_silence_leave_nobody_and_halt() -> None:
    driver = started(3, keep_stake_lamports=100_000)
    for _ in range(2):
        driver.commit_all([])
        driver.attest_all([])
        driver.close()
    assert driver.run.phase == Phase.HALTED
    assert [e.status for e in driver.entries[:3]] == [Status.INACTIVE] * 3
    driver.run_out()
    driver.advance_phase()
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    # Inactive ones come back by ready while the run waits; the fee came out of their stakes.
    assert driver.refused(driver.ready_instruction(0), driver.sessions[0]) == "StakeTooLow"
    for index in (0, 1):
        owner = driver.owners[index]
        driver.send(make.top_up_stake(driver.at, owner.pubkey(), 1_000), owner)
        driver.post_ready(index)
    driver.advance_phase()
    driver.advance_phase()
    assert driver.run.phase == Phase.COMMIT
    assert driver.open.members == 0b011


def test_a_successful_round_ends_the_streak() -> None:
    driver = started(4)
    void(driver)
    driver.play(1)
    assert driver.run.void_streak == 0
    void(driver)
    assert driver.run.phase == Phase.COMMIT


def test_a_root_only_step_without_a_majority_is_repeated_and_halts() -> None:
    driver = started(4, max_rounds=1, min_members=2)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN
    for index in range(4):
        driver.commit(index, root_of(200 + index % 2))
    assert driver.refused(driver.close_instruction(), driver.cranker) == "CandidateNotCanonical"
    driver.chain.advance(
        driver.run.phase_end_slot + driver.params.close_grace_slots + 1 - driver.slot
    )
    driver.close_void()
    run = driver.run
    assert_fields(run, phase=Phase.COOLDOWN, round=1, void_streak=1)
    assert driver.open.committed == 0, "a new step: everybody votes again"
    driver.run_out()
    driver.close()
    assert_fields(driver.run, phase=Phase.COOLDOWN, void_streak=2)
    driver.run_out()
    driver.close()
    assert_fields(driver.run, phase=Phase.HALTED, void_streak=3)
    # All rounds are done: out of the halt the run ends, at the newest root that was stored.
    driver.run_out()
    driver.advance_phase()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    driver.advance_phase()
    assert_fields(driver.run, phase=Phase.FINISHED, root_round=0)


def test_nobody_left_to_vote_halts_at_once() -> None:
    driver = started(2)
    for _ in range(2):
        driver.commit_all([])
        driver.attest_all([])
        landed = driver.close()
    assert landed.names()[-1] == "PhaseStarted"
    assert_fields(driver.run, phase=Phase.HALTED, void_streak=2)


def leave(driver: RoundDriver, *indices: int) -> None:
    for index in indices:
        driver.leave(index)


def test_all_who_leave_at_once_still_vote_for_the_root_that_they_made() -> None:
    driver = started(3)
    driver.play(1)
    leave(driver, 0, 1, 2)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN
    assert driver.open.members == 0b111
    landed = driver.cool_down()
    assert landed.event("MembershipChanged").left == 0b111
    assert_fields(driver.run, phase=Phase.WAITING_FOR_MEMBERS, root_round=2)
    assert [e.status for e in driver.entries[:3]] == [Status.LEFT] * 3


def test_leavers_that_are_gone_hold_up_the_root_only_step_once() -> None:
    driver = started(4, min_members=2)
    driver.play(1)
    leave(driver, 1, 2, 3)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN
    assert driver.open.trainers == 0b1111
    driver.commit(0)
    driver.run_out()
    landed = driver.close()
    assert landed.event("MembershipChanged").left == 0b1110
    assert driver.run.phase == Phase.COOLDOWN
    assert driver.open.trainers == 0b0001
    driver.cool_down()
    assert_fields(driver.run, phase=Phase.WAITING_FOR_MEMBERS, root_round=2)


def test_a_run_that_nobody_can_join_any_more_finishes() -> None:
    driver = started(2, join_until_round=0)
    driver.play(1)
    driver.leave(0)
    driver.play(1)
    assert driver.run.phase == Phase.COOLDOWN, "one that stays is fewer than the minimum"
    driver.cool_down()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    driver.advance_phase()
    run = driver.run
    assert_fields(run, phase=Phase.FINISHED, root_round=2, finished_slot=driver.slot)


def test_a_vote_for_ready_that_nobody_checked_ends_with_the_rounds_of_a_run() -> None:
    """A newcomer with false weights would be counted as ready for the stored root."""
    driver = started(4, checkpoint_every=1)
    driver.play(1)
    newcomer = driver.add()
    driver.post_ready(newcomer, root_of(99))
    driver.play(1)
    assert_fields(driver.run, root_round=driver.entries[newcomer].ready_round)
    while driver.run.phase != Phase.HALTED:
        driver.freeze_old_seed()
        driver.commit_all([])
        driver.attest_all([])
        driver.close()
    driver.chain.advance(driver.run.params.halt_slots + 1)
    driver.advance_phase()
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    assert driver.entries[newcomer].ready_round == NONE
