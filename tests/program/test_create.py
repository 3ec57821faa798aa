"""Creating a run, its roster and its ring; what is refused, and prefunded addresses."""

import dataclasses

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from support.program import idl
from support.program.chain import ChainDriver
from support.program.creation import AUTHORITY, RUN_ID, create, new_chain, rosters
from support.program.rounds import SOL, RoundDriver, key, params_of, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase


def prefund(of: ChainDriver, address: Pubkey, lamports: int) -> None:
    of.chain.airdrop(address, lamports)


def test_a_new_run_waits_with_what_it_was_given():
    of = new_chain()
    of.create([create(of), *rosters(of)], AUTHORITY)
    run = of.run
    assert run.phase == Phase.WAITING_FOR_MEMBERS
    assert run.run_id == RUN_ID and run.config_hash == b"c" * 32
    assert run.root == run.genesis_root == root_of(0)
    assert run.params == params_of()
    assert run.round == run.cursor == 0 and run.phase_end_slot == NONE
    assert Pubkey.from_bytes(bytes(run.funder)) == AUTHORITY.pubkey()
    assert len(of.entries) == 64


def test_accounts_are_rent_exempt_and_decode_by_the_exported_layout():
    of = new_chain()
    of.create([create(of), *rosters(of)], AUTHORITY)
    of.send(make.init_round(of.at, AUTHORITY.pubkey(), 3), AUTHORITY)
    for name, address in (("Run", of.at.run), ("Roster", of.at.roster), ("Round", of.at.round(3))):
        account = of.chain.accounts.get(address)
        decoded = idl.decode(name, bytes(account.data))
        assert decoded["version"] == 2
        assert account.lamports == of.chain.minimum_balance(len(account.data))
    run = idl.decode("Run", bytes(of.chain.accounts.get(of.at.run).data))
    assert bytes(run["vault"]) == bytes(of.at.vault)
    assert run["params"]["ring"] == 16
    position = idl.decode("Round", bytes(of.chain.accounts.get(of.at.round(3)).data))
    assert position["position"] == 3 and position["round"] == NONE
    vault = of.chain.accounts.get(of.at.vault)
    assert vault.owner == of.at.program and len(vault.data) == 0


def test_two_authorities_may_use_the_same_run_id():
    """An id that somebody else has used first must block nobody's run. Threat T91."""
    of = new_chain()
    squatter = key("squatter")
    of.chain.airdrop(squatter.pubkey(), 10 * SOL)
    theirs = RunAddresses.create(squatter.pubkey(), RUN_ID, 16)
    assert theirs.run != of.at.run
    terms = make.RunTerms(RUN_ID, b"c" * 32, b"m" * 32, root_of(0), AUTHORITY.pubkey(), params_of())
    taken = make.create_run(of.at, squatter.pubkey(), terms)
    assert of.refused(taken, squatter) == "WrongAddress"
    of.chain.send(of._signed(make.create_run(theirs, squatter.pubkey(), terms), [squatter]))
    of.create([create(of), *rosters(of)], AUTHORITY)
    assert of.run.run_id == RUN_ID and of.run.authority == bytes(AUTHORITY.pubkey())


def test_stray_lamports_sent_in_advance_block_nothing():
    of = new_chain()
    for lamports, address in (
        (890_881, of.at.run),
        (890_880, of.at.vault),
        (SOL, of.at.roster),
        (5_000_000, of.at.round(0)),
    ):
        prefund(of, address, lamports)
    of.chain.send(of._signed([create(of), *rosters(of)], [AUTHORITY]))
    of.chain.send(of._signed(make.init_round(of.at, AUTHORITY.pubkey(), 0), [AUTHORITY]))
    assert of.run.phase == Phase.WAITING_FOR_MEMBERS
    assert of.chain.accounts.balance(of.at.roster) == SOL


def test_nothing_is_created_twice():
    of = new_chain()
    of.create([create(of), *rosters(of)], AUTHORITY)
    assert of.refused(create(of), AUTHORITY) == "AccountAlreadyExists"
    of.send(make.init_round(of.at, AUTHORITY.pubkey(), 0), AUTHORITY)
    again = make.init_round(of.at, AUTHORITY.pubkey(), 0)
    assert of.refused(again, AUTHORITY) == "AccountAlreadyExists"


