"""The life of a run: join, warmup, rounds, checkpoints, cooldown, finish."""

from support.fields import assert_fields
from support.program.rounds import RoundDriver, header_of, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RoundFlag, SeedStatus, Status


def test_a_whole_life_with_four_participants() -> None:
    driver = RoundDriver(4, max_rounds=6, checkpoint_every=3, keep_rounds=2)
    assert driver.run.phase == Phase.WAITING_FOR_MEMBERS
    driver.start()
    assert driver.run.phase == Phase.COMMIT
    assert driver.open.members == driver.open.trainers == 0b1111
    landed = driver.play(6)
    assert landed.names() == ["RoundClosed", "RoundSettled", "RoundOpened"]
    run = driver.run
    assert_fields(run, phase=Phase.COOLDOWN, round=6, cursor=6 * 4 * 2)
    assert driver.open.flags == RoundFlag.ROOT_ONLY
    landed = driver.cool_down()
    run = driver.run
    assert run.phase == Phase.FINISHED
    assert_fields(run, "the root-only step advances neither", round=6, cursor=48)
    assert_fields(run, root=root_of(6), root_round=6, root_cursor=48)
    assert run.finished_slot == driver.slot
    assert [e.status for e in driver.entries[:4]] == [Status.PENDING] * 4
    # Rounds 3 and the last one stored a checkpoint: every third round, and Cooldown.
    stored = [e.round for e in driver.ledger.events if e.name == "CheckpointStored"]
    assert stored == [3, 6]
    assert run.num_checkpoints == 2
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"


def test_a_close_records_what_everyone_did_and_pays_for_it() -> None:
    driver = RoundDriver(4)
    driver.start()
    pool = driver.run.reward_pool
    driver.commit_all()
    driver.attest_all()
    landed = driver.close()
    closed = driver.round(0)
    assert closed.flags == RoundFlag.CLOSED
    assert closed.included == 0b1111
    assert closed.canonical_root == root_of(0)
    assert closed.ballots[2].header_hash == header_of(2, 0)
    assert closed.ballots[2].root_vote == driver.vote(2, 0, root_of(0))
    assert closed.ballots[3].attest_bitmap == 0b1111
    assert_fields(closed, seed_status=SeedStatus.PENDING, seed_slot=closed.close_slot + 2)
    window = closed.close_slot // -(-driver.params.vesting_slots // 2)
    assert_fields(closed, reward_paid=1_000, reward_window=window)
    assert driver.run.reward_pool == pool - 4_000
    for entry in driver.entries[:4]:
        assert entry.bucket_amount[window % 3] == 1_000
        assert_fields(entry, last_included=0, rounds_served=1, included_since_strike=1)
    settled = landed.event("RoundSettled")
    assert_fields(settled, missed_commit=0, missed_attest=0, struck=0)
    following = driver.open
    assert_fields(following, round=1, cursor=8, base_round=0)
    assert [s.previous_included for s in following.ballots[:5]] == [0, 0, 0, 0, NONE]


def test_a_witness_attests_and_does_not_train() -> None:
    driver = RoundDriver(4, roles=[1, 3, 2, 1], seat_after_rounds=1)
    driver.start()
    assert_fields(driver.open, members=0b1111, trainers=0b1011)
    assert driver.open.eligible == 0b0110, "whoever was there before the first round"
    session = driver.sessions[2]
    commit = make.commit_payload(driver.at, session.pubkey(), 2, 0, header_of(2, 0), b"v" * 32)
    assert driver.refused(commit, session) == "NotATrainer"
    driver.play()
    assert driver.open.eligible == 0b0110
    assert driver.run.cursor == 3 * 2, "the cursor advances by the trainers' sequences"
    assert driver.entries[2].rounds_served == 1
    assert driver.entries[2].last_included == NONE


def test_previous_round_is_forgotten_at_a_new_residual_period() -> None:
    driver = RoundDriver(2, residual_rounds=3)
    driver.start()
    driver.play(2)
    assert driver.open.ballots[0].previous_included == 1
    driver.play(1)
    assert driver.open.round == 3
    assert driver.open.ballots[0].previous_included == NONE
    driver.play(1)
    assert driver.open.ballots[0].previous_included == 3


def test_a_pool_that_cannot_pay_scales_the_rewards_down() -> None:
    driver = RoundDriver(3, pool=2_000)
    driver.start()
    landed = driver.play()
    scaled = landed.event("RewardsScaled")
    assert_fields(scaled, reward_per_payload=1_000, reward_paid=666)
    assert driver.run.reward_pool == 2
    assert driver.play().event("RoundSettled").reward_paid == 0


def test_rewards_vest_into_claimable_when_their_bucket_is_needed_again() -> None:
    driver = RoundDriver(2)
    driver.start()
    driver.play()
    half = -(-driver.params.vesting_slots // 2)
    while driver.slot // half % 3 != driver.round(0).reward_window % 3 or driver.slot < 3 * half:
        driver.chain.advance(min(half, 100))
    assert driver.run.total_claimable == 0
    # Nobody acted in the round that was open meanwhile: it closes void, a second one follows.
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    landed = driver.play()
    assert landed.event("RoundSettled").vested == 2_000
    assert driver.entries[0].claimable == 1_000
    assert driver.run.total_unvested == 2_000


def test_a_checkpoint_needs_its_account_and_survives_a_prefunded_address() -> None:
    driver = RoundDriver(2, checkpoint_every=1)
    driver.start()
    driver.play()
    assert driver.run.root_round == 0, "the first grid point is round 1"
    driver.commit_all()
    driver.attest_all()
    bare = make.close_round(
        driver.at, driver.cranker.pubkey(), 1, root_of(1), with_checkpoint=False
    )
    assert driver.refused(bare, driver.cranker) == "CheckpointAccountMissing"
    driver.chain.airdrop(driver.at.checkpoint(1), 1_000_000)
    landed = driver.close()
    assert landed.event("CheckpointStored").created
    account = driver.chain.accounts.get(driver.at.checkpoint(1))
    assert account is not None
    assert account.owner == driver.at.program
    assert account.lamports == driver.chain.minimum_balance(len(account.data))
    assert_fields(driver.run, root=root_of(1), root_round=1, root_cursor=4)


def test_the_seed_of_a_kept_round_gates_the_open() -> None:
    driver = RoundDriver(2, keep_rounds=2)
    driver.start()
    driver.play(1)
    driver.commit_all()
    driver.attest_all()
    assert driver.refused(driver.close_instruction(), driver.cranker) == "SeedPending"
    driver.freeze_old_seed()
    driver.close()
    assert driver.run.round == 2


def test_the_last_commit_and_the_last_attestation_carry_the_transition() -> None:
    driver = RoundDriver(2)
    driver.start()
    driver.commit(0)
    both = [driver.commit_instruction(1), driver.tick_instruction()]
    driver.send(both, driver.sessions[1], driver.cranker)
    assert driver.run.phase == Phase.ATTEST
    driver.attest(0)
    both = [driver.attest_instruction(1), driver.close_instruction()]
    driver.send(both, driver.sessions[1], driver.cranker)
    assert_fields(driver.run, phase=Phase.COMMIT, round=1)
