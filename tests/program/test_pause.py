"""Pauses within their budget, resuming, and parameters that change at an epoch boundary."""

import dataclasses

import pytest
from program.rounds import Stage, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunFlag

BUDGET = 300


def stage_of(num: int = 4, **changes: int) -> Stage:
    return Stage(num, max_pause_slots=BUDGET, **changes)


def pause(stage: Stage):
    return make.pause_run(stage.at, stage.authority.pubkey())


def resume(stage: Stage, by=None):
    signer = (by or stage.authority).pubkey()
    return make.resume_run(stage.at, signer, stage.run.round)


def test_between_rounds_a_pause_stops_the_clock_at_once():
    stage = stage_of()
    stage.tick()
    assert stage.run.phase == Phase.WARMUP
    start, end = stage.run.phase_start_slot, stage.run.phase_end_slot
    stage.send(pause(stage), stage.authority)
    assert stage.run.phase == Phase.PAUSED and stage.run.resume_phase == Phase.WARMUP
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    stage.chain.advance(100)
    landed = stage.send(resume(stage), stage.authority).event("RunResumed")
    assert (landed.phase, landed.paused_slots) == (Phase.WARMUP, 100)
    run = stage.run
    assert (run.phase_start_slot, run.phase_end_slot) == (start + 100, end + 100)
    assert run.paused_at_slot == NONE and run.pause_total_slots == 100


def test_within_a_round_a_pause_waits_for_the_close():
    stage = stage_of()
    stage.start()
    stage.send(pause(stage), stage.authority)
    assert stage.run.flags == RunFlag.PAUSE_REQUESTED
    assert stage.refused(pause(stage), stage.authority) == "AlreadyPaused"
    stage.commit_all()
    stage.attest_all()
    landed = stage.close()
    assert "RunPaused" in landed.names()
    assert stage.run.phase == Phase.PAUSED and stage.run.round == 1
    assert stage.refused(stage.commit_instruction(0), stage.sessions[0]) == "WrongPhase"
    stage.chain.advance(50)
    stage.send(resume(stage), stage.authority)
    assert stage.run.phase == Phase.COMMIT and stage.open.round == 1
    assert stage.run.phase_start_slot == stage.slot
    stage.play(2)


def test_a_requested_pause_can_be_taken_back_but_only_by_the_authority():
    stage = stage_of()
    stage.start()
    stage.send(pause(stage), stage.authority)
    assert stage.refused(resume(stage, stage.cranker), stage.cranker) == "WrongAuthority"
    assert stage.send(resume(stage), stage.authority).names() == ["PauseCancelled"]
    assert stage.run.flags == 0
    stage.play()
    assert stage.run.phase == Phase.COMMIT


def test_a_member_that_leaves_during_a_pause_is_gone_when_it_ends():
    stage = stage_of()
    stage.start()
    stage.send(pause(stage), stage.authority)
    stage.commit_all()
    stage.attest_all()
    stage.close()
    leave = make.leave_run(stage.at, stage.owners[3].pubkey())
    assert stage.send(leave, stage.owners[3]).event("LeaveRequested").at_next_open
    stage.send(resume(stage), stage.authority)
    assert stage.open.members == 0b0111


def test_a_leaving_member_may_become_inactive_in_the_close_that_pauses():
    stage = stage_of(5)
    stage.start()
    for _ in range(2):
        stage.commit_all([0, 1, 2, 3])
        stage.attest_all([0, 1, 2, 3])
        stage.close()
    leave = make.leave_run(stage.at, stage.owners[4].pubkey())
    stage.send(leave, stage.owners[4])
    stage.send(pause(stage), stage.authority)
    stage.commit_all([0, 1, 2, 3])
    stage.attest_all([0, 1, 2, 3])
    stage.close()
    stage.send(resume(stage), stage.authority)
    assert stage.open.members == 0b01111


def test_pauses_have_a_budget_and_then_anyone_ends_them():
    stage = stage_of()
    stage.send(pause(stage), stage.authority)
    stage.chain.advance(BUDGET - 1)
    assert stage.refused(resume(stage, stage.cranker), stage.cranker) == "PauseBudgetRemaining"
    stage.chain.advance()
    stage.send(resume(stage, stage.cranker), stage.cranker)
    assert stage.refused(pause(stage), stage.authority) == "PauseBudgetSpent"
    # The budget comes back once no pause has touched the last unbond_slots.
    stage.chain.advance(stage.params.unbond_slots - 1)
    assert stage.refused(pause(stage), stage.authority) == "PauseBudgetSpent"
    stage.chain.advance()
    stage.send(pause(stage), stage.authority)


