"""Stakes, unbonding tickets, vesting and claims; chain.py counts every lamport."""

import pytest
from support.fields import assert_fields
from support.program.joining import SLOW_ROUNDS, join, let_vest, newcomer, participant, terms
from support.program.rounds import RoundDriver, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.params_checks import jury_duty_slots
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

FEE = 5_000
STAKE = 100_000
UNBOND = 3_600


def withdraw(driver: RoundDriver, index: int, lamports: int = 0):
    return make.withdraw_stake(driver.at, driver.owners[index].pubkey(), lamports)


def top_up(driver: RoundDriver, index: int, lamports: int):
    return make.top_up_stake(driver.at, driver.owners[index].pubkey(), lamports)


def balance(driver: RoundDriver, index: int) -> int:
    return driver.chain.accounts.balance(driver.owners[index].pubkey())


def test_a_top_up_becomes_stake():
    driver = RoundDriver(1)
    owner = driver.owners[0]
    assert driver.send(top_up(driver, 0, 7), owner).event("StakeToppedUp").stake == STAKE + 7
    assert driver.refused(top_up(driver, 0, 0), owner) == "ZeroLamports"
    assert driver.refused(top_up(driver, 0, 10**12), owner) == "InsufficientFunds"
    driver.leave(0)
    assert driver.refused(top_up(driver, 0, 1), owner) == "NotJoined"


def test_only_stake_above_the_minimum_is_withdrawn_and_only_after_unbonding():
    driver = RoundDriver(1)
    owner = driver.owners[0]
    driver.send(top_up(driver, 0, 50), owner)
    assert driver.refused(withdraw(driver, 0, 51), owner) == "StakeBelowMinimum"
    assert driver.refused(withdraw(driver, 0), owner) == "NothingToWithdraw"
    opened = driver.send(withdraw(driver, 0, 50), owner).event("StakeUnbonding")
    assert opened.matures_clock == driver.slot + UNBOND
    assert_fields(driver.run, total_stake=STAKE, total_unbonding=50)

    driver.chain.advance(UNBOND - 1)
    assert driver.refused(withdraw(driver, 0), owner) == "NothingToWithdraw"
    driver.chain.advance()
    before = balance(driver, 0)
    driver.send(withdraw(driver, 0), owner)
    assert balance(driver, 0) == before + 50 - FEE
    assert driver.run.total_unbonding == 0
    assert participant(driver, owner).withdrawn_total == 50


def test_three_tickets_at_most_but_leaving_always_finds_one():
    driver = RoundDriver(1)
    owner = driver.owners[0]
    driver.send(top_up(driver, 0, 50), owner)
    for _ in range(3):
        driver.send(withdraw(driver, 0, 10), owner)
    assert driver.refused(withdraw(driver, 0, 10), owner) == "TicketsFull"
    driver.leave(0)
    tickets = participant(driver, owner).tickets
    assert [ticket.lamports for ticket in tickets] == [10, 10, 10, STAKE + 20]


def test_whoever_joins_again_has_a_ticket_left_for_leaving():
    """The tickets of the former membership count for the new one.

    With four of them in use the new stake used to be stuck until one had matured.
    """
    driver = RoundDriver(1)
    owner = driver.owners[0]
    driver.send(top_up(driver, 0, 30), owner)
    for _ in range(3):
        driver.send(withdraw(driver, 0, 10), owner)
        driver.chain.advance(100)
    driver.leave(0)
    back = join(driver, owner, terms(0))
    assert driver.refused(back, owner) == "TicketsFull"
    driver.chain.advance(UNBOND - 300)
    assert driver.send(withdraw(driver, 0), owner).event("StakeWithdrawn").lamports == 10
    driver.send(back, owner)
    driver.leave(0)
    tickets = participant(driver, owner).tickets
    assert sorted(ticket.lamports for ticket in tickets) == [10, 10, STAKE, STAKE]


def test_matured_tickets_are_paid_and_new_ones_opened_in_one_step():
    driver = RoundDriver(1)
    owner = driver.owners[0]
    driver.send(top_up(driver, 0, 40), owner)
    driver.send(withdraw(driver, 0, 10), owner)
    driver.chain.advance(UNBOND)
    landed = driver.send(withdraw(driver, 0, 30), owner)
    assert landed.event("StakeWithdrawn").lamports == 10
    assert landed.event("StakeUnbonding").lamports == 30


