"""The end of a run: rounds, checkpoints, leftovers, vault, roster, run."""

from program.rounds import SOL, Stage, root_of
from program.test_create import AUTHORITY, bench, create, rosters
from solders.account import Account
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase


def close(stage: Stage, pairs=(), by: Keypair | None = None):
    authority = (by or stage.authority).pubkey()
    return make.close_run(stage.at, authority, stage.authority.pubkey(), pairs)


def round_pairs(stage: Stage) -> list[tuple[Pubkey, Pubkey]]:
    payer = stage.authority.pubkey()
    return [(stage.at.round(position), payer) for position in range(stage.params.ring)]


def finished(**changes: int) -> Stage:
    stage = Stage(3, max_rounds=2, join_until_round=2, checkpoint_every=1, **changes)
    stage.start()
    stage.play(2)
    assert stage.run.phase == Phase.COOLDOWN
    stage.cool_down()
    assert stage.run.phase == Phase.FINISHED
    assert stage.run.root == root_of(2)
    return stage


def settle(stage: Stage) -> None:
    """Everybody leaves, claims and withdraws; then the last case could no longer be open."""
    for owner in stage.owners:
        stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    last = stage.run.finished_slot + longest_settlement_slots(stage.params)
    # Rewards of the first window of 1500 slots vest 3000 slots after its end.
    stage.chain.advance(max(last + 1, stage.slot + stage.params.unbond_slots, 4_500) - stage.slot)
    for owner in stage.owners:
        stage.send(make.claim_reward(stage.at, owner.pubkey()), owner)
        stage.send(make.withdraw_stake(stage.at, owner.pubkey(), 0), owner)


def checkpoint_pairs(stage: Stage) -> list[tuple[Pubkey, Pubkey]]:
    found = []
    for round_ in range(stage.run.round + 1):
        account = stage._account(stage.at.checkpoint(round_))
        if account is not None:
            found.append((stage.at.checkpoint(round_), stage.cranker.pubkey()))
    return found


def test_a_run_ends_with_every_lamport_back_where_it_came_from():
    stage = finished()
    settle(stage)
    assert stage.run.num_participants == 0
    pairs = round_pairs(stage)
    rent = stage.chain.accounts.balance(pairs[0][0])
    pool = stage.run.reward_pool
    before = stage.chain.accounts.balance(stage.authority.pubkey())
    landed = stage.send(close(stage, pairs[:8]), stage.authority)
    assert landed.names() == ["AccountClosed"] * 8 + ["LeftoversPaid"]
    assert landed.event("LeftoversPaid").lamports == pool
    after = stage.chain.accounts.balance(stage.authority.pubkey())
    assert after == before + 8 * rent + pool - 5_000

    stage.send(close(stage, pairs[8:]), stage.authority)
    assert stage.run.num_rounds == 0 and stage.run.num_checkpoints == 2
    checkpoints = checkpoint_pairs(stage)
    cranker = stage.chain.accounts.balance(stage.cranker.pubkey())
    refund = sum(stage.chain.accounts.balance(address) for address, _ in checkpoints)
    rest = sum(
        stage.chain.accounts.balance(a) for a in (stage.at.run, stage.at.roster, stage.at.vault)
    )
    before = stage.chain.accounts.balance(stage.authority.pubkey())
    stage.chain.send(stage._signed(close(stage, checkpoints), [stage.authority]))
    assert stage.chain.accounts.balance(stage.cranker.pubkey()) == cranker + refund
    assert stage.chain.accounts.balance(stage.authority.pubkey()) == before + rest - 5_000
    assert not stage.chain.accounts.of_program(stage.at.program)


def test_nothing_is_closed_while_cases_may_be_open():
    stage = Stage(3, max_rounds=2, join_until_round=2)
    assert stage.refused(close(stage), stage.authority) == "RunNotFinished"
    stage = finished()
    last = stage.run.finished_slot + longest_settlement_slots(stage.params)
    stage.chain.advance(last - stage.slot)
    assert stage.refused(close(stage), stage.authority) == "CasesMayBeOpen"
    stage.chain.advance()
    landed = stage.send(close(stage), stage.authority)
    assert landed.names() == ["LeftoversPaid"]


def test_who_never_came_back_still_finds_stake_and_rewards():
    stage = finished()
    last = stage.run.finished_slot + longest_settlement_slots(stage.params)
    stage.chain.advance(last + 1 - stage.slot)
    stage.send(close(stage, round_pairs(stage)[:8]), stage.authority)
    stage.send(close(stage, round_pairs(stage)[8:]), stage.authority)
    stage.send(close(stage, checkpoint_pairs(stage)), stage.authority)
    assert stage.refused(close(stage), stage.authority) == "NothingToClose"
    assert stage.run.total_stake == 300_000
    settle(stage)
    stage.chain.send(stage._signed(close(stage), [stage.authority]))
    assert not stage.chain.accounts.of_program(stage.at.program)


