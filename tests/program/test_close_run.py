"""The end of a run: rounds, checkpoints, leftovers, vault, roster, run."""

from solders.account import Account
from solders.pubkey import Pubkey
from support.program.closing import checkpoint_pairs, close, round_pairs
from support.program.creation import AUTHORITY, create, new_chain, rosters
from support.program.rounds import SOL, RoundDriver, key, root_of

from troth_coordinator import artifacts
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase


def finished(**changes: int) -> RoundDriver:
    driver = RoundDriver(3, max_rounds=2, join_until_round=2, checkpoint_every=1, **changes)
    driver.start()
    driver.play(2)
    assert driver.run.phase == Phase.COOLDOWN
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    assert driver.run.root == root_of(2)
    return driver


def settle(driver: RoundDriver) -> None:
    """Everybody leaves, claims and withdraws; then the last case could no longer be open."""
    for owner in driver.owners:
        driver.send(make.leave_run(driver.at, owner.pubkey()), owner)
    last = driver.run.finished_slot + longest_settlement_slots(driver.params)
    # Rewards of the first window of 1500 slots vest 3000 slots after its end.
    driver.chain.advance(
        max(last + 1, driver.slot + driver.params.unbond_slots, 4_500) - driver.slot
    )
    for owner in driver.owners:
        driver.send(make.claim_reward(driver.at, owner.pubkey()), owner)
        driver.send(make.withdraw_stake(driver.at, owner.pubkey(), 0), owner)


def test_a_run_ends_with_every_lamport_back_where_it_came_from():
    driver = finished()
    settle(driver)
    assert driver.run.num_participants == 0
    pairs = round_pairs(driver)
    rent = driver.chain.accounts.balance(pairs[0][0])
    pool = driver.run.reward_pool
    before = driver.chain.accounts.balance(driver.authority.pubkey())
    landed = driver.send(close(driver, pairs[:8]), driver.authority)
    assert landed.names() == ["AccountClosed"] * 8 + ["LeftoversPaid"]
    assert landed.event("LeftoversPaid").lamports == pool
    after = driver.chain.accounts.balance(driver.authority.pubkey())
    assert after == before + 8 * rent + pool - 5_000

    driver.send(close(driver, pairs[8:]), driver.authority)
    assert driver.run.num_rounds == 0 and driver.run.num_checkpoints == 2
    checkpoints = checkpoint_pairs(driver)
    cranker = driver.chain.accounts.balance(driver.cranker.pubkey())
    refund = sum(driver.chain.accounts.balance(address) for address, _ in checkpoints)
    rest = sum(
        driver.chain.accounts.balance(a) for a in (driver.at.run, driver.at.roster, driver.at.vault)
    )
    before = driver.chain.accounts.balance(driver.authority.pubkey())
    driver.chain.send(driver._signed(close(driver, checkpoints), [driver.authority]))
    assert driver.chain.accounts.balance(driver.cranker.pubkey()) == cranker + refund
    assert driver.chain.accounts.balance(driver.authority.pubkey()) == before + rest - 5_000
    assert not driver.chain.accounts.of_program(driver.at.program)


def test_nothing_is_closed_while_cases_may_be_open():
    driver = RoundDriver(3, max_rounds=2, join_until_round=2)
    assert driver.refused(close(driver), driver.authority) == "RunNotFinished"
    driver = finished()
    last = driver.run.finished_slot + longest_settlement_slots(driver.params)
    driver.chain.advance(last - driver.slot)
    assert driver.refused(close(driver), driver.authority) == "CasesMayBeOpen"
    driver.chain.advance()
    landed = driver.send(close(driver), driver.authority)
    assert landed.names() == ["LeftoversPaid"]