def test_leaving_while_the_run_waits_is_immediate_and_ends_with_a_closed_account():
    driver = RoundDriver(2)
    owner = driver.owners[1]
    landed = driver.leave(1)
    assert landed.names() == ["LeaveRequested", "ParticipantLeft"]
    duty_until = driver.slot + jury_duty_slots(driver.params)
    assert landed.event("LeaveRequested").duty_until == duty_until
    assert driver.entries[1].status == Status.LEFT
    again = make.leave_run(driver.at, owner.pubkey())
    assert driver.refused(again, owner) == "AlreadyLeaving"

    driver.chain.advance(UNBOND)
    rent = driver.chain.accounts.balance(driver.at.participant(owner.pubkey()))
    before = balance(driver, 1)
    landed = driver.send(withdraw(driver, 1), owner)
    assert landed.names() == ["StakeWithdrawn", "ParticipantClosed"]
    assert balance(driver, 1) == before + STAKE + rent - FEE
    assert participant(driver, owner) is None
    assert driver.run.num_participants == 1
    assert "Custom" in driver.refused(withdraw(driver, 1), owner)


def test_a_member_serves_the_open_round_before_it_has_left():
    driver = RoundDriver(4)
    driver.start()
    assert driver.leave(3).event("LeaveRequested").at_next_open
    assert driver.entries[3].status == Status.ACTIVE and driver.entries[3].stake == 0
    owner = driver.owners[3]
    again = make.leave_run(driver.at, owner.pubkey())
    assert driver.refused(again, owner) == "AlreadyLeaving"
    assert driver.refused(top_up(driver, 3, 1), owner) == "AlreadyLeaving"
    driver.play()
    assert driver.entries[3].status == Status.LEFT
    assert sum(driver.entries[3].bucket_amount) == 1_000
    assert driver.open.members == 0b0111


def test_rent_of_an_admitted_participant_goes_back_to_the_authority():
    driver = RoundDriver(0, admission="allowlist")
    owner, authority = newcomer(driver), driver.authority
    driver.owners.append(owner)
    driver.send(make.admit(driver.at, authority.pubkey(), owner.pubkey()), authority)
    driver.send(make.join_run(driver.at, owner.pubkey(), terms()), owner)
    driver.leave(0)
    driver.chain.advance(UNBOND)
    assert driver.refused(withdraw(driver, 0), owner) == "WrongPayer"
    rent = driver.chain.accounts.balance(driver.at.participant(owner.pubkey()))
    before = driver.chain.accounts.balance(authority.pubkey())
    right = make.withdraw_stake(driver.at, owner.pubkey(), 0, authority.pubkey())
    driver.send(right, owner)
    assert driver.chain.accounts.balance(authority.pubkey()) == before + rent


