"""Silence: which rounds close void, what void rounds cost, how a run halts and comes back."""

import pytest
from program.rounds import Stage, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status

DEADLINES = RoundFlag.COMMIT_RAN_TO_DEADLINE | RoundFlag.ATTEST_RAN_TO_DEADLINE


def started(num: int = 6, **changes: int | str) -> Stage:
    stage = Stage(num, **changes)
    stage.start()
    return stage


def void(stage: Stage) -> None:
    """A round in which everybody commits and only one attests: another one each time, so that
    nobody misses often enough to become inactive."""
    stage.commit_all()
    stage.attest_all([stage.run.round % len(stage.members())])
    stage.close()


def test_half_of_the_members_silent_voids_the_round_without_strikes() -> None:
    stage = started(6)
    stage.commit_all([0, 1])
    stage.attest_all([0, 1])
    landed = stage.close()
    closed = stage.round(0)
    assert closed.flags == RoundFlag.CLOSED | RoundFlag.VOID | DEADLINES
    assert (closed.included, closed.canonical_root) == (0, bytes(32))
    assert (closed.seed_slot, stage.run.seeds_pending) == (NONE, 0)
    settled = landed.event("RoundSettled")
    assert (settled.struck, settled.jailed, settled.reward_paid) == (0, 0, 0)
    assert settled.missed_commit == settled.missed_attest == 0b111100
    run = stage.run
    assert (run.phase, run.round, run.cursor, run.void_streak) == (Phase.COMMIT, 1, 12, 1)
    assert stage.entries[2].misses_in_row == stage.entries[2].deadline_misses_in_row == 2
    assert stage.open.base_round == NONE, "nothing was included, nothing can be missing"


def test_a_third_silent_and_the_round_closes() -> None:
    stage = started(6)
    stage.commit_all([0, 1, 2, 3])
    stage.attest_all([0, 1, 2, 3])
    landed = stage.close()
    closed = stage.round(0)
    assert closed.flags == RoundFlag.CLOSED | DEADLINES
    assert closed.included == 0b1111
    assert landed.event("RoundSettled").struck == 0
    assert stage.run.void_streak == 0


@pytest.mark.parametrize(
    ("commits", "attests", "is_void"),
    [(2, 3, False), (1, 6, True), (6, 2, True), (6, 3, False), (0, 6, True)],
)
def test_the_bounds_of_a_void_round(commits: int, attests: int, is_void: bool) -> None:
    stage = started(6)
    stage.commit_all(range(commits))
    stage.attest_all(range(attests))
    # With 2 of 6 commits no candidate can have more than a third of the trainers.
    if commits == 2:
        assert stage.refused(stage.close_instruction(), stage.cranker) == "CandidateNotCanonical"
        return
    stage.close()
    assert bool(stage.round(0).flags & RoundFlag.VOID) == is_void


def test_a_void_round_closes_void_whatever_the_candidate() -> None:
    stage = started(4)
    stage.commit_all([])
    stage.attest_all([])
    stage.close(b"x" * 32)
    assert stage.round(0).flags & RoundFlag.VOID
    assert stage.round(0).canonical_root == bytes(32)


def test_split_votes_close_only_void_and_only_after_the_grace() -> None:
    stage = started(4)
    for index in range(4):
        stage.commit(index, root_of(100 + index % 2))
    stage.tick()
    stage.attest_all()
    for candidate in (root_of(100), root_of(101), root_of(0)):
        close = stage.close_instruction(candidate)
        assert stage.refused(close, stage.cranker) == "CandidateNotCanonical"
    close = make.close_void(stage.at, stage.cranker.pubkey(), 0)
    stage.chain.advance(stage.run.phase_end_slot + stage.params.close_grace_slots - stage.slot)
    assert stage.refused(close, stage.cranker) == "CloseGraceRemaining"
    stage.chain.advance()
    landed = stage.send(close, stage.cranker)
    assert stage.round(0).flags & RoundFlag.VOID
    assert landed.event("RoundSettled").struck == 0
    # Everybody acted: the misses in a row are over.
    assert all(entry.misses_in_row == 0 for entry in stage.entries[:4])


def test_three_void_rounds_halt_and_the_run_restarts_at_the_newest_checkpoint() -> None:
    stage = started(3, checkpoint_every=1, min_members=2)
    stage.play(2)
    assert stage.run.root_round == 1
    for streak in (1, 2, 3):
        void(stage)
        assert stage.run.void_streak == streak
    run = stage.run
    assert (run.phase, run.round, run.base_round) == (Phase.HALTED, 5, NONE)
    assert run.phase_end_slot == stage.slot + stage.params.halt_slots
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    stage.run_out()
    stage.tick()
    run = stage.run
    assert (run.phase, run.void_streak) == (Phase.WAITING_FOR_MEMBERS, 0)
    assert (run.root, run.root_round, run.root_cursor) == (root_of(1), 1, 6)
    assert [e.status for e in stage.entries[:3]] == [Status.PENDING] * 3
    # Two of the three post ready for the stored root: they are the members.
    stage.tick()
    assert stage.run.phase == Phase.WARMUP
    for index in (0, 1):
        stage.ready(index)
    stage.run_out()
    ended = stage.tick().event("WarmupEnded")
    assert (ended.ready, ended.absent) == (0b011, 0b100)
    assert stage.entries[2].status == Status.INACTIVE
    assert stage.entries[2].stake == stage.params.stake_lamports, "no fee for a missed warmup"
    run = stage.run
    assert (run.phase, run.round, run.cursor) == (Phase.COMMIT, 5, 30), "round and cursor stay"
    assert (run.restart_round, run.restart_root_round) == (5, 1)
    assert stage.open.members == 0b011
    assert all(slot.previous_included == NONE for slot in stage.open.slots)
    stage.play(1)
    assert stage.round(5).included == 0b011


