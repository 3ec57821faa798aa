"""Stakes, unbonding tickets, vesting and claims; every lamport is counted by bench.py."""

import pytest
from program.rounds import Stage, key
from program.test_join import SLOW_ROUNDS, let_vest, newcomer, participant, terms

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

FEE = 5_000
STAKE = 100_000
UNBOND = 3_600


def withdraw(stage: Stage, index: int, lamports: int = 0):
    return make.withdraw_stake(stage.at, stage.owners[index].pubkey(), lamports)


def top_up(stage: Stage, index: int, lamports: int):
    return make.top_up_stake(stage.at, stage.owners[index].pubkey(), lamports)


def leave(stage: Stage, index: int):
    return stage.send(make.leave_run(stage.at, stage.owners[index].pubkey()), stage.owners[index])


def balance(stage: Stage, index: int) -> int:
    return stage.chain.accounts.balance(stage.owners[index].pubkey())


def test_a_top_up_becomes_stake():
    stage = Stage(1)
    owner = stage.owners[0]
    assert stage.send(top_up(stage, 0, 7), owner).event("StakeToppedUp").stake == STAKE + 7
    assert stage.refused(top_up(stage, 0, 0), owner) == "ZeroLamports"
    assert stage.refused(top_up(stage, 0, 10**12), owner) == "InsufficientFunds"
    leave(stage, 0)
    assert stage.refused(top_up(stage, 0, 1), owner) == "NotJoined"


def test_only_stake_above_the_minimum_is_withdrawn_and_only_after_unbonding():
    stage = Stage(1)
    owner = stage.owners[0]
    stage.send(top_up(stage, 0, 50), owner)
    assert stage.refused(withdraw(stage, 0, 51), owner) == "StakeBelowMinimum"
    assert stage.refused(withdraw(stage, 0), owner) == "NothingToWithdraw"
    opened = stage.send(withdraw(stage, 0, 50), owner).event("StakeUnbonding")
    assert opened.matures_slot == stage.slot + UNBOND
    assert (stage.run.total_stake, stage.run.total_unbonding) == (STAKE, 50)

    stage.chain.advance(UNBOND - 1)
    assert stage.refused(withdraw(stage, 0), owner) == "NothingToWithdraw"
    stage.chain.advance()
    before = balance(stage, 0)
    stage.send(withdraw(stage, 0), owner)
    assert balance(stage, 0) == before + 50 - FEE
    assert stage.run.total_unbonding == 0
    assert participant(stage, owner).withdrawn_total == 50


def test_three_tickets_at_most_but_leaving_always_finds_one():
    stage = Stage(1)
    owner = stage.owners[0]
    stage.send(top_up(stage, 0, 50), owner)
    for _ in range(3):
        stage.send(withdraw(stage, 0, 10), owner)
    assert stage.refused(withdraw(stage, 0, 10), owner) == "TicketsFull"
    leave(stage, 0)
    tickets = participant(stage, owner).tickets
    assert [ticket.lamports for ticket in tickets] == [10, 10, 10, STAKE + 20]


def test_matured_tickets_are_paid_and_new_ones_opened_in_one_step():
    stage = Stage(1)
    owner = stage.owners[0]
    stage.send(top_up(stage, 0, 40), owner)
    stage.send(withdraw(stage, 0, 10), owner)
    stage.chain.advance(UNBOND)
    landed = stage.send(withdraw(stage, 0, 30), owner)
    assert landed.event("StakeWithdrawn").lamports == 10
    assert landed.event("StakeUnbonding").lamports == 30


def test_leaving_while_the_run_waits_is_immediate_and_ends_with_a_closed_account():
    stage = Stage(2)
    owner = stage.owners[1]
    landed = leave(stage, 1)
    assert landed.names() == ["LeaveRequested", "ParticipantLeft"]
    assert stage.entries[1].status == Status.LEFT
    again = make.leave_run(stage.at, owner.pubkey())
    assert stage.refused(again, owner) == "AlreadyLeaving"

    stage.chain.advance(UNBOND)
    rent = stage.chain.accounts.balance(stage.at.participant(owner.pubkey()))
    before = balance(stage, 1)
    landed = stage.send(withdraw(stage, 1), owner)
    assert landed.names() == ["StakeWithdrawn", "ParticipantClosed"]
    assert balance(stage, 1) == before + STAKE + rent - FEE
    assert participant(stage, owner) is None
    assert stage.run.num_participants == 1
    assert "Custom" in stage.refused(withdraw(stage, 1), owner)


def test_a_member_serves_the_open_round_before_it_has_left():
    stage = Stage(4)
    stage.start()
    assert leave(stage, 3).event("LeaveRequested").at_next_open
    assert stage.entries[3].status == Status.ACTIVE and stage.entries[3].stake == 0
    owner = stage.owners[3]
    again = make.leave_run(stage.at, owner.pubkey())
    assert stage.refused(again, owner) == "AlreadyLeaving"
    assert stage.refused(top_up(stage, 3, 1), owner) == "AlreadyLeaving"
    stage.play()
    assert stage.entries[3].status == Status.LEFT
    assert sum(stage.entries[3].bucket_amount) == 1_000
    assert stage.open.members == 0b0111


def test_rent_of_an_admitted_participant_goes_back_to_the_authority():
    stage = Stage(0, admission="allowlist")
    owner, authority = newcomer(stage), stage.authority
    stage.owners.append(owner)
    stage.send(make.admit(stage.at, authority.pubkey(), owner.pubkey()), authority)
    stage.send(make.join_run(stage.at, owner.pubkey(), terms()), owner)
    leave(stage, 0)
    stage.chain.advance(UNBOND)
    assert stage.refused(withdraw(stage, 0), owner) == "WrongPayer"
    rent = stage.chain.accounts.balance(stage.at.participant(owner.pubkey()))
    before = stage.chain.accounts.balance(authority.pubkey())
    right = make.withdraw_stake(stage.at, owner.pubkey(), 0, authority.pubkey())
    stage.send(right, owner)
    assert stage.chain.accounts.balance(authority.pubkey()) == before + rent


