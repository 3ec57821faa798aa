"""Pauses within their budget, resuming, and parameters that change at an epoch boundary."""

import dataclasses
from typing import Any

from solders.instruction import Instruction
from support.fields import assert_fields
from support.program.rounds import RoundDriver, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunFlag

BUDGET = 300


def driver_of(num: int = 4, **changes: Any) -> RoundDriver:
    return RoundDriver(num, max_pause_slots=BUDGET, **changes)


def pause(driver: RoundDriver):
    return make.pause_run(driver.at, driver.authority.pubkey())


def resume(driver: RoundDriver, by=None):
    signer = (by or driver.authority).pubkey()
    return make.resume_run(driver.at, signer, driver.run.round)


def play_void(driver: RoundDriver) -> None:
    """A round in which half vote for another root: it is void, and nobody is absent."""
    driver.freeze_old_seed()
    for index in range(4):
        driver.commit(index, None if index < 2 else b"x" * 32)
    driver.advance_phase()
    driver.attest_all()
    driver.run_out()
    driver.chain.advance(driver.run.params.close_grace_slots + 1)
    driver.close_void()


def test_a_pause_that_was_requested_lapses_where_the_run_halts():
    driver = driver_of(vesting_slots=9_000, unbond_slots=9_000)
    driver.start()
    play_void(driver)
    play_void(driver)
    driver.send(pause(driver), driver.authority)
    play_void(driver)
    assert driver.run.phase == Phase.HALTED and not driver.run.flags
    driver.chain.advance(driver.run.params.halt_slots + 1)
    driver.advance_phase()
    driver.start()
    assert driver.run.phase == Phase.COMMIT


def test_a_pause_comes_first_where_no_trainer_is_left():
    driver = driver_of(3, roles=(1, 2, 2), vesting_slots=9_000, unbond_slots=9_000)
    driver.start()
    for is_last in (False, True):
        driver.run_out()
        driver.advance_phase()
        if is_last:
            driver.send(pause(driver), driver.authority)
        driver.run_out()
        driver.close()
    assert driver.run.phase == Phase.PAUSED
    driver.send(resume(driver), driver.authority)
    assert driver.run.phase == Phase.HALTED


def test_between_rounds_a_pause_stops_the_clock_at_once():
    driver = driver_of()
    driver.advance_phase()
    assert driver.run.phase == Phase.WARMUP
    start, end = driver.run.phase_start_slot, driver.run.phase_end_slot
    driver.send(pause(driver), driver.authority)
    assert driver.run.phase == Phase.PAUSED and driver.run.resume_phase == Phase.WARMUP
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.chain.advance(100)
    landed = driver.send(resume(driver), driver.authority).event("RunResumed")
    assert_fields(landed, phase=Phase.WARMUP, paused_slots=100)
    run = driver.run
    assert_fields(run, phase_start_slot=start + 100, phase_end_slot=end + 100)
    assert run.paused_at_slot == NONE and run.pause_total_slots == 100


def test_within_a_round_a_pause_waits_for_the_close():
    driver = driver_of()
    driver.start()
    driver.send(pause(driver), driver.authority)
    assert driver.run.flags == RunFlag.PAUSE_REQUESTED
    assert driver.refused(pause(driver), driver.authority) == "AlreadyPaused"
    driver.commit_all()
    driver.attest_all()
    landed = driver.close()
    assert "RunPaused" in landed.names()
    assert driver.run.phase == Phase.PAUSED and driver.run.round == 1
    assert driver.refused(driver.commit_instruction(0), driver.sessions[0]) == "WrongPhase"
    driver.chain.advance(50)
    driver.send(resume(driver), driver.authority)
    assert driver.run.phase == Phase.COMMIT and driver.open.round == 1
    assert driver.run.phase_start_slot == driver.slot
    driver.play(2)


def test_a_requested_pause_can_be_taken_back_but_only_by_the_authority():
    driver = driver_of()
    driver.start()
    driver.send(pause(driver), driver.authority)
    assert driver.refused(resume(driver, driver.cranker), driver.cranker) == "WrongAuthority"
    assert driver.send(resume(driver), driver.authority).names() == ["PauseCancelled"]
    assert driver.run.flags == 0
    driver.play()
    assert driver.run.phase == Phase.COMMIT


def test_a_member_that_leaves_during_a_pause_is_gone_when_it_ends():
    driver = driver_of()
    driver.start()
    driver.send(pause(driver), driver.authority)
    driver.commit_all()
    driver.attest_all()
    driver.close()
    leave = make.leave_run(driver.at, driver.owners[3].pubkey())
    assert driver.send(leave, driver.owners[3]).event("LeaveRequested").at_next_open
    driver.send(resume(driver), driver.authority)
    assert driver.open.members == 0b0111