def test_who_never_came_back_still_finds_stake_and_rewards():
    driver = finished()
    last = driver.run.finished_slot + longest_settlement_slots(driver.params)
    driver.chain.advance(last + 1 - driver.slot)
    driver.send(close(driver, round_pairs(driver)[:8]), driver.authority)
    driver.send(close(driver, round_pairs(driver)[8:]), driver.authority)
    driver.send(close(driver, checkpoint_pairs(driver)), driver.authority)
    assert driver.refused(close(driver), driver.authority) == "NothingToClose"
    assert driver.run.total_stake == 300_000
    settle(driver)
    driver.chain.send(driver._signed(close(driver), [driver.authority]))
    assert not driver.chain.accounts.of_program(driver.at.program)


def test_rent_goes_only_to_the_recorded_payer_and_accounts_close_once():
    driver = finished()
    settle(driver)
    pair, stranger = round_pairs(driver)[0], driver.cranker.pubkey()
    assert driver.refused(close(driver, [(pair[0], stranger)]), driver.authority) == "WrongPayer"
    assert driver.refused(close(driver, [pair, pair]), driver.authority) == "WrongAddress"
    itself = (pair[0], pair[0])
    assert driver.refused(close(driver, [itself]), driver.authority) == "WrongPayer"
    odd = close(driver, [pair])
    odd = type(odd)(odd.program_id, bytes(odd.data), list(odd.accounts)[:-1])
    assert driver.refused(odd, driver.authority) == "AccountMissing"
    foreign = (driver.owners[0].pubkey(), stranger)
    assert driver.refused(close(driver, [foreign]), driver.authority) == "WrongAddress"
    for address in (driver.at.run, driver.at.roster, driver.at.vault):
        name = driver.refused(close(driver, [(address, stranger)]), driver.authority)
        assert name.startswith("Custom(") or name in ("InvalidInstructionData", "AccountMissing")
    other = make.close_run(
        driver.at, stranger, stranger, driver.authority.pubkey(), [(pair[0], pair[1])]
    )
    assert driver.refused(other, driver.cranker) == "WrongAuthority"
    other = make.close_run(driver.at, stranger, driver.authority.pubkey(), stranger, [pair])
    assert driver.refused(other, driver.cranker) == "WrongFunder"


def test_anyone_closes_a_finished_run_and_gains_nothing_by_it():
    """The authority is gone. Its own rent and the leftovers reach it all the same. Threat T91."""
    driver = finished()
    settle(driver)
    stranger, boss = key("stranger"), driver.authority.pubkey()
    driver.chain.airdrop(stranger.pubkey(), SOL)
    funds = driver.chain.accounts.balance
    before = funds(boss) + funds(driver.cranker.pubkey())
    program = driver.chain.accounts.of_program(driver.at.program)
    held = sum(funds(address) for address, _ in program)
    pairs = [*round_pairs(driver), *checkpoint_pairs(driver)]
    batches = [pairs[start : start + 8] for start in range(0, len(pairs), 8)]
    for batch in batches:
        built = close(driver, batch, by=stranger)
        driver.chain.send(driver._signed(built, [stranger]))
    assert not driver.chain.accounts.of_program(driver.at.program)
    assert funds(boss) + funds(driver.cranker.pubkey()) == before + held
    assert funds(stranger.pubkey()) == SOL - 5_000 * len(batches)


def test_a_participant_that_is_owed_something_cannot_be_closed():
    driver = finished()
    last = driver.run.finished_slot + longest_settlement_slots(driver.params)
    driver.chain.advance(last + 1 - driver.slot)
    owner = driver.owners[0].pubkey()
    pair = (driver.at.participant(owner), owner)
    assert driver.refused(close(driver, [pair]), driver.authority) == "NothingToClose"


