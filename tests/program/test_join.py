"""Joining: indices, roles, allowlist, deadline, and the life of an index after its owner."""

import dataclasses

import pytest
from program.rounds import SOL, Stage, key
from program.test_accounts_swapped import swapped
from solders.keypair import Keypair

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.view import Status

STAKE = 100_000


def terms(index: int = 0, **changes: object) -> make.JoinTerms:
    base = make.JoinTerms(index, 3, key("any session").pubkey(), "http://here:1")
    return dataclasses.replace(base, **changes)


def newcomer(stage: Stage, name: object = "newcomer", lamports: int = SOL) -> Keypair:
    owner = key(name)
    stage.chain.airdrop(owner.pubkey(), lamports)
    return owner


def join(stage: Stage, owner: Keypair, of: make.JoinTerms, former: Keypair | None = None):
    gone = None if former is None else former.pubkey()
    return make.join_run(stage.at, owner.pubkey(), of, gone)


def participant(stage: Stage, owner: Keypair):
    address = stage.at.participant(owner.pubkey())
    account = stage._account(address)
    return None if account is None else stage._reader.participant(address, account)


def test_the_stake_enters_the_vault_and_the_entry_starts_clean():
    stage = Stage(1)
    entry = stage.entries[0]
    assert entry.status == Status.PENDING and entry.stake == STAKE
    assert entry.roles == 3 and entry.joined_round == 0
    assert bytes(entry.session) == bytes(stage.sessions[0].pubkey())
    assert stage.run.num_participants == 1 and stage.run.total_stake == STAKE
    cold = participant(stage, stage.owners[0])
    assert (cold.index, cold.endpoint, cold.admitted) == (0, "http://p0", False)


def test_a_prefunded_participant_address_blocks_nothing():
    stage = Stage(0)
    owner = newcomer(stage)
    stage.chain.airdrop(stage.at.participant(owner.pubkey()), 890_880)
    stage.send(join(stage, owner, terms()), owner)
    assert stage.entries[0].status == Status.PENDING


@pytest.mark.parametrize(
    ("error", "changes"),
    [
        ("IndexTaken", {"index": 0}),
        ("IndexOutOfRange", {"index": 16}),
        ("IndexOutOfRange", {"index": 65_535}),
        ("InvalidRoles", {"roles": 0}),
        ("InvalidRoles", {"roles": 4}),
        ("InvalidText", {"endpoint": "h" * 97}),
        ("InvalidText", {"endpoint": "http://a b"}),
        ("InvalidText", {"endpoint": "http://\x1b[2J"}),
        ("InvalidText", {"endpoint": "http://é"}),
        ("InvalidSessionKey", {"session": type(key("x").pubkey()).default()}),
    ],
)
def test_terms_that_make_no_sense_are_refused(error, changes):
    stage = Stage(1)
    owner = newcomer(stage)
    wrong = terms(**{"index": 1, **changes})
    assert stage.refused(join(stage, owner, wrong), owner) == error


def test_an_endpoint_may_be_empty_or_96_bytes():
    stage = Stage(0)
    for index, endpoint in enumerate(("", "h" * 96)):
        owner = newcomer(stage, index)
        stage.send(join(stage, owner, terms(index, endpoint=endpoint)), owner)
        assert participant(stage, owner).endpoint == endpoint


def test_joining_twice_is_refused():
    stage = Stage(1)
    again = join(stage, stage.owners[0], terms(1))
    assert stage.refused(again, stage.owners[0]) == "AlreadyJoined"


def test_an_owner_without_the_stake_is_told_so():
    stage = Stage(0)
    owner = newcomer(stage, lamports=4_000_000)
    assert stage.refused(join(stage, owner, terms()), owner) == "InsufficientFunds"
    rich = Stage(0, stake_lamports=SOL, reward_per_payload=1)
    owner = newcomer(rich, lamports=SOL)
    assert rich.refused(join(rich, owner, terms()), owner) == "InsufficientFunds"


def test_a_full_run_says_so_whatever_the_index():
    stage = Stage(2, capacity=2, min_members=2, audit_cap=2, max_witness_only=0)
    owner = newcomer(stage)
    assert stage.refused(join(stage, owner, terms(0)), owner) == "RunFull"


def test_no_more_than_max_witness_only_participants_only_witness():
    stage = Stage(1, roles=[2], max_witness_only=1)
    owner = newcomer(stage)
    only = terms(1, roles=2)
    assert stage.refused(join(stage, owner, only), owner) == "WitnessOnlyFull"
    stage.send(join(stage, owner, terms(1)), owner)