def test_the_roster_grows_in_steps_and_then_stays():
    of = new_chain()
    of.chain.send(of._signed(create(of), [AUTHORITY]))
    sizes = []
    for _ in range(4):
        of.chain.send(of._signed(rosters(of, 1), [AUTHORITY]))
        sizes.append(len(of.chain.accounts.get(of.at.roster).data))
    full = idl.LAYOUT["accounts"]["Roster"]["size"]
    assert sizes == [10_240, 20_480, full, full]


def test_a_roster_that_is_still_growing_is_no_roster():
    of = new_chain()
    of.chain.send(of._signed([create(of), *rosters(of, 2)], [AUTHORITY]))
    owner = key("owner")
    prefund(of, owner.pubkey(), SOL)
    terms = make.JoinTerms(0, 3, key("session").pubkey(), "")
    join = make.join_run(of.at, owner.pubkey(), terms)
    assert of.refused(join, owner) == "Custom(3002)"  # AccountDiscriminatorMismatch


def test_only_the_authority_starts_the_roster():
    of = new_chain()
    of.chain.send(of._signed(create(of), [AUTHORITY]))
    stranger = key("stranger")
    prefund(of, stranger.pubkey(), SOL)
    roster = make.init_roster(of.at, stranger.pubkey())
    assert of.refused(roster, stranger) == "WrongAuthority"


def test_anyone_may_pay_for_a_round_but_only_within_the_ring():
    of = new_chain()
    of.create([create(of), *rosters(of)], AUTHORITY)
    stranger = key("stranger")
    prefund(of, stranger.pubkey(), SOL)
    of.send(make.init_round(of.at, stranger.pubkey(), 15), stranger)
    assert of.run.num_rounds == 1
    accounts = {"payer": stranger.pubkey(), "run": of.at.run, "round": of.at.round(1)}
    beyond = idl.instruction("init_round", accounts, {"position": 16})
    assert of.refused(beyond, stranger) == "PositionOutOfRange"
    other = idl.instruction("init_round", accounts, {"position": 2})
    assert of.refused(other, stranger) == "WrongAddress"


def test_addresses_must_be_the_derived_ones():
    of = new_chain()
    built = create(of)
    for place in (1, 2):
        metas = list(built.accounts)
        meta = metas[place]
        elsewhere = key("elsewhere").pubkey()
        metas[place] = AccountMeta(elsewhere, meta.is_signer, meta.is_writable)
        wrong = Instruction(built.program_id, bytes(built.data), metas)
        assert of.refused(wrong, AUTHORITY) == "WrongAddress"


def test_a_poor_authority_is_told_so():
    of = new_chain()
    poor = key("poor")
    prefund(of, poor.pubkey(), 5_000_000)
    terms = make.RunTerms(RUN_ID, b"c" * 32, b"m" * 32, root_of(0), poor.pubkey(), params_of())
    theirs = RunAddresses.create(poor.pubkey(), RUN_ID, 16)
    assert of.refused(make.create_run(theirs, poor.pubkey(), terms), poor) == "InsufficientFunds"


