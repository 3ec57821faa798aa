"""Membership: ready and activate on a running run, absence, leaving, keys, pause, params."""

import dataclasses

from support.fields import assert_fields
from support.program.rounds import SOL, RoundDriver, key, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, Status


def started(num: int = 4, **changes: int | str) -> RoundDriver:
    driver = RoundDriver(num, **changes)
    driver.start()
    return driver


def silent(driver: RoundDriver, index: int) -> None:
    """One round in which `index` does nothing and all others do everything."""
    others = [i for i in driver.members() if i != index]
    driver.commit_all(others)
    driver.attest_all(others)
    driver.close()


def test_a_joiner_becomes_a_member_of_the_round_after_the_next() -> None:
    driver = started()
    driver.play(2)
    index = driver.add()
    assert driver.entries[index].status == Status.PENDING
    driver.post_ready(index)
    early = make.activate(driver.at, driver.cranker.pubkey(), index, 2)
    assert driver.refused(early, driver.cranker) == "RoundHasNoRoot"
    driver.play(1)
    assert driver.open.members == 0b01111
    event = driver.activate(index).event("Activated")
    assert_fields(event, ready_round=2, active_round=4)
    assert driver.refused(early, driver.cranker) == "AlreadyActive"
    session = driver.sessions[index]
    assert driver.refused(driver.commit_instruction(index), session) == "NotATrainer"
    driver.play(1)
    assert_fields(driver.open, round=4, members=0b11111)
    assert driver.open.ballots[index].previous_included == NONE
    driver.play(1)
    assert driver.round(4).included == 0b11111


def test_a_joiner_with_other_weights_is_not_activated_and_may_try_again() -> None:
    driver = started()
    index = driver.add()
    driver.post_ready(index, root_of(77))
    driver.play(1)
    wrong = make.activate(driver.at, driver.cranker.pubkey(), index, 0)
    assert driver.refused(wrong, driver.cranker) == "ReadyRootMismatch"
    driver.post_ready(index)
    driver.play(1)
    driver.activate(index)


def test_activate_refuses_who_never_was_ready_and_a_void_round() -> None:
    driver = started()
    index = driver.add()
    driver.play(1)
    never = make.activate(driver.at, driver.cranker.pubkey(), index, 0)
    assert driver.refused(never, driver.cranker) == "NotReady"
    nobody = make.activate(driver.at, driver.cranker.pubkey(), 9, 0)
    assert driver.refused(nobody, driver.cranker) == "NotJoined"
    driver.post_ready(index)
    other = make.activate(driver.at, driver.cranker.pubkey(), index, 0)
    assert driver.refused(other, driver.cranker) == "WrongRoundAccount"
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    void = make.activate(driver.at, driver.cranker.pubkey(), index, 1)
    assert driver.refused(void, driver.cranker) == "RoundHasNoRoot"


def test_ready_speaks_about_the_open_round() -> None:
    driver = started()
    driver.play(1)
    index = driver.add()
    session = driver.sessions[index]
    vote = driver.vote(index, 0, root_of(0))
    old = make.post_ready(driver.at, session.pubkey(), index, 0, vote)
    assert driver.refused(old, session) == "WrongRound"
    foreign = make.post_ready(driver.at, driver.sessions[0].pubkey(), index, 1, vote)
    assert driver.refused(foreign, driver.sessions[0]) == "WrongSessionKey"


def test_three_deadline_misses_cost_the_fee_and_the_membership() -> None:
    driver = started()
    driver.play(1)
    silent(driver, 3)
    entry = driver.entries[3]
    assert_fields(entry, status=Status.ACTIVE, misses_in_row=2)
    pool = driver.run.reward_pool
    others = [0, 1, 2]
    driver.commit_all(others)
    driver.attest_all(others)
    landed = driver.close()
    settled = landed.event("RoundSettled")
    assert_fields(settled, missed_commit=0b1000, inactivated=0b1000, fees=1_000)
    entry = driver.entries[3]
    assert_fields(entry, status=Status.INACTIVE, misses_in_row=0, inactive_round=2)
    # The fee came out of the unvested reward of round 0 first; the stake is whole.
    assert sum(entry.bucket_amount) == 0
    assert entry.stake == driver.params.min_stake_lamports
    assert driver.run.reward_pool == pool - 3_000 + 1_000
    assert driver.open.members == 0b0111
    assert entry.return_round == 2
    driver.post_ready(3)
    driver.play(1)
    driver.activate(3)
    driver.play(1)
    assert driver.open.members == 0b1111


