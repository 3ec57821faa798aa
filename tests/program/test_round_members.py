"""Who is a member: ready and activate on a running run, absence, leaving, keys, pause, params."""

import dataclasses

from program.rounds import SOL, Stage, key, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status


def started(num: int = 4, **changes: int | str) -> Stage:
    stage = Stage(num, **changes)
    stage.start()
    return stage


def silent(stage: Stage, index: int) -> None:
    """One round in which `index` does nothing and all others do everything."""
    others = [i for i in stage.members() if i != index]
    stage.commit_all(others)
    stage.attest_all(others)
    stage.close()


def test_a_joiner_becomes_a_member_of_the_round_after_the_next() -> None:
    stage = started()
    stage.play(2)
    index = stage.add()
    assert stage.entries[index].status == Status.PENDING
    stage.ready(index)
    early = make.activate(stage.at, stage.cranker.pubkey(), index, 2)
    assert stage.refused(early, stage.cranker) == "RoundHasNoRoot"
    stage.play(1)
    assert stage.open.members == 0b01111
    event = stage.activate(index).event("Activated")
    assert (event.ready_round, event.active_round) == (2, 4)
    assert stage.refused(early, stage.cranker) == "AlreadyActive"
    session = stage.sessions[index]
    assert stage.refused(stage.commit_instruction(index), session) == "NotATrainer"
    stage.play(1)
    assert (stage.open.round, stage.open.members) == (4, 0b11111)
    assert stage.open.slots[index].previous_included == NONE
    stage.play(1)
    assert stage.round(4).included == 0b11111


def test_a_joiner_with_other_weights_is_not_activated_and_may_try_again() -> None:
    stage = started()
    index = stage.add()
    stage.ready(index, root_of(77))
    stage.play(1)
    wrong = make.activate(stage.at, stage.cranker.pubkey(), index, 0)
    assert stage.refused(wrong, stage.cranker) == "ReadyRootMismatch"
    stage.ready(index)
    stage.play(1)
    stage.activate(index)


def test_activate_refuses_who_never_was_ready_and_a_void_round() -> None:
    stage = started()
    index = stage.add()
    stage.play(1)
    never = make.activate(stage.at, stage.cranker.pubkey(), index, 0)
    assert stage.refused(never, stage.cranker) == "NotReady"
    nobody = make.activate(stage.at, stage.cranker.pubkey(), 9, 0)
    assert stage.refused(nobody, stage.cranker) == "NotJoined"
    stage.ready(index)
    other = make.activate(stage.at, stage.cranker.pubkey(), index, 0)
    assert stage.refused(other, stage.cranker) == "WrongRoundAccount"
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    void = make.activate(stage.at, stage.cranker.pubkey(), index, 1)
    assert stage.refused(void, stage.cranker) == "RoundHasNoRoot"


def test_ready_speaks_about_the_open_round() -> None:
    stage = started()
    stage.play(1)
    index = stage.add()
    session = stage.sessions[index]
    vote = stage.vote(index, 0, root_of(0))
    old = make.ready(stage.at, session.pubkey(), index, 0, vote)
    assert stage.refused(old, session) == "WrongRound"
    foreign = make.ready(stage.at, stage.sessions[0].pubkey(), index, 1, vote)
    assert stage.refused(foreign, stage.sessions[0]) == "WrongSessionKey"


def test_three_deadline_misses_cost_the_fee_and_the_membership() -> None:
    stage = started()
    stage.play(1)
    silent(stage, 3)
    entry = stage.entries[3]
    assert (entry.status, entry.misses_in_row) == (Status.ACTIVE, 2)
    pool = stage.run.reward_pool
    others = [0, 1, 2]
    stage.commit_all(others)
    stage.attest_all(others)
    landed = stage.close()
    settled = landed.event("RoundSettled")
    assert (settled.missed_commit, settled.inactivated, settled.fees) == (0b1000, 0b1000, 1_000)
    entry = stage.entries[3]
    assert (entry.status, entry.misses_in_row, entry.inactive_round) == (Status.INACTIVE, 0, 2)
    # The fee came out of the unvested reward of round 0 first; the stake is whole.
    assert sum(entry.bucket_amount) == 0
    assert entry.stake == stage.params.stake_lamports
    assert stage.run.reward_pool == pool - 3_000 + 1_000
    assert stage.open.members == 0b0111
    assert entry.return_round == 2
    stage.ready(3)
    stage.play(1)
    stage.activate(3)
    stage.play(1)
    assert stage.open.members == 0b1111


