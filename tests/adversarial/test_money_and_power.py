"""Attacks by the run authority on the stakes, and by participants on the others' time."""

import dataclasses

from program.rounds import SOL, Stage, header_of, key, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status
from troth_localnet.direct import DirectRpc


def test_the_authority_cannot_turn_stakes_into_its_own_leftovers():
    """It raises the absence fee to the whole stake and cuts the phases to one slot.

    Everybody misses, the fees enter the pool, the pool is paid out to the funder: itself. The
    authority can never slash (section 3), so a change of parameters may not do it either.
    Threat T32.
    """
    stage = Stage(4, rounds_per_epoch=2)
    stage.start()
    stake = stage.params.stake_lamports
    changed = dataclasses.replace(
        stage.params, absence_fee=stake, commit_slots=1, attest_slots=1, close_grace_slots=1
    )
    request = make.update_params(stage.at, stage.authority.pubkey(), changed)
    try:
        stage.send(request, stage.authority)
    except AssertionError as error:
        assert "ImmutableParameter" in str(error) or "custom program error" in str(error)
        return
    stage.play(1)
    stage.chain.advance(stage.params.param_delay_slots + 1)
    stage.play(3)
    while stage.run.phase in (Phase.COMMIT, Phase.ATTEST):
        stage.run_out()
        stage.tick()
        stage.run_out()
        stage.close()
    # What one absence may cost was agreed on when the stake was deposited.
    old_fee = stage.params.absence_fee
    assert all(entry.stake >= stake - old_fee for entry in stage.entries[:4])


def test_a_trainer_that_never_commits_becomes_inactive_although_it_attests():
    """It takes a trainer's place, lets everybody wait for the end of each Commit, and attests.

    With it four fifths are never reached, so every round lasts to the deadline. Attesting is
    another duty than committing: it must not end the row of missed commits. Threat T55.
    """
    stage = Stage(4)
    stage.start()
    for _ in range(12):
        stage.commit_all([i for i in stage.trainers() if i != 3])
        stage.attest_all()
        stage.close()
        stage.chain.advance()
    assert stage.entries[3].status == Status.INACTIVE
    assert stage.trainers() == [0, 1, 2]


async def test_newcomers_pass_by_an_index_whose_rewards_have_not_vested():
    """A member that has earned leaves. Its index is reused when its rewards have vested.

    Until then (96 hours on a public run, while the ring turns within one) newcomers must end at
    the next index, or nobody can join any more. Threat T56.
    """
    stage = Stage(4, max_rounds=60)
    stage.start()
    stage.play(2)
    stage.send(make.leave_run(stage.at, stage.owners[0].pubkey()), stage.owners[0])
    stage.play(stage.params.ring + 2)
    left = stage.entries[0]
    assert left.status == Status.LEFT
    assert sum(left.bucket_amount) > 0
    newcomer = key("newcomer")
    stage.chain.airdrop(newcomer.pubkey(), 10 * SOL)
    client = CoordinatorClient(DirectRpc(stage.chain), sleeper=no_wait)
    joining = Owner(client, stage.at, newcomer)
    index, _sent = await joining.join_run(key("newcomer session").pubkey(), 3, "http://n")
    assert index == 4


async def no_wait(_seconds: float) -> None:
    """What is sent to a chain in the same process has landed."""


def test_rewards_that_move_when_an_owner_comes_back_are_in_the_chain_hash():
    """An auditor that adds up events must arrive at the balances of the accounts (section 11).

    Threat T50.
    """
    stage = Stage(4)
    stage.start()
    stage.play(2)
    stage.send(make.leave_run(stage.at, stage.owners[3].pubkey()), stage.owners[3])
    stage.play(1)
    stage.chain.advance(2 * stage.params.vesting_slots)
    owed = sum(stage.entries[3].bucket_amount)
    assert owed > 0
    terms = make.JoinTerms(7, 3, key("again").pubkey(), "http://again")
    landed = stage.send(make.join_run(stage.at, stage.owners[3].pubkey(), terms), stage.owners[3])
    assert landed.event("RewardsMoved").lamports == owed


def test_a_vote_for_another_run_is_worth_nothing_here():
    """The same owner trains in two runs from the same weights and sends one run's vote to both.

    Threat T33.
    """
    stage = Stage(4)
    stage.start()
    for index in range(3):
        stage.commit(index)
    owner = bytes(stage.owners[3].pubkey())
    foreign = root_vote(b"another run's address, 32 bytes.", stage.run.round, owner, root_of(0))
    session = stage.sessions[3]
    commit = make.commit_payload(stage.at, session.pubkey(), 3, 0, header_of(3, 0), foreign)
    stage.send(commit, session)
    stage.tick()
    stage.attest_all()
    stage.close()
    assert stage.round(0).included == 0b0111


def test_a_landed_transaction_cannot_be_sent_again_in_a_later_round():
    """A captured commit is replayed byte for byte, in its round and in the next one.

    Threat T33.
    """
    stage = Stage(2)
    stage.start()
    stage.commit(0)
    captured = stage.commit_instruction(1)
    stage.send(captured, stage.sessions[1])
    assert stage.refused(captured, stage.sessions[1]) == "AlreadyCommitted"
    stage.tick()
    stage.attest_all()
    stage.close()
    assert stage.refused(captured, stage.sessions[1]) == "WrongRound"
