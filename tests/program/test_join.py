"""Joining: indices, roles, allowlist, deadline, and the life of an index after its owner."""

import pytest
from support.fields import assert_fields
from support.program.joining import SLOW_ROUNDS, join, let_vest, newcomer, participant, terms
from support.program.rounds import SOL, RoundDriver, key
from support.program.swapped import swapped

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.view import Status

STAKE = 100_000


def test_the_stake_enters_the_vault_and_the_entry_starts_clean():
    driver = RoundDriver(1)
    entry = driver.entries[0]
    assert entry.status == Status.PENDING and entry.stake == STAKE
    assert entry.roles == 3 and entry.joined_round == 0
    assert bytes(entry.session) == bytes(driver.sessions[0].pubkey())
    assert driver.run.num_participants == 1 and driver.run.total_stake == STAKE
    cold = participant(driver, driver.owners[0])
    assert_fields(cold, index=0, endpoint="http://p0", admitted=False)


def test_a_prefunded_participant_address_blocks_nothing():
    driver = RoundDriver(0)
    owner = newcomer(driver)
    driver.chain.airdrop(driver.at.participant(owner.pubkey()), 890_880)
    driver.send(join(driver, owner, terms()), owner)
    assert driver.entries[0].status == Status.PENDING


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
    driver = RoundDriver(1)
    owner = newcomer(driver)
    wrong = terms(**{"index": 1, **changes})
    assert driver.refused(join(driver, owner, wrong), owner) == error


def test_an_endpoint_may_be_empty_or_96_bytes():
    driver = RoundDriver(0)
    for index, endpoint in enumerate(("", "h" * 96)):
        owner = newcomer(driver, index)
        driver.send(join(driver, owner, terms(index, endpoint=endpoint)), owner)
        assert participant(driver, owner).endpoint == endpoint


def test_joining_twice_is_refused():
    driver = RoundDriver(1)
    again = join(driver, driver.owners[0], terms(1))
    assert driver.refused(again, driver.owners[0]) == "AlreadyJoined"


def test_an_owner_without_the_stake_is_told_so():
    driver = RoundDriver(0)
    owner = newcomer(driver, lamports=4_000_000)
    assert driver.refused(join(driver, owner, terms()), owner) == "InsufficientFunds"
    rich = RoundDriver(0, min_stake_lamports=SOL)
    owner = newcomer(rich, lamports=SOL)
    assert rich.refused(join(rich, owner, terms()), owner) == "InsufficientFunds"


def test_a_full_run_says_so_whatever_the_index():
    driver = RoundDriver(2, capacity=2, min_members=2, audit_cap=2, max_witness_only=0)
    owner = newcomer(driver)
    assert driver.refused(join(driver, owner, terms(0)), owner) == "RunFull"


def test_no_more_than_max_witness_only_participants_only_witness():
    driver = RoundDriver(1, roles=[2], max_witness_only=1)
    owner = newcomer(driver)
    only = terms(1, roles=2)
    assert driver.refused(join(driver, owner, only), owner) == "WitnessOnlyFull"
    driver.send(join(driver, owner, terms(1)), owner)


def test_joining_ends_with_the_deadline_round():
    driver = RoundDriver(3, join_until_round=1)
    driver.start()
    driver.play()
    late = newcomer(driver, "in time")
    driver.send(join(driver, late, terms(3)), late)
    driver.play()
    owner = newcomer(driver)
    assert driver.run.round == 2
    assert driver.refused(join(driver, owner, terms(4)), owner) == "JoinClosed"


def test_a_foreign_participant_account_is_refused():
    driver = RoundDriver(1)
    owner = newcomer(driver)
    built = join(driver, owner, terms(1))
    theirs = driver.at.participant(driver.owners[0].pubkey())
    place = [meta.pubkey for meta in built.accounts].index(driver.at.participant(owner.pubkey()))
    assert driver.refused(swapped(built, place, theirs), owner) == "WrongOwner"


def test_an_allowlist_admits_only_whom_the_authority_named():
    driver = RoundDriver(0, admission="allowlist")
    owner, authority = newcomer(driver), driver.authority
    assert driver.refused(join(driver, owner, terms()), owner) == "NotAdmitted"

    by_stranger = make.admit(driver.at, owner.pubkey(), owner.pubkey())
    assert driver.refused(by_stranger, owner) == "WrongAuthority"
    admit = make.admit(driver.at, authority.pubkey(), owner.pubkey())
    elsewhere = swapped(admit, 2, driver.at.participant(authority.pubkey()))
    assert driver.refused(elsewhere, authority) == "WrongAddress"
    driver.send(admit, authority)
    assert participant(driver, owner).index == 65_535
    assert driver.refused(admit, authority) == "AccountAlreadyExists"

    driver.send(join(driver, owner, terms()), owner)
    assert participant(driver, owner).admitted
    assert driver.run.num_participants == 1


