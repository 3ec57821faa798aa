"""The life of a run: join, warmup, rounds, checkpoints, cooldown, finish."""

from program.rounds import Stage, header_of, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, SeedStatus, Status


def test_a_whole_life_with_four_participants() -> None:
    stage = Stage(4, max_rounds=6, checkpoint_every=3, keep_rounds=2)
    assert stage.run.phase == Phase.WAITING_FOR_MEMBERS
    stage.start()
    assert stage.run.phase == Phase.COMMIT
    assert stage.open.members == stage.open.trainers == 0b1111
    landed = stage.play(6)
    assert landed.names() == ["RoundClosed", "RoundSettled", "RoundOpened"]
    run = stage.run
    assert (run.phase, run.round, run.cursor) == (Phase.COOLDOWN, 6, 6 * 4 * 2)
    assert stage.open.flags == RoundFlag.ROOT_ONLY
    landed = stage.cool_down()
    run = stage.run
    assert run.phase == Phase.FINISHED
    assert (run.round, run.cursor) == (6, 48), "the root-only step advances neither"
    assert (run.root, run.root_round, run.root_cursor) == (root_of(6), 6, 48)
    assert run.finished_slot == stage.slot
    assert [e.status for e in stage.entries[:4]] == [Status.PENDING] * 4
    # Rounds 3 and the last one stored a checkpoint: every third round, and Cooldown.
    stored = [e.round for e in stage.ledger.events if e.name == "CheckpointStored"]
    assert stored == [3, 6]
    assert run.num_checkpoints == 2
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"


def test_a_close_records_what_everyone_did_and_pays_for_it() -> None:
    stage = Stage(4)
    stage.start()
    pool = stage.run.reward_pool
    stage.commit_all()
    stage.attest_all()
    landed = stage.close()
    closed = stage.round(0)
    assert closed.flags == RoundFlag.CLOSED
    assert closed.included == 0b1111
    assert closed.canonical_root == root_of(0)
    assert closed.slots[2].header_hash == header_of(2, 0)
    assert closed.slots[2].root_vote == stage.vote(2, 0, root_of(0))
    assert closed.slots[3].attest_bitmap == 0b1111
    assert (closed.seed_status, closed.seed_slot) == (SeedStatus.PENDING, closed.close_slot + 2)
    window = closed.close_slot // -(-stage.params.vesting_slots // 2)
    assert (closed.reward_paid, closed.reward_window) == (1_000, window)
    assert stage.run.reward_pool == pool - 4_000
    for entry in stage.entries[:4]:
        assert entry.bucket_amount[window % 3] == 1_000
        assert (entry.last_included, entry.rounds_served, entry.included_since_strike) == (0, 1, 1)
    settled = landed.event("RoundSettled")
    assert (settled.missed_commit, settled.missed_attest, settled.struck) == (0, 0, 0)
    following = stage.open
    assert (following.round, following.cursor, following.base_round) == (1, 8, 0)
    assert [s.previous_included for s in following.slots[:5]] == [0, 0, 0, 0, NONE]


def test_a_witness_attests_and_does_not_train() -> None:
    stage = Stage(4, roles=[1, 3, 2, 1], seat_after_rounds=1)
    stage.start()
    assert (stage.open.members, stage.open.trainers) == (0b1111, 0b1011)
    assert stage.open.eligible == 0, "a seat is earned by a round of service"
    session = stage.sessions[2]
    commit = make.commit_payload(stage.at, session.pubkey(), 2, 0, header_of(2, 0), b"v" * 32)
    assert stage.refused(commit, session) == "NotATrainer"
    stage.play()
    assert stage.open.eligible == 0b0110
    assert stage.run.cursor == 3 * 2, "the cursor advances by the trainers' sequences"
    assert stage.entries[2].rounds_served == 1
    assert stage.entries[2].last_included == NONE


def test_previous_round_is_forgotten_at_a_new_residual_period() -> None:
    stage = Stage(2, residual_rounds=3)
    stage.start()
    stage.play(2)
    assert stage.open.slots[0].previous_included == 1
    stage.play(1)
    assert stage.open.round == 3
    assert stage.open.slots[0].previous_included == NONE
    stage.play(1)
    assert stage.open.slots[0].previous_included == 3


def test_a_pool_that_cannot_pay_scales_the_rewards_down() -> None:
    stage = Stage(3, pool=2_000)
    stage.start()
    landed = stage.play()
    scaled = landed.event("RewardsScaled")
    assert (scaled.reward_per_payload, scaled.reward_paid) == (1_000, 666)
    assert stage.run.reward_pool == 2
    assert stage.play().event("RoundSettled").reward_paid == 0


def test_rewards_vest_into_claimable_when_their_bucket_is_needed_again() -> None:
    stage = Stage(2)
    stage.start()
    stage.play()
    half = -(-stage.params.vesting_slots // 2)
    while stage.slot // half % 3 != stage.round(0).reward_window % 3 or stage.slot < 3 * half:
        stage.chain.advance(min(half, 100))
    assert stage.run.total_claimable == 0
    # Nobody acted in the round that was open meanwhile: it closes void, a second one follows.
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    landed = stage.play()
    assert landed.event("RoundSettled").vested == 2_000
    assert stage.entries[0].claimable == 1_000
    assert stage.run.total_unvested == 2_000


def test_a_checkpoint_needs_its_account_and_survives_a_prefunded_address() -> None:
    stage = Stage(2, checkpoint_every=1)
    stage.start()
    stage.play()
    assert stage.run.root_round == 0, "the first grid point is round 1"
    stage.commit_all()
    stage.attest_all()
    bare = make.close_round(stage.at, stage.cranker.pubkey(), 1, root_of(1), with_checkpoint=False)
    assert stage.refused(bare, stage.cranker) == "CheckpointAccountMissing"
    stage.chain.airdrop(stage.at.checkpoint(1), 1_000_000)
    landed = stage.close()
    assert landed.event("CheckpointStored").created
    account = stage.chain.accounts.get(stage.at.checkpoint(1))
    assert account is not None
    assert account.owner == stage.at.program
    assert account.lamports == stage.chain.minimum_balance(len(account.data))
    assert (stage.run.root, stage.run.root_round, stage.run.root_cursor) == (root_of(1), 1, 4)


def test_the_seed_of_a_kept_round_gates_the_open() -> None:
    stage = Stage(2, keep_rounds=2)
    stage.start()
    stage.play(1)
    stage.commit_all()
    stage.attest_all()
    assert stage.refused(stage.close_instruction(), stage.cranker) == "SeedPending"
    stage.freeze_old_seed()
    stage.close()
    assert stage.run.round == 2


def test_the_last_commit_and_the_last_attestation_carry_the_transition() -> None:
    stage = Stage(2)
    stage.start()
    stage.commit(0)
    both = [stage.commit_instruction(1), stage.tick_instruction()]
    stage.send(both, stage.sessions[1], stage.cranker)
    assert stage.run.phase == Phase.ATTEST
    stage.attest(0)
    both = [stage.attest_instruction(1), stage.close_instruction()]
    stage.send(both, stage.sessions[1], stage.cranker)
    assert (stage.run.phase, stage.run.round) == (Phase.COMMIT, 1)