def test_the_second_inactivity_waits_for_the_next_epoch() -> None:
    stage = started(4, rounds_per_epoch=12)
    for _ in range(2):
        stage.play(1)
        silent(stage, 3)
        silent(stage, 3)
        entry = stage.entries[3]
        assert entry.status == Status.INACTIVE
        if entry.return_round == stage.run.round - 1:
            stage.ready(3)
            stage.play(1)
            stage.activate(3)
            stage.play(1)
    assert entry.return_round == 12
    assert stage.refused(stage.ready_instruction(3), stage.sessions[3]) == "ReturnsLater"
    while stage.run.round < 12:
        stage.play(1)
    stage.ready(3)


def test_misses_in_short_phases_need_twelve_in_a_row() -> None:
    stage = started(5)
    for round_ in range(6):
        for index in range(4):
            stage.commit(index)
        stage.chain.advance(8)
        stage.tick()
        for index in range(4):
            stage.attest(index)
        stage.chain.advance(8)
        assert stage.entries[4].misses_in_row == 2 * round_
        stage.close()
    assert not stage.round(5).flags & RoundFlag.ATTEST_RAN_TO_DEADLINE
    assert stage.entries[4].status == Status.INACTIVE
    assert stage.entries[4].deadline_misses_in_row == 0


def test_who_attests_but_never_commits_becomes_inactive() -> None:
    """The attacker holds up every Commit to its deadline, and attests so as to look alive."""
    stage = started(4)
    for count in (1, 2, 3):
        assert stage.entries[3].status == Status.ACTIVE
        stage.commit_all([0, 1, 2])
        stage.attest_all()
        landed = stage.close()
        assert stage.entries[3].deadline_misses_in_row == count % 3
    settled = landed.event("RoundSettled")
    assert (settled.inactivated, settled.fees) == (0b1000, 1_000)
    assert stage.open.members == 0b0111


def test_a_round_done_in_full_ends_a_row_of_misses() -> None:
    stage = started(4)
    for _ in range(3):
        silent(stage, 3)
        stage.play(1)
    entry = stage.entries[3]
    assert (entry.status, entry.misses_in_row) == (Status.ACTIVE, 0)


def test_a_payload_that_too_few_vouch_for_is_a_strike_and_three_are_jail() -> None:
    stage = started(5, rounds_per_epoch=10)
    for count in (1, 2, 3):
        stage.commit_all()
        for index in range(5):
            stage.attest(index, 0b11111 if index < 3 else 0b01111)
        landed = stage.close()
        settled = landed.event("RoundSettled")
        assert settled.struck == 0b10000
        assert settled.jailed == (0b10000 if count == 3 else 0)
        assert stage.round(count - 1).included == 0b01111
    entry = stage.entries[4]
    assert (entry.status, entry.strikes, entry.jailed_until_round) == (Status.JAILED, 3, 13)
    assert sum(entry.bucket_amount) == 0
    assert stage.open.members == 0b01111


def test_no_strike_where_fewer_than_half_of_the_commits_were_included() -> None:
    stage = started(5)
    stage.commit_all()
    for index in range(5):
        stage.attest(index, 0b00011)
    landed = stage.close()
    assert stage.round(0).included == 0b00011
    assert landed.event("RoundSettled").struck == 0