def test_joining_ends_with_the_deadline_round():
    stage = Stage(3, join_until_round=1)
    stage.start()
    stage.play()
    late = newcomer(stage, "in time")
    stage.send(join(stage, late, terms(3)), late)
    stage.play()
    owner = newcomer(stage)
    assert stage.run.round == 2
    assert stage.refused(join(stage, owner, terms(4)), owner) == "JoinClosed"


def test_a_foreign_participant_account_is_refused():
    stage = Stage(1)
    owner = newcomer(stage)
    built = join(stage, owner, terms(1))
    theirs = stage.at.participant(stage.owners[0].pubkey())
    place = [meta.pubkey for meta in built.accounts].index(stage.at.participant(owner.pubkey()))
    assert stage.refused(swapped(built, place, theirs), owner) == "WrongOwner"


def test_an_allowlist_admits_only_whom_the_authority_named():
    stage = Stage(0, admission="allowlist")
    owner, authority = newcomer(stage), stage.authority
    assert stage.refused(join(stage, owner, terms()), owner) == "NotAdmitted"

    by_stranger = make.admit(stage.at, owner.pubkey(), owner.pubkey())
    assert stage.refused(by_stranger, owner) == "WrongAuthority"
    admit = make.admit(stage.at, authority.pubkey(), owner.pubkey())
    elsewhere = swapped(admit, 2, stage.at.participant(authority.pubkey()))
    assert stage.refused(elsewhere, authority) == "WrongAddress"
    stage.send(admit, authority)
    assert participant(stage, owner).index == 65_535
    assert stage.refused(admit, authority) == "AccountAlreadyExists"

    stage.send(join(stage, owner, terms()), owner)
    assert participant(stage, owner).admitted
    assert stage.run.num_participants == 1


def test_an_open_run_has_no_allowlist():
    stage = Stage(0)
    admit = make.admit(stage.at, stage.authority.pubkey(), key("any").pubkey())
    assert stage.refused(admit, stage.authority) == "AdmissionOpen"


# Windows in which time passes fast beside the rounds.
SLOW_ROUNDS = {"commit_slots": 1_500, "vesting_slots": 5_000, "unbond_slots": 5_000}


def let_vest(stage: Stage) -> None:
    """Play rounds until whatever was earned in the first window has vested."""
    while stage.slot < 7_500:
        stage.chain.advance(1_400)
        stage.play()


def leave_after_rounds(stage: Stage, index: int) -> None:
    """Leave mid-round, so that the entry holds unvested rewards of the rounds before."""
    stage.send(make.leave_run(stage.at, stage.owners[index].pubkey()), stage.owners[index])
    stage.play()
    assert stage.entries[index].status == Status.LEFT


def test_an_index_is_reused_after_ring_rounds_once_its_rewards_have_vested():
    stage = Stage(4, max_rounds=200, ring=6, checkpoint_every=100, **SLOW_ROUNDS)
    stage.start()
    stage.play(2)
    leave_after_rounds(stage, 3)
    earned = sum(stage.entries[3].bucket_amount)
    assert earned == 3_000
    owner, former = newcomer(stage), stage.owners[3]
    attempt = join(stage, owner, terms(3), former)
    assert stage.refused(attempt, owner) == "IndexTaken"
    stage.play(6)
    # Free by its rounds, but the rewards are still open to slashes.
    assert stage.refused(attempt, owner) == "IndexTaken"

    let_vest(stage)
    alone = join(stage, owner, terms(3))
    assert stage.refused(alone, owner) == "AccountMissing"
    wrong = join(stage, owner, terms(3), stage.owners[0])
    assert stage.refused(wrong, owner) == "WrongOwner"
    moved = stage.send(attempt, owner).event("RewardsMoved")
    assert (moved.lamports, moved.index) == (earned, 3)
    assert participant(stage, former).index == 65_535
    assert participant(stage, former).claimable == earned
    assert stage.entries[3].claimable == 0

    before = stage.chain.accounts.balance(former.pubkey())
    stage.send(make.claim_reward(stage.at, former.pubkey()), former)
    assert stage.chain.accounts.balance(former.pubkey()) == before + earned - 5_000


def test_whoever_left_may_come_back_once_its_rewards_have_vested():
    stage = Stage(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    stage.start()
    stage.play(2)
    leave_after_rounds(stage, 3)
    owner = stage.owners[3]
    back = join(stage, owner, terms(4))
    assert stage.refused(back, owner) == "AlreadyJoined"
    let_vest(stage)
    moved = stage.send(back, owner).event("RewardsMoved")
    assert (moved.index, moved.lamports) == (3, 3_000)
    cold = participant(stage, owner)
    assert cold.index == 4 and cold.claimable == 3_000
    assert [ticket.lamports for ticket in cold.tickets] == [STAKE, 0, 0, 0]
    assert stage.run.num_participants == 4