def test_rent_goes_only_to_the_recorded_payer_and_accounts_close_once():
    stage = finished()
    settle(stage)
    pair, stranger = round_pairs(stage)[0], stage.cranker.pubkey()
    assert stage.refused(close(stage, [(pair[0], stranger)]), stage.authority) == "WrongPayer"
    assert stage.refused(close(stage, [pair, pair]), stage.authority) == "WrongAddress"
    itself = (pair[0], pair[0])
    assert stage.refused(close(stage, [itself]), stage.authority) == "WrongPayer"
    odd = close(stage, [pair])
    odd = type(odd)(odd.program_id, bytes(odd.data), list(odd.accounts)[:-1])
    assert stage.refused(odd, stage.authority) == "AccountMissing"
    foreign = (stage.owners[0].pubkey(), stranger)
    assert stage.refused(close(stage, [foreign]), stage.authority) == "WrongAddress"
    for address in (stage.at.run, stage.at.roster, stage.at.vault):
        name = stage.refused(close(stage, [(address, stranger)]), stage.authority)
        assert name.startswith("Custom(") or name in ("InvalidInstructionData", "AccountMissing")
    by = close(stage, by=stage.cranker)
    assert stage.refused(by, stage.cranker) == "WrongAuthority"


def test_a_participant_that_is_owed_something_cannot_be_closed():
    stage = finished()
    last = stage.run.finished_slot + longest_settlement_slots(stage.params)
    stage.chain.advance(last + 1 - stage.slot)
    owner = stage.owners[0].pubkey()
    pair = (stage.at.participant(owner), owner)
    assert stage.refused(close(stage, [pair]), stage.authority) == "NothingToClose"


def test_a_run_that_nobody_joined_can_be_taken_back():
    of = bench()
    of.create([create(of), *rosters(of)], AUTHORITY)
    of.send(make.init_round(of.at, AUTHORITY.pubkey(), 0), AUTHORITY)
    of.send(make.fund_run(of.at, AUTHORITY.pubkey(), SOL), AUTHORITY)
    payer = AUTHORITY.pubkey()
    built = make.close_run(of.at, payer, payer, [(of.at.round(0), payer)])
    of.chain.send(of._signed(built, [AUTHORITY]))
    assert not of.chain.accounts.of_program(of.at.program)
    # The address is free again.
    of.chain.send(of._signed(create(of), [AUTHORITY]))


def test_a_leaving_member_has_left_when_the_run_finishes():
    stage = Stage(3, max_rounds=1, join_until_round=1)
    stage.start()
    stage.play()
    owner = stage.owners[2]
    assert stage.run.phase == Phase.COOLDOWN
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    stage.cool_down()
    assert stage.run.phase == Phase.FINISHED
    stage.chain.advance(stage.params.unbond_slots)
    stage.send(make.withdraw_stake(stage.at, owner.pubkey(), 0), owner)


def test_a_run_that_never_began_is_its_authority_s_to_give_up():
    """Somebody joins and never leaves; too few come. The pool must not be held for ever."""
    stage = Stage(1)
    end = make.tick(stage.at, stage.authority.pubkey(), 0)
    assert stage.refused(end, stage.authority) == "NothingDue"
    stage.chain.advance(stage.run.phase_start_slot + stage.params.unbond_slots - stage.slot)
    assert stage.refused(end, stage.authority) == "NothingDue"
    stage.chain.advance()
    assert stage.refused(stage.tick_instruction(), stage.cranker) == "NothingDue"
    stage.send(end, stage.authority)
    assert stage.run.phase == Phase.FINISHED
    owner = stage.owners[0]
    stage.send(make.leave_run(stage.at, owner.pubkey()), owner)


def test_a_payer_that_became_a_program_does_not_keep_the_run_open():
    stage = finished()
    settle(stage)
    program = stage.cranker.pubkey()
    held = stage.chain.accounts.get(program)
    loader = Pubkey.from_string("BPFLoader2111111111111111111111111111111111")
    image = artifacts.program_image()
    balance = max(held.lamports, stage.chain.minimum_balance(len(image)))
    stage.chain.accounts.set(program, Account(balance, image, loader, executable=True))
    before = stage.chain.accounts.balance(stage.authority.pubkey())
    pair = checkpoint_pairs(stage)[0]
    rent = stage.chain.accounts.balance(pair[0])
    pool = stage.run.reward_pool
    landed = stage.send(close(stage, [pair]), stage.authority)
    assert landed.event("AccountClosed").payer == stage.authority.pubkey()
    assert stage.chain.accounts.balance(stage.authority.pubkey()) == before + rent + pool - 5_000