def test_rewards_vest_and_are_claimed_once():
    driver = RoundDriver(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    driver.start()
    driver.play()
    owner = driver.owners[0]
    claim = make.claim_reward(driver.at, owner.pubkey())
    earned = sum(driver.entries[0].bucket_amount)
    assert earned == 1_000
    assert driver.refused(claim, owner) == "NothingToClaim"

    # The reward fell into the first window of 2500 slots and vests 5000 slots after its end.
    driver.chain.advance(7_499 - driver.slot)
    assert driver.refused(claim, owner) == "NothingToClaim"
    driver.chain.advance()
    before = balance(driver, 0)
    claimed = driver.send(claim, owner).event("RewardClaimed")
    assert_fields(claimed, vested=earned, lamports=earned)
    assert balance(driver, 0) == before + earned - FEE
    assert driver.refused(claim, owner) == "NothingToClaim"
    assert participant(driver, owner).claimed_total == earned


def test_rewards_outlive_leaving():
    driver = RoundDriver(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    driver.start()
    driver.play()
    driver.leave(3)
    let_vest(driver)
    owner = driver.owners[3]
    landed = driver.send(withdraw(driver, 3), owner)
    assert landed.names() == ["StakeWithdrawn"], "rewards are still owed, the account stays"
    earned = driver.entries[3].claimable + sum(driver.entries[3].bucket_amount)
    assert driver.send(make.claim_reward(driver.at, owner.pubkey()), owner)
    assert earned == participant(driver, owner).claimed_total
    assert driver.send(withdraw(driver, 3), owner).names() == ["ParticipantClosed"]


@pytest.mark.parametrize("name", ["leave_run", "claim_reward", "withdraw_stake", "top_up_stake"])
def test_nobody_acts_for_another_owner(name):
    driver = RoundDriver(2)
    thief, victim = driver.owners[0], driver.owners[1]
    args = (1,) if name in ("withdraw_stake", "top_up_stake") else ()
    built = getattr(make, name)(driver.at, thief.pubkey(), *args)
    theirs, own = (driver.at.participant(o.pubkey()) for o in (victim, thief))
    metas = [
        type(m)(theirs if m.pubkey == own else m.pubkey, m.is_signer, m.is_writable)
        for m in built.accounts
    ]
    swapped = type(built)(built.program_id, bytes(built.data), metas)
    assert driver.refused(swapped, thief) == "WrongOwner"


def test_a_donation_belongs_to_nobody_and_blocks_nothing(monkeypatch):
    driver = RoundDriver(2)
    driver.chain.airdrop(driver.at.vault, 12_345)
    monkeypatch.setattr(driver, "_check_books", lambda: None)
    driver.start()
    driver.play()
    driver.leave(0)
    owed = driver.run.total_stake + driver.run.total_unbonding + driver.run.total_unvested
    owed += driver.run.vault_rent + driver.run.reward_pool
    assert driver.chain.accounts.balance(driver.at.vault) == owed + 12_345
    assert driver.run.phase in (Phase.COMMIT, Phase.COOLDOWN)


def test_a_session_key_changes_at_once_between_rounds_and_at_the_next_open_within():
    driver = RoundDriver(4)
    owner, new = driver.owners[0], key("new session")
    driver.chain.airdrop(new.pubkey(), 10**9)

    def change(to):
        return make.set_session_key(driver.at, owner.pubkey(), to.pubkey())

    assert not driver.send(change(new), owner).event("SessionKeySet").at_next_open
    assert bytes(driver.entries[0].session) == bytes(new.pubkey())
    driver.sessions[0] = new
    driver.start()

    newer = key("newer session")
    driver.chain.airdrop(newer.pubkey(), 10**9)
    assert driver.send(change(newer), owner).event("SessionKeySet").at_next_open
    commit = driver.commit_instruction(0)
    early = make.commit_payload(
        driver.at, newer.pubkey(), 0, 0, b"h" * 32, driver.vote(0, 0, b"x" * 32)
    )
    assert driver.refused(early, newer) == "WrongSessionKey"
    driver.send(commit, driver.sessions[0])
    driver.play_rest()
    assert bytes(driver.entries[0].session) == bytes(newer.pubkey())
    assert driver.refused(driver.commit_instruction(0), new) == "WrongSessionKey"
    driver.sessions[0] = newer
    driver.commit(0)


def test_a_session_key_must_not_be_zero_and_needs_a_participant_that_is_there():
    driver = RoundDriver(2)
    owner = driver.owners[0]
    zero = type(owner.pubkey()).default()
    wrong = make.set_session_key(driver.at, owner.pubkey(), zero)
    assert driver.refused(wrong, owner) == "InvalidSessionKey"
    driver.leave(0)
    gone = make.set_session_key(driver.at, owner.pubkey(), key("s").pubkey())
    assert driver.refused(gone, owner) == "NotJoined"


def test_leaving_during_warmup_may_complete_the_quorum():
    """Four of six are ready; when one of the others leaves, four of five are enough."""
    driver = RoundDriver(6)
    driver.advance_phase()
    for index in range(4):
        driver.post_ready(index)
    assert driver.run.quorum_slot == NONE
    driver.leave(5)
    assert driver.run.quorum_slot == driver.slot
    driver.chain.advance(8)
    driver.advance_phase()
    assert driver.open.members == 0b01111