def test_a_run_that_nobody_joined_can_be_taken_back():
    """By its authority only, or strangers would end every new run. Threat T91."""
    of = new_chain()
    of.create([create(of), *rosters(of)], AUTHORITY)
    of.send(make.init_round(of.at, AUTHORITY.pubkey(), 0), AUTHORITY)
    of.send(make.fund_run(of.at, AUTHORITY.pubkey(), SOL), AUTHORITY)
    payer = AUTHORITY.pubkey()
    stranger = key("stranger")
    of.chain.airdrop(stranger.pubkey(), SOL)
    theirs = make.close_run(of.at, stranger.pubkey(), payer, payer, [(of.at.round(0), payer)])
    assert of.refused(theirs, stranger) == "WrongAuthority", "or no run would see its first member"
    built = make.close_run(of.at, payer, payer, payer, [(of.at.round(0), payer)])
    of.chain.send(of._signed(built, [AUTHORITY]))
    assert not of.chain.accounts.of_program(of.at.program)
    # The address is free again.
    of.chain.send(of._signed(create(of), [AUTHORITY]))


def test_a_leaving_member_has_left_when_the_run_finishes():
    driver = RoundDriver(3, max_rounds=1, join_until_round=1)
    driver.start()
    driver.play()
    owner = driver.owners[2]
    assert driver.run.phase == Phase.COOLDOWN
    driver.leave(2)
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    driver.chain.advance(driver.params.unbond_slots)
    driver.send(make.withdraw_stake(driver.at, owner.pubkey(), 0), owner)


def test_a_run_that_never_began_is_its_authority_s_to_give_up():
    """Somebody joins and never leaves; too few come. The pool must not be held for ever."""
    driver = RoundDriver(1)
    end = make.advance_phase(driver.at, driver.authority.pubkey(), 0)
    assert driver.refused(end, driver.authority) == "NothingDue"
    driver.chain.advance(driver.run.phase_start_slot + driver.params.unbond_slots - driver.slot)
    assert driver.refused(end, driver.authority) == "NothingDue"
    driver.chain.advance()
    assert driver.refused(driver.tick_instruction(), driver.cranker) == "NothingDue"
    driver.send(end, driver.authority)
    assert driver.run.phase == Phase.FINISHED
    driver.leave(0)


def test_a_payer_that_became_a_program_does_not_keep_the_run_open():
    driver = finished()
    settle(driver)
    program = driver.cranker.pubkey()
    held = driver.chain.accounts.get(program)
    loader = Pubkey.from_string("BPFLoader2111111111111111111111111111111111")
    image = artifacts.program_image()
    balance = max(held.lamports, driver.chain.minimum_balance(len(image)))
    driver.chain.accounts.set(program, Account(balance, image, loader, executable=True))
    before = driver.chain.accounts.balance(driver.authority.pubkey())
    pair = checkpoint_pairs(driver)[0]
    rent = driver.chain.accounts.balance(pair[0])
    pool = driver.run.reward_pool
    landed = driver.send(close(driver, [pair]), driver.authority)
    assert landed.event("AccountClosed").payer == driver.at.vault, "and from there to the funder"
    assert driver.chain.accounts.balance(driver.authority.pubkey()) == before + rent + pool - 5_000


def test_a_lamport_that_an_empty_funder_cannot_hold_does_not_keep_the_run_open():
    driver = finished(pool=1)
    for owner in driver.owners:
        driver.send(make.leave_run(driver.at, owner.pubkey()), owner)
    driver.chain.advance(2 * driver.params.unbond_slots)
    for owner in driver.owners:
        driver.send(make.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    funder = driver.authority.pubkey()
    driver.chain.accounts.set(funder, Account(0, b"", Pubkey.default()))
    landed = driver.send(close(driver, checkpoint_pairs(driver), driver.cranker), driver.cranker)
    assert landed.names() == ["AccountClosed"] * 2
    pairs = round_pairs(driver)
    landed = driver.send(close(driver, pairs[:8], driver.cranker), driver.cranker)
    assert landed.event("LeftoversPaid").lamports == 1, "the rent of the rounds came with it"
    driver.chain.send(driver._signed(close(driver, pairs[8:], driver.cranker), [driver.cranker]))
    assert not driver.chain.accounts.of_program(driver.at.program)