def test_an_open_run_has_no_allowlist():
    driver = RoundDriver(0)
    admit = make.admit(driver.at, driver.authority.pubkey(), key("any").pubkey())
    assert driver.refused(admit, driver.authority) == "AdmissionOpen"


def leave_after_rounds(driver: RoundDriver, index: int) -> None:
    """Leave mid-round, so that the entry holds unvested rewards of the rounds before."""
    driver.leave(index)
    driver.play()
    assert driver.entries[index].status == Status.LEFT


def test_an_index_is_reused_after_ring_rounds_once_its_rewards_have_vested():
    driver = RoundDriver(4, max_rounds=200, ring=6, checkpoint_every=100, **SLOW_ROUNDS)
    driver.start()
    driver.play(2)
    leave_after_rounds(driver, 3)
    earned = sum(driver.entries[3].bucket_amount)
    assert earned == 3_000
    owner, former = newcomer(driver), driver.owners[3]
    attempt = join(driver, owner, terms(3), former)
    assert driver.refused(attempt, owner) == "IndexTaken"
    driver.play(6)
    # Free by its rounds, but the rewards are still open to slashes.
    assert driver.refused(attempt, owner) == "IndexTaken"

    let_vest(driver)
    alone = join(driver, owner, terms(3))
    assert driver.refused(alone, owner) == "AccountMissing"
    wrong = join(driver, owner, terms(3), driver.owners[0])
    assert driver.refused(wrong, owner) == "WrongOwner"
    itself = join(driver, owner, terms(3), owner)
    assert driver.refused(itself, owner) == "DuplicateAccount"
    moved = driver.send(attempt, owner).event("RewardsMoved")
    assert_fields(moved, lamports=earned, index=3)
    assert participant(driver, former).index == 65_535
    assert participant(driver, former).claimable == earned
    assert driver.entries[3].claimable == 0

    before = driver.chain.accounts.balance(former.pubkey())
    driver.send(make.claim_reward(driver.at, former.pubkey()), former)
    assert driver.chain.accounts.balance(former.pubkey()) == before + earned - 5_000


def stay_away(driver, index):
    """Two rounds without an act of this member: it is inactive."""
    for _ in range(2):
        driver.commit_all([one for one in driver.trainers() if one != index])
        driver.attest_all([one for one in driver.members() if one != index])
        driver.close()
        driver.chain.advance()


def test_what_rewards_bring_along_of_the_past_is_known_at_the_return():
    """The program moves the whole record with rewards; nothing of it is remembered, or told."""
    slow = {**SLOW_ROUNDS, "max_rounds": 200, "checkpoint_every": 100, "min_members": 2, "ring": 6}
    driver = RoundDriver(5, **slow)
    driver.start()
    driver.play(4)
    stay_away(driver, 3)
    assert driver.entries[3].status == Status.INACTIVE
    since, owner = driver.entries[3].inactive_round, driver.owners[3]
    driver.leave(3)
    let_vest(driver)
    while driver.run.round < driver.entries[3].left_round + 6:
        driver.play()
    friend = newcomer(driver)
    landed = driver.send(join(driver, friend, terms(3), owner), friend)
    assert landed.names() == ["RewardsMoved", "ParticipantJoined"]
    assert participant(driver, owner).record.inactive_round == since
    session = newcomer(driver, "again")
    driver.owners.append(owner)
    driver.sessions.append(session)
    driver.roles.append(3)
    driver.send(join(driver, owner, terms(5, session=session.pubkey())), owner)
    driver.post_ready(5)
    driver.play()
    driver.activate(5)
    driver.play()
    stay_away(driver, 5)
    assert driver.entries[5].return_round > driver.run.round, "the second time in its life"


def test_whoever_left_may_come_back_once_its_rewards_have_vested():
    driver = RoundDriver(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    driver.start()
    driver.play(2)
    leave_after_rounds(driver, 3)
    owner = driver.owners[3]
    back = join(driver, owner, terms(4))
    assert driver.refused(back, owner) == "AlreadyJoined"
    let_vest(driver)
    moved = driver.send(back, owner).event("RewardsMoved")
    assert_fields(moved, index=3, lamports=3_000)
    cold = participant(driver, owner)
    assert cold.index == 4 and cold.claimable == 3_000
    assert [ticket.lamports for ticket in cold.tickets] == [STAKE, 0, 0, 0]
    assert driver.run.num_participants == 4