def test_two_rounds_of_silence_leave_nobody_and_halt() -> None:
    stage = started(3)
    for _ in range(2):
        stage.commit_all([])
        stage.attest_all([])
        stage.close()
    assert stage.run.phase == Phase.HALTED
    assert [e.status for e in stage.entries[:3]] == [Status.INACTIVE] * 3
    stage.run_out()
    stage.tick()
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    # Inactive ones come back by ready while the run waits; the fee came out of their stakes.
    assert stage.refused(stage.ready_instruction(0), stage.sessions[0]) == "StakeTooLow"
    for index in (0, 1):
        owner = stage.owners[index]
        stage.send(make.top_up_stake(stage.at, owner.pubkey(), 1_000), owner)
        stage.ready(index)
    stage.tick()
    stage.tick()
    assert (stage.run.phase, stage.open.members) == (Phase.COMMIT, 0b011)


def test_a_successful_round_ends_the_streak() -> None:
    stage = started(4)
    void(stage)
    stage.play(1)
    assert stage.run.void_streak == 0
    void(stage)
    assert stage.run.phase == Phase.COMMIT


def test_a_root_only_step_without_a_majority_is_repeated_and_halts() -> None:
    stage = started(4, max_rounds=1, min_members=2)
    stage.play(1)
    assert stage.run.phase == Phase.COOLDOWN
    for index in range(4):
        stage.commit(index, root_of(200 + index % 2))
    assert stage.refused(stage.close_instruction(), stage.cranker) == "CandidateNotCanonical"
    stage.chain.advance(stage.run.phase_end_slot + stage.params.close_grace_slots + 1 - stage.slot)
    stage.close_void()
    run = stage.run
    assert (run.phase, run.round, run.void_streak) == (Phase.COOLDOWN, 1, 1)
    assert stage.open.committed == 0, "a new step: everybody votes again"
    stage.run_out()
    stage.close()
    assert (stage.run.phase, stage.run.void_streak) == (Phase.COOLDOWN, 2)
    stage.run_out()
    stage.close()
    assert (stage.run.phase, stage.run.void_streak) == (Phase.HALTED, 3)
    # All rounds are done: out of the halt the run ends, at the newest root that was stored.
    stage.run_out()
    stage.tick()
    assert stage.run.phase == Phase.WAITING_FOR_MEMBERS
    stage.tick()
    assert (stage.run.phase, stage.run.root_round) == (Phase.FINISHED, 0)


def test_nobody_left_to_vote_halts_at_once() -> None:
    stage = started(2)
    for _ in range(2):
        stage.commit_all([])
        stage.attest_all([])
        landed = stage.close()
    assert landed.names()[-1] == "PhaseStarted"
    assert (stage.run.phase, stage.run.void_streak) == (Phase.HALTED, 2)


def leave(stage: Stage, *indices: int) -> None:
    for index in indices:
        owner = stage.owners[index]
        stage.send(make.leave_run(stage.at, owner.pubkey()), owner)


def test_all_who_leave_at_once_still_vote_for_the_root_that_they_made() -> None:
    stage = started(3)
    stage.play(1)
    leave(stage, 0, 1, 2)
    stage.play(1)
    assert (stage.run.phase, stage.open.members) == (Phase.COOLDOWN, 0b111)
    landed = stage.cool_down()
    assert landed.event("RosterTurned").left == 0b111
    assert (stage.run.phase, stage.run.root_round) == (Phase.WAITING_FOR_MEMBERS, 2)
    assert [e.status for e in stage.entries[:3]] == [Status.LEFT] * 3


def test_leavers_that_are_gone_hold_up_the_root_only_step_once() -> None:
    stage = started(4, min_members=2)
    stage.play(1)
    leave(stage, 1, 2, 3)
    stage.play(1)
    assert (stage.run.phase, stage.open.trainers) == (Phase.COOLDOWN, 0b1111)
    stage.commit(0)
    stage.run_out()
    landed = stage.close()
    assert landed.event("RosterTurned").left == 0b1110
    assert (stage.run.phase, stage.open.trainers) == (Phase.COOLDOWN, 0b0001)
    stage.cool_down()
    assert (stage.run.phase, stage.run.root_round) == (Phase.WAITING_FOR_MEMBERS, 2)


def test_a_run_that_nobody_can_join_any_more_finishes() -> None:
    stage = started(2, join_until_round=0)
    stage.play(1)
    owner = stage.owners[0]
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    stage.play(1)
    assert stage.run.phase == Phase.COOLDOWN, "one that stays is fewer than the minimum"
    stage.cool_down()
    assert stage.run.phase == Phase.WAITING_FOR_MEMBERS
    stage.tick()
    run = stage.run
    assert (run.phase, run.root_round, run.finished_slot) == (Phase.FINISHED, 2, stage.slot)