def test_leaving_takes_effect_at_the_next_open() -> None:
    stage = started(4)
    owner = stage.owners[3]
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    assert stage.entries[3].status == Status.ACTIVE, "it serves the open round"
    landed = stage.play(1)
    turned = landed.event("RosterTurned")
    assert (turned.left, turned.rotated) == (0b1000, 0)
    entry = stage.entries[3]
    assert (entry.status, entry.left_round) == (Status.LEFT, 1)
    assert sum(entry.bucket_amount) == 1_000, "the last round is paid"
    assert stage.open.members == 0b0111


def test_fewer_than_the_minimum_at_an_open_is_cooldown_then_waiting() -> None:
    stage = started(3, min_members=3)
    stage.play(1)
    owner = stage.owners[2]
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    stage.play(1)
    assert (stage.run.phase, stage.run.round) == (Phase.COOLDOWN, 2)
    assert stage.open.members == 0b111, "who is leaving still votes for the root"
    stage.cool_down()
    run = stage.run
    assert (run.phase, run.root_round, run.root) == (Phase.WAITING_FOR_MEMBERS, 2, root_of(2))
    assert stage.entries[2].status == Status.LEFT
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    stage.add()
    stage.start()
    assert (stage.run.phase, stage.run.round, stage.run.cursor) == (Phase.COMMIT, 2, 12)
    assert stage.open.members == 0b1011
    stage.play(1)


def test_a_new_session_key_is_in_force_from_the_next_open() -> None:
    stage = started(3)
    new, owner = key("new session"), stage.owners[0]
    stage.chain.airdrop(new.pubkey(), SOL)
    stage.send(make.set_session_key(stage.at, owner.pubkey(), new.pubkey()), owner)
    stage.commit(0)
    landed = stage.play_rest()
    assert landed.event("RosterTurned").rotated == 0b001
    old = stage.sessions[0]
    assert stage.refused(stage.commit_instruction(0), old) == "WrongSessionKey"
    stage.sessions[0] = new
    stage.commit(0)


def test_a_pause_waits_for_the_close_and_the_next_round_opens_at_the_resume() -> None:
    stage = started(3)
    stage.play(1)
    stage.send(make.pause_run(stage.at, stage.authority.pubkey()), stage.authority)
    assert stage.run.phase == Phase.COMMIT
    landed = stage.play(1)
    assert landed.names() == ["RoundClosed", "RoundSettled", "RunPaused"]
    run = stage.run
    assert (run.phase, run.resume_phase, run.round) == (Phase.PAUSED, Phase.COMMIT, 2)
    index = stage.add()
    stage.chain.advance(50)
    resume = make.resume_run(stage.at, stage.authority.pubkey(), 2)
    landed = stage.send(resume, stage.authority)
    assert landed.names() == ["RunResumed", "RoundOpened"]
    assert (stage.run.phase, stage.open.round, stage.open.base_round) == (Phase.COMMIT, 2, 1)
    assert stage.open.open_slot == stage.slot
    assert stage.open.members == 0b0111, index
    stage.play(1)


def test_a_joiner_activated_during_a_pause_is_a_member_at_the_resume() -> None:
    stage = started(3)
    index = stage.add()
    stage.ready(index)
    stage.send(make.pause_run(stage.at, stage.authority.pubkey()), stage.authority)
    stage.play(1)
    assert stage.activate(index).event("Activated").active_round == 1
    stage.send(make.resume_run(stage.at, stage.authority.pubkey(), 1), stage.authority)
    assert stage.open.members == 0b1111


def test_new_parameters_are_in_force_at_the_first_epoch_after_their_delay() -> None:
    stage = started(3, rounds_per_epoch=3, param_delay_slots=5)
    stage.play(1)
    changed = dataclasses.replace(stage.params, commit_slots=133)
    update = make.update_params(stage.at, stage.authority.pubkey(), changed)
    stage.send(update, stage.authority)
    stage.play(1)
    stage.chain.advance(5)
    assert stage.run.params.commit_slots == stage.params.commit_slots
    landed = stage.play(1)
    assert landed.event("ParamsApplied").epoch == 1
    run = stage.run
    assert (run.round, run.epoch, run.params.commit_slots) == (3, 1, 133)
    assert run.phase_end_slot == stage.open.open_slot + 133