CONTRADICTIONS = [
    ("CapacityOutOfRange", {"capacity": 0}),
    ("CapacityOutOfRange", {"capacity": 65}),
    ("MinMembersOutOfRange", {"min_members": 0}),
    ("MinMembersOutOfRange", {"min_members": 17}),
    ("KeepRoundsTooFew", {"keep_rounds": 1}),
    ("RingOutOfRange", {"ring": 5}),
    ("RingOutOfRange", {"ring": 65}),
    ("WitnessOnlyOutOfRange", {"max_witness_only": 17}),
    ("CountOutOfRange", {"sequences_per_payload": 0}),
    ("CountOutOfRange", {"max_rounds": 0}),
    ("CountOutOfRange", {"rounds_per_epoch": 0}),
    ("CountOutOfRange", {"residual_rounds": 0}),
    ("CountOutOfRange", {"checkpoint_every": 0}),
    ("CountOutOfRange", {"sequences_per_payload": 2**20 + 1}),
    ("CountOutOfRange", {"rounds_per_epoch": 100_001}),
    ("CountOutOfRange", {"residual_rounds": 10_001}),
    ("CountOutOfRange", {"checkpoint_every": 100_001}),
    ("CountOutOfRange", {"seat_after_rounds": 1_001}),
    ("CountOutOfRange", {"max_rounds": 2**32}),
    *[
        ("WindowZero", {f"{name}_slots": 0})
        for name in (
            *("warmup", "commit", "attest", "close_grace", "halt", "seed_delay", "vesting"),
            *("unbond", "param_delay", "case", "openings", "verdict_commit", "verdict_reveal"),
            *("jury_commit", "jury_reveal", "appeal", "breaker"),
        )
    ],
    *[
        ("WindowTooLong", {f"{name}_slots": 2**16 + 1})
        for name in ("warmup", "commit", "attest", "close_grace", "halt")
    ],
    ("WindowTooLong", {"unbond_slots": 2**23 + 1}),
    ("WindowTooLong", {"appeal_slots": 2**23 + 1}),
    ("SeedDelayTooLong", {"seed_delay_slots": 512}),
    ("PauseTooLong", {"max_pause_slots": 1_801}),
    ("VestingTooShort", {"vesting_slots": 2_966}),
    ("UnbondTooShort", {"unbond_slots": 2_966, "max_pause_slots": 0}),
    ("AmountTooLarge", {"min_stake_lamports": 2**56 + 1}),
    ("KeepStakeOutOfRange", {"min_stake_lamports": 59_999}),
    ("KeepStakeOutOfRange", {"min_stake_lamports": 120_001}),
    ("KeepStakeOutOfRange", {"keep_stake_lamports": 59_999}),
    ("KeepStakeOutOfRange", {"keep_stake_lamports": 100_001}),
    ("AbsenceFeeTooLarge", {"absence_fee": 6_001}),
    ("AbsenceFeeTooLarge", {"absence_fee": 10_001, "keep_stake_lamports": 100_000}),
    ("FeeTooLarge", {"recompute_cost": 10_001}),
    ("FeeTooLarge", {"witness_fee": 2_001, "bond_lamports": 30_000}),
    ("BondTooLarge", {"bond_lamports": 100_001}),
    ("BondTooSmall", {"bond_lamports": 4_999}),
    ("BondTooSmall", {"witness_fee": 1_000}),
    ("ChanceOutOfRange", {"p_base_ppm": 500_001}),
    ("ChanceOutOfRange", {"p_new_ppm": 1_000_001}),
    ("ChanceTooSmall", {"p_base_ppm": 59_999}),
    ("AuditCapOutOfRange", {"audit_cap": 1}),
    ("AuditCapOutOfRange", {"audit_cap": 17}),
    ("SketchFactorOutOfRange", {"sketch_factor": 24}),
    ("SketchFactorOutOfRange", {"sketch_factor": 2_501}),
    ("SeatLoadOutOfRange", {"seat_load": 0}),
    ("SeatLoadOutOfRange", {"seat_load": 16}),
    ("UnknownAdmission", {"admission": 2}),
]


@pytest.fixture(scope="module")
def empty():
    return new_chain()


@pytest.mark.parametrize(("error", "changes"), CONTRADICTIONS)
def test_parameters_that_contradict_each_other_are_refused(empty, error, changes):
    of = empty
    wrong = dataclasses.replace(params_of(), **changes)
    assert of.refused(create(of, wrong), AUTHORITY) == error


def test_reserved_bytes_must_be_zero():
    of = new_chain()
    built = create(of)
    dirty = Instruction(built.program_id, bytes(built.data[:-1]) + b"\1", built.accounts)
    assert of.refused(dirty, AUTHORITY) == "ReservedNotZero"


def test_funds_come_from_the_funder_and_are_counted():
    driver = RoundDriver(0, pool=0)
    fund = make.fund_run(driver.at, driver.authority.pubkey(), 5)
    assert driver.send(fund, driver.authority).event("RunFunded").reward_pool == 5
    assert driver.run.reward_pool == 5
    zero = make.fund_run(driver.at, driver.authority.pubkey(), 0)
    assert driver.refused(zero, driver.authority) == "ZeroLamports"
    foreign = make.fund_run(driver.at, driver.cranker.pubkey(), 5)
    assert driver.refused(foreign, driver.cranker) == "WrongFunder"
    much = make.fund_run(driver.at, driver.authority.pubkey(), 1_000 * SOL)
    assert driver.refused(much, driver.authority) == "InsufficientFunds"