def test_the_second_inactivity_waits_for_the_next_epoch() -> None:
    driver = started(4, rounds_per_epoch=12)
    for _ in range(2):
        driver.play(1)
        silent(driver, 3)
        silent(driver, 3)
        entry = driver.entries[3]
        assert entry.status == Status.INACTIVE
        if entry.return_round == driver.run.round - 1:
            driver.post_ready(3)
            driver.play(1)
            driver.activate(3)
            driver.play(1)
    assert entry.return_round == 12
    assert driver.refused(driver.ready_instruction(3), driver.sessions[3]) == "ReturnsLater"
    while driver.run.round < 12:
        driver.play(1)
    driver.post_ready(3)


def test_misses_in_short_phases_need_twelve_in_a_row() -> None:
    driver = started(5)
    for round_ in range(6):
        for index in range(4):
            driver.commit(index)
        driver.chain.advance(8)
        driver.advance_phase()
        for index in range(4):
            driver.attest(index)
        driver.chain.advance(8)
        assert driver.entries[4].misses_in_row == 2 * round_
        driver.close()
    assert not driver.round(5).flags & RoundFlag.ATTEST_RAN_TO_DEADLINE
    assert driver.entries[4].status == Status.INACTIVE
    assert driver.entries[4].deadline_misses_in_row == 0


def test_who_attests_but_never_commits_becomes_inactive() -> None:
    """The attacker holds up every Commit to its deadline, and attests so as to look alive."""
    driver = started(4)
    for count in (1, 2, 3):
        assert driver.entries[3].status == Status.ACTIVE
        driver.commit_all([0, 1, 2])
        driver.attest_all()
        landed = driver.close()
        assert driver.entries[3].deadline_misses_in_row == count % 3
    settled = landed.event("RoundSettled")
    assert_fields(settled, inactivated=0b1000, fees=1_000)
    assert driver.open.members == 0b0111


def test_a_round_done_in_full_ends_a_row_of_misses() -> None:
    driver = started(4)
    for _ in range(3):
        silent(driver, 3)
        driver.play(1)
    entry = driver.entries[3]
    assert_fields(entry, status=Status.ACTIVE, misses_in_row=0)


def test_a_payload_that_too_few_vouch_for_is_a_strike_and_three_are_jail() -> None:
    driver = started(5, rounds_per_epoch=10)
    for count in (1, 2, 3):
        driver.commit_all()
        for index in range(5):
            driver.attest(index, 0b11111 if index < 3 else 0b01111)
        landed = driver.close()
        settled = landed.event("RoundSettled")
        assert settled.struck == 0b10000
        assert settled.jailed == (0b10000 if count == 3 else 0)
        assert driver.round(count - 1).included == 0b01111
    entry = driver.entries[4]
    assert_fields(entry, status=Status.JAILED, strikes=3, jailed_until_round=13)
    assert sum(entry.bucket_amount) == 0
    assert driver.open.members == 0b01111


def test_no_strike_where_fewer_than_half_of_the_commits_were_included() -> None:
    driver = started(5)
    driver.commit_all()
    for index in range(5):
        driver.attest(index, 0b00011)
    landed = driver.close()
    assert driver.round(0).included == 0b00011
    assert landed.event("RoundSettled").struck == 0