def test_short_pauses_add_up_and_no_boundary_renews_them():
    """However the authority cuts its pauses, no stretch of unbond_slots holds more than allowed."""
    stage = stage_of()
    for _ in range(3):
        stage.send(pause(stage), stage.authority)
        stage.chain.advance(BUDGET // 3)
        stage.send(resume(stage), stage.authority)
        stage.chain.advance(stage.params.unbond_slots // 3)
    assert stage.refused(pause(stage), stage.authority) == "PauseBudgetSpent"


def test_only_the_authority_pauses_and_only_a_pause_can_end():
    stage = stage_of()
    foreign = make.pause_run(stage.at, stage.cranker.pubkey())
    assert stage.refused(foreign, stage.cranker) == "WrongAuthority"
    assert stage.refused(resume(stage), stage.authority) == "NotPaused"
    never = Stage(2, max_pause_slots=0)
    assert never.refused(pause(never), never.authority) == "PauseBudgetSpent"


def test_a_pause_stops_no_matured_withdrawal():
    stage = stage_of()
    leave = make.leave_run(stage.at, stage.owners[3].pubkey())
    stage.send(leave, stage.owners[3])
    stage.send(pause(stage), stage.authority)
    stage.chain.advance(stage.params.unbond_slots)
    paid = stage.send(make.withdraw_stake(stage.at, stage.owners[3].pubkey(), 0), stage.owners[3])
    assert paid.event("StakeWithdrawn").lamports == 100_000


def update(stage: Stage, **changes: int):
    params = dataclasses.replace(stage.run.params, **changes)
    return make.update_params(stage.at, stage.authority.pubkey(), params)


def test_parameters_change_at_the_first_epoch_boundary_after_the_delay():
    stage = Stage(4, rounds_per_epoch=4, param_delay_slots=10)
    stage.start()
    stage.play(3)
    requested = stage.send(update(stage, reward_per_payload=500), stage.authority)
    assert requested.names() == ["ParamsRequested"]
    stage.play()
    # Round 4 starts an epoch, but the delay has not passed.
    assert stage.run.round == 4 and stage.run.params.reward_per_payload == 1_000
    stage.chain.advance(10)
    stage.play(3)
    assert stage.run.params.reward_per_payload == 1_000
    landed = stage.play()
    assert landed.event("ParamsApplied").epoch == 2
    assert stage.run.params.reward_per_payload == 500
    assert stage.run.flags == 0 and stage.run.params_requested_slot == NONE
    before = sum(stage.entries[0].bucket_amount) + stage.entries[0].claimable
    stage.play()
    assert sum(stage.entries[0].bucket_amount) + stage.entries[0].claimable == before + 500


@pytest.mark.parametrize(
    ("error", "changes"),
    [
        ("ImmutableParameter", {"capacity": 15}),
        ("ImmutableParameter", {"ring": 17}),
        ("ImmutableParameter", {"keep_rounds": 5}),
        ("ImmutableParameter", {"rounds_per_epoch": 51}),
        ("ImmutableParameter", {"residual_rounds": 51}),
        ("ImmutableParameter", {"vesting_slots": 3_001}),
        ("ImmutableParameter", {"unbond_slots": 3_601}),
        ("ImmutableParameter", {"case_slots": 601}),
        ("ImmutableParameter", {"sequences_per_payload": 3}),
        ("ImmutableParameter", {"max_rounds": 41}),
        ("ImmutableParameter", {"admission": 1}),
        ("StakeTooSmall", {"stake_lamports": 59_999}),
        *[
            ("WindowShrinks", {f"{name}_slots": 1})
            for name in (
                *("warmup", "commit", "attest", "close_grace", "param_delay", "openings"),
                *("verdict_commit", "verdict_reveal", "committee_commit", "committee_reveal"),
                *("appeal", "breaker"),
            )
        ],
        ("PenaltyGrows", {"absence_fee": 1_001}),
        ("PenaltyGrows", {"recompute_cost": 1_001}),
        ("PenaltyGrows", {"witness_fee": 201}),
    ],
)
def test_what_layouts_and_training_depend_on_never_changes(error, changes):
    stage = Stage(0)
    assert stage.refused(update(stage, **changes), stage.authority) == error


def test_only_the_authority_changes_parameters():
    stage = Stage(0)
    foreign = make.update_params(stage.at, stage.cranker.pubkey(), stage.run.params)
    assert stage.refused(foreign, stage.cranker) == "WrongAuthority"


def test_a_manifest_is_announced_for_a_stored_checkpoint_only():
    stage = Stage(4, checkpoint_every=2)
    stage.start()
    stage.play(3)
    manifest = make.Manifest(2, b"m" * 32, "http://p0/manifest")
    session, owner = stage.sessions[0], stage.owners[0].pubkey()

    def announce(of, index=0, by=session, whose=owner):
        return make.announce_manifest(stage.at, by.pubkey(), whose, index, of)

    landed = stage.send(announce(manifest), session).event("ManifestAnnounced")
    assert (landed.round, landed.uri) == (2, manifest.uri)
    address = stage.at.participant(owner)
    cold = stage._reader.participant(address, stage._account(address))
    assert cold.manifest_round == 2 and cold.manifest_hash == b"m" * 32

    long = dataclasses.replace(manifest, uri="u" * 97)
    assert stage.refused(announce(long), session) == "InvalidText"
    other = stage.sessions[1]
    assert stage.refused(announce(manifest, by=other), other) == "WrongSessionKey"
    theirs = stage.owners[1].pubkey()
    assert stage.refused(announce(manifest, whose=theirs), session) == "WrongOwner"
    never = dataclasses.replace(manifest, round=1)
    assert stage.refused(announce(never), session) == "Custom(3012)"  # AccountNotInitialized
    assert root_of(2) == stage.run.root