def test_rewards_vest_and_are_claimed_once():
    stage = Stage(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    stage.start()
    stage.play()
    owner = stage.owners[0]
    claim = make.claim_reward(stage.at, owner.pubkey())
    earned = sum(stage.entries[0].bucket_amount)
    assert earned == 1_000
    assert stage.refused(claim, owner) == "NothingToClaim"

    # The reward fell into the first window of 2500 slots and vests 5000 slots after its end.
    stage.chain.advance(7_499 - stage.slot)
    assert stage.refused(claim, owner) == "NothingToClaim"
    stage.chain.advance()
    before = balance(stage, 0)
    claimed = stage.send(claim, owner).event("RewardClaimed")
    assert (claimed.vested, claimed.lamports) == (earned, earned)
    assert balance(stage, 0) == before + earned - FEE
    assert stage.refused(claim, owner) == "NothingToClaim"
    assert participant(stage, owner).claimed_total == earned


def test_rewards_outlive_leaving():
    stage = Stage(4, max_rounds=200, checkpoint_every=100, **SLOW_ROUNDS)
    stage.start()
    stage.play()
    leave(stage, 3)
    let_vest(stage)
    owner = stage.owners[3]
    landed = stage.send(withdraw(stage, 3), owner)
    assert landed.names() == ["StakeWithdrawn"], "rewards are still owed, the account stays"
    earned = stage.entries[3].claimable + sum(stage.entries[3].bucket_amount)
    assert stage.send(make.claim_reward(stage.at, owner.pubkey()), owner)
    assert earned == participant(stage, owner).claimed_total
    assert stage.send(withdraw(stage, 3), owner).names() == ["ParticipantClosed"]


@pytest.mark.parametrize("name", ["leave_run", "claim_reward", "withdraw_stake", "top_up_stake"])
def test_nobody_acts_for_another_owner(name):
    stage = Stage(2)
    thief, victim = stage.owners[0], stage.owners[1]
    args = (1,) if name in ("withdraw_stake", "top_up_stake") else ()
    built = getattr(make, name)(stage.at, thief.pubkey(), *args)
    theirs, own = (stage.at.participant(o.pubkey()) for o in (victim, thief))
    metas = [
        type(m)(theirs if m.pubkey == own else m.pubkey, m.is_signer, m.is_writable)
        for m in built.accounts
    ]
    swapped = type(built)(built.program_id, bytes(built.data), metas)
    assert stage.refused(swapped, thief) == "WrongOwner"


def test_a_donation_belongs_to_nobody_and_blocks_nothing(monkeypatch):
    stage = Stage(2)
    stage.chain.airdrop(stage.at.vault, 12_345)
    monkeypatch.setattr(stage, "_check_books", lambda: None)
    stage.start()
    stage.play()
    leave(stage, 0)
    owed = stage.run.total_stake + stage.run.total_unbonding + stage.run.total_unvested
    owed += stage.run.vault_rent + stage.run.reward_pool
    assert stage.chain.accounts.balance(stage.at.vault) == owed + 12_345
    assert stage.run.phase in (Phase.COMMIT, Phase.COOLDOWN)


def test_a_session_key_changes_at_once_between_rounds_and_at_the_next_open_within():
    stage = Stage(4)
    owner, new = stage.owners[0], key("new session")
    stage.chain.airdrop(new.pubkey(), 10**9)

    def change(to):
        return make.set_session_key(stage.at, owner.pubkey(), to.pubkey())

    assert not stage.send(change(new), owner).event("SessionKeySet").at_next_open
    assert bytes(stage.entries[0].session) == bytes(new.pubkey())
    stage.sessions[0] = new
    stage.start()

    newer = key("newer session")
    stage.chain.airdrop(newer.pubkey(), 10**9)
    assert stage.send(change(newer), owner).event("SessionKeySet").at_next_open
    commit = stage.commit_instruction(0)
    early = make.commit_payload(
        stage.at, newer.pubkey(), 0, 0, b"h" * 32, stage.vote(0, 0, b"x" * 32)
    )
    assert stage.refused(early, newer) == "WrongSessionKey"
    stage.send(commit, stage.sessions[0])
    stage.play_rest()
    assert bytes(stage.entries[0].session) == bytes(newer.pubkey())
    assert stage.refused(stage.commit_instruction(0), new) == "WrongSessionKey"
    stage.sessions[0] = newer
    stage.commit(0)


def test_a_session_key_must_not_be_zero_and_needs_a_participant_that_is_there():
    stage = Stage(2)
    owner = stage.owners[0]
    zero = type(owner.pubkey()).default()
    wrong = make.set_session_key(stage.at, owner.pubkey(), zero)
    assert stage.refused(wrong, owner) == "InvalidSessionKey"
    leave(stage, 0)
    gone = make.set_session_key(stage.at, owner.pubkey(), key("s").pubkey())
    assert stage.refused(gone, owner) == "NotJoined"


def test_leaving_during_warmup_may_complete_the_quorum():
    """Four of six are ready; when one of the others leaves, four of five are enough."""
    stage = Stage(6)
    stage.tick()
    for index in range(4):
        stage.ready(index)
    assert stage.run.quorum_slot == NONE
    leave(stage, 5)
    assert stage.run.quorum_slot == stage.slot
    stage.chain.advance(8)
    stage.tick()
    assert stage.open.members == 0b01111