def test_a_leaving_member_may_become_inactive_in_the_close_that_pauses():
    driver = driver_of(5)
    driver.start()
    for _ in range(2):
        driver.commit_all([0, 1, 2, 3])
        driver.attest_all([0, 1, 2, 3])
        driver.close()
    leave = make.leave_run(driver.at, driver.owners[4].pubkey())
    driver.send(leave, driver.owners[4])
    driver.send(pause(driver), driver.authority)
    driver.commit_all([0, 1, 2, 3])
    driver.attest_all([0, 1, 2, 3])
    driver.close()
    driver.send(resume(driver), driver.authority)
    assert driver.open.members == 0b01111


def test_pauses_have_a_budget_and_then_anyone_ends_them():
    driver = driver_of()
    driver.send(pause(driver), driver.authority)
    driver.chain.advance(BUDGET - 1)
    assert driver.refused(resume(driver, driver.cranker), driver.cranker) == "PauseBudgetRemaining"
    driver.chain.advance()
    driver.send(resume(driver, driver.cranker), driver.cranker)
    assert driver.refused(pause(driver), driver.authority) == "PauseBudgetSpent"
    # The budget comes back once no pause has touched the last unbond_slots.
    driver.chain.advance(driver.params.unbond_slots - 1)
    assert driver.refused(pause(driver), driver.authority) == "PauseBudgetSpent"
    driver.chain.advance()
    driver.send(pause(driver), driver.authority)


def test_short_pauses_add_up_and_no_boundary_renews_them():
    """However the authority cuts its pauses, no stretch of unbond_slots holds more than allowed."""
    driver = driver_of()
    for _ in range(3):
        driver.send(pause(driver), driver.authority)
        driver.chain.advance(BUDGET // 3)
        driver.send(resume(driver), driver.authority)
        driver.chain.advance(driver.params.unbond_slots // 3)
    assert driver.refused(pause(driver), driver.authority) == "PauseBudgetSpent"


def test_only_the_authority_pauses_and_only_a_pause_can_end():
    driver = driver_of()
    foreign = make.pause_run(driver.at, driver.cranker.pubkey())
    assert driver.refused(foreign, driver.cranker) == "WrongAuthority"
    assert driver.refused(resume(driver), driver.authority) == "NotPaused"
    never = RoundDriver(2, max_pause_slots=0)
    assert never.refused(pause(never), never.authority) == "PauseBudgetSpent"


def test_a_pause_holds_a_withdrawal_back_by_its_own_length_and_stops_no_matured_one():
    driver = driver_of()
    owners, unbond = driver.owners[2:4], driver.params.unbond_slots
    early, late = (make.withdraw_stake(driver.at, one.pubkey(), 0) for one in owners)
    driver.send(make.leave_run(driver.at, owners[0].pubkey()), owners[0])
    driver.chain.advance(unbond)
    driver.send(make.leave_run(driver.at, owners[1].pubkey()), owners[1])
    left = driver.slot
    driver.send(pause(driver), driver.authority)
    assert driver.send(early, owners[0]).event("StakeWithdrawn").lamports == 100_000
    driver.chain.advance(unbond)
    assert driver.refused(late, owners[1]) == "NothingToWithdraw"
    driver.send(resume(driver), driver.authority)
    paused = driver.run.pause_total_slots
    driver.chain.advance(left + unbond + paused - 1 - driver.slot)
    assert driver.refused(late, owners[1]) == "NothingToWithdraw"
    driver.chain.advance()
    assert driver.send(late, owners[1]).event("StakeWithdrawn").lamports == 100_000


def test_a_manifest_is_announced_for_a_stored_checkpoint_only():
    driver = RoundDriver(4, checkpoint_every=2)
    driver.start()
    driver.play(3)
    manifest = make.Manifest(2, b"m" * 32, "http://p0/manifest")
    session, owner = driver.sessions[0], driver.owners[0].pubkey()

    def announce(of, index=0, by=session, whose=owner):
        return make.announce_manifest(driver.at, by.pubkey(), whose, index, of)

    landed = driver.send(announce(manifest), session).event("ManifestAnnounced")
    assert_fields(landed, round=2, uri=manifest.uri)
    address = driver.at.participant(owner)
    cold = driver._reader.participant(address, driver._account(address))
    assert cold.manifest_round == 2 and cold.manifest_hash == b"m" * 32

    long = dataclasses.replace(manifest, uri="u" * 97)
    assert driver.refused(announce(long), session) == "InvalidText"
    other = driver.sessions[1]
    assert driver.refused(announce(manifest, by=other), other) == "WrongSessionKey"
    theirs = driver.owners[1].pubkey()
    assert driver.refused(announce(manifest, whose=theirs), session) == "WrongOwner"
    never = dataclasses.replace(manifest, round=1)
    assert driver.refused(announce(never), session) == "Custom(3012)"  # AccountNotInitialized
    program, stored = driver.at.program, announce(manifest).accounts
    mixed = Instruction(program, bytes(announce(never).data), list(stored))
    assert driver.refused(mixed, session) == "WrongCheckpoint"
    assert root_of(2) == driver.run.root
