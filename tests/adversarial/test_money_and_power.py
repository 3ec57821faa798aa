"""Attacks by the run authority on the stakes, and by participants on the others' time."""

import dataclasses

from support.program.rounds import SOL, RoundDriver, header_of, key, root_of

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.operations import JoinOffer, Owner
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import Status
from troth_localnet.direct import DirectRpc


def test_the_authority_cannot_turn_stakes_into_its_own_leftovers():
    """It raises the absence fee to the whole stake and cuts the phases to one slot.

    Everybody misses, the fees enter the pool, the pool is paid out to the funder: itself. The
    authority can never slash (section 3), so a change of parameters may not do it either.
    Threat T32.
    """
    driver = RoundDriver(4, rounds_per_epoch=2)
    changed = dataclasses.replace(driver.params, absence_fee=driver.params.min_stake_lamports)
    request = make.update_params(driver.at, driver.authority.pubkey(), changed)
    assert driver.refused(request, driver.authority) == "ImmutableParameter"
    shorter = dataclasses.replace(driver.params, commit_slots=1)
    request = make.update_params(driver.at, driver.authority.pubkey(), shorter)
    assert driver.refused(request, driver.authority) == "WindowShrinks"


def test_a_trainer_that_never_commits_becomes_inactive_although_it_attests():
    """It takes a trainer's place, lets everybody wait for the end of each Commit, and attests.

    With it four fifths are never reached, so every round lasts to the deadline. Attesting is
    another duty than committing: it must not end the row of missed commits. Threat T55.
    """
    driver = RoundDriver(4)
    driver.start()
    for _ in range(12):
        driver.commit_all([i for i in driver.trainers() if i != 3])
        driver.attest_all()
        driver.close()
        driver.chain.advance()
    assert driver.entries[3].status == Status.INACTIVE
    assert driver.trainers() == [0, 1, 2]


async def test_newcomers_pass_by_an_index_whose_rewards_have_not_vested():
    """A member that has earned leaves. Its index is reused when its rewards have vested.

    Until then (96 hours on a public run, while the ring turns within one) newcomers must end at
    the next index, or nobody can join any more. Threat T56.
    """
    driver = RoundDriver(4, max_rounds=60)
    driver.start()
    driver.play(2)
    driver.leave(0)
    driver.play(driver.params.ring + 2)
    left = driver.entries[0]
    assert left.status == Status.LEFT
    assert sum(left.bucket_amount) > 0
    newcomer = key("newcomer")
    driver.chain.airdrop(newcomer.pubkey(), 10 * SOL)
    client = CoordinatorClient(DirectRpc(driver.chain), sleeper=no_wait)
    joining = Owner(client, driver.at, newcomer)
    index, _sent = await joining.join_run(
        JoinOffer(key("newcomer session").pubkey(), 3, "http://n")
    )
    assert index == 4


async def no_wait(_seconds: float) -> None:
    """A transaction sent to a chain in the same process has landed."""


def test_rewards_that_move_when_an_owner_comes_back_are_in_the_chain_hash():
    """An auditor that adds up events must arrive at the balances of the accounts (section 11).

    Threat T50.
    """
    driver = RoundDriver(4)
    driver.start()
    driver.play(2)
    driver.leave(3)
    driver.play(1)
    driver.chain.advance(2 * driver.params.vesting_slots)
    owed = sum(driver.entries[3].bucket_amount)
    assert owed > 0
    terms = make.JoinTerms(7, 3, key("again").pubkey(), "http://again")
    landed = driver.send(
        make.join_run(driver.at, driver.owners[3].pubkey(), terms), driver.owners[3]
    )
    assert landed.event("RewardsMoved").lamports == owed


def test_a_vote_for_another_run_is_worth_nothing_here():
    """The same owner trains in two runs from the same weights and sends one run's vote to both.

    Threat T33.
    """
    driver = RoundDriver(4)
    driver.start()
    for index in range(3):
        driver.commit(index)
    owner = bytes(driver.owners[3].pubkey())
    foreign = root_vote(b"another run's address, 32 bytes.", driver.run.round, owner, root_of(0))
    session = driver.sessions[3]
    commit = make.commit_payload(driver.at, session.pubkey(), 3, 0, header_of(3, 0), foreign)
    driver.send(commit, session)
    driver.advance_phase()
    driver.attest_all()
    driver.close()
    assert driver.round(0).included == 0b0111


def test_a_landed_transaction_cannot_be_sent_again_in_a_later_round():
    """A captured commit is replayed byte for byte, in its round and in the next one.

    Threat T33.
    """
    driver = RoundDriver(2)
    driver.start()
    driver.commit(0)
    captured = driver.commit_instruction(1)
    driver.send(captured, driver.sessions[1])
    assert driver.refused(captured, driver.sessions[1]) == "AlreadyCommitted"
    driver.advance_phase()
    driver.attest_all()
    driver.close()
    assert driver.refused(captured, driver.sessions[1]) == "WrongRound"