def test_leaving_takes_effect_at_the_next_open() -> None:
    driver = started(4)
    driver.leave(3)
    assert driver.entries[3].status == Status.ACTIVE, "it serves the open round"
    landed = driver.play(1)
    turned = landed.event("MembershipChanged")
    assert_fields(turned, left=0b1000, rotated=0)
    entry = driver.entries[3]
    assert_fields(entry, status=Status.LEFT, left_round=1)
    assert sum(entry.bucket_amount) == 1_000, "the last round is paid"
    assert driver.open.members == 0b0111


def test_fewer_than_the_minimum_at_an_open_is_cooldown_then_waiting() -> None:
    driver = started(3, min_members=3)
    driver.play(1)
    driver.leave(2)
    driver.play(1)
    assert_fields(driver.run, phase=Phase.COOLDOWN, round=2)
    assert driver.open.members == 0b111, "who is leaving still votes for the root"
    driver.cool_down()
    run = driver.run
    assert_fields(run, phase=Phase.WAITING_FOR_MEMBERS, root_round=2, root=root_of(2))
    assert driver.entries[2].status == Status.LEFT
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.add()
    driver.start()
    assert_fields(driver.run, phase=Phase.COMMIT, round=2, cursor=12)
    assert driver.open.members == 0b1011
    driver.play(1)


def test_a_new_session_key_is_in_force_from_the_next_open() -> None:
    driver = started(3)
    new, owner = key("new session"), driver.owners[0]
    driver.chain.airdrop(new.pubkey(), SOL)
    driver.send(make.set_session_key(driver.at, owner.pubkey(), new.pubkey()), owner)
    driver.commit(0)
    landed = driver.play_rest()
    assert landed.event("MembershipChanged").rotated == 0b001
    old = driver.sessions[0]
    assert driver.refused(driver.commit_instruction(0), old) == "WrongSessionKey"
    driver.sessions[0] = new
    driver.commit(0)


def test_a_pause_waits_for_the_close_and_the_next_round_opens_at_the_resume() -> None:
    driver = started(3)
    driver.play(1)
    driver.send(make.pause_run(driver.at, driver.authority.pubkey()), driver.authority)
    assert driver.run.phase == Phase.COMMIT
    landed = driver.play(1)
    assert landed.names() == ["RoundClosed", "RoundSettled", "RunPaused"]
    run = driver.run
    assert_fields(run, phase=Phase.PAUSED, resume_phase=Phase.COMMIT, round=2)
    index = driver.add()
    driver.chain.advance(50)
    resume = make.resume_run(driver.at, driver.authority.pubkey(), 2)
    landed = driver.send(resume, driver.authority)
    assert landed.names() == ["RunResumed", "RoundOpened"]
    assert driver.run.phase == Phase.COMMIT
    assert_fields(driver.open, round=2, base_round=1)
    assert driver.open.open_slot == driver.slot
    assert driver.open.members == 0b0111, index
    driver.play(1)


def test_a_joiner_activated_during_a_pause_is_a_member_at_the_resume() -> None:
    driver = started(3)
    index = driver.add()
    driver.post_ready(index)
    driver.send(make.pause_run(driver.at, driver.authority.pubkey()), driver.authority)
    driver.play(1)
    assert driver.activate(index).event("Activated").active_round == 1
    driver.send(make.resume_run(driver.at, driver.authority.pubkey(), 1), driver.authority)
    assert driver.open.members == 0b1111


def test_new_parameters_are_in_force_at_the_first_epoch_after_their_delay() -> None:
    driver = started(3, rounds_per_epoch=3, param_delay_slots=5)
    driver.play(1)
    changed = dataclasses.replace(driver.params, commit_slots=133)
    update = make.update_params(driver.at, driver.authority.pubkey(), changed)
    driver.send(update, driver.authority)
    driver.play(1)
    driver.chain.advance(5)
    assert driver.run.params.commit_slots == driver.params.commit_slots
    landed = driver.play(1)
    assert landed.event("ParamsApplied").epoch == 1
    run = driver.run
    assert_fields(run, round=3, epoch=1)
    assert run.params.commit_slots == 133
    assert run.phase_end_slot == driver.open.open_slot + 133
