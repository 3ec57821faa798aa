"""Payments of commands against a node that hides that they landed: paid once, and a word on it."""

from types import SimpleNamespace

import pytest
from support.chain import SOL, World, key
from support.faulty_rpc import always, first

from troth_client.participant.joining import join
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.errors import BlockhashExpiredError, ProgramRefusedError
from troth_coordinator.chain.operations import JoinOffer, Owner

HIDDEN = {"first": first(6), "always": always}
"""Five polls and the search at the end of an attempt see nothing: of the first, or of any."""


def hide(world, how):
    """Let the node pass on what is sent, and hide that it landed."""
    world.slots_per_sleep = 40
    world.faults.num_calls.clear()
    world.faults.blind = HIDDEN[how]
    del world.rpc.sent[:]


async def told_once(world, payment, look):
    """Assert that a hidden payment was signed once, and that the error says where to look."""
    with pytest.raises(BlockhashExpiredError) as caught:
        await payment
    assert len(set(world.rpc.sent)) == 1
    assert "none landed" not in caught.value.found
    assert "may have landed" in caught.value.next_step
    assert f"({look})" in caught.value.next_step


@pytest.fixture
async def joined():
    world = World()
    at = (await world.create()).at
    owner, _session = await world.join(at, "alice")
    return world, owner


async def tickets_of(world, owner):
    found = await world.client.read_participant(owner.at.run, owner.key.pubkey())
    return [ticket.lamports for ticket in found.tickets if ticket.lamports]


async def stake_of(world, owner):
    view = await world.client.snapshot(owner.at.run)
    mine = [entry for entry in view.entries if entry.owner == bytes(owner.key.pubkey())]
    return [entry.stake for entry in mine]


@pytest.mark.parametrize("how", HIDDEN)
async def test_the_pool_is_paid_into_once(how):
    world = World()
    authority = await world.create()
    before = (await world.client.read_run(authority.at.run)).reward_pool
    hide(world, how)
    await told_once(world, authority.fund_run(SOL), f"troth run show {authority.at.run}")
    assert (await world.client.read_run(authority.at.run)).reward_pool == before + SOL


@pytest.mark.parametrize("how", HIDDEN)
async def test_a_creation_funds_its_pool_once(how):
    world = World()
    authority = await world.create()
    before = (await world.client.read_run(authority.at.run)).reward_pool
    hide(world, how)
    creation = authority.create_run(world.terms(), SOL)
    await told_once(world, creation, f"troth run show {authority.at.run}")
    assert (await world.client.read_run(authority.at.run)).reward_pool == before + SOL


@pytest.mark.parametrize("how", HIDDEN)
async def test_a_stake_is_topped_up_once(joined, how):
    world, owner = joined
    (before,) = await stake_of(world, owner)
    hide(world, how)
    await told_once(world, owner.top_up_stake(SOL), f"troth stake show {owner.at.run}")
    assert await stake_of(world, owner) == [before + SOL]


@pytest.mark.parametrize("how", HIDDEN)
async def test_one_ticket_is_opened_for_a_part_of_the_stake(joined, how):
    world, owner = joined
    await owner.top_up_stake(4 * SOL)
    hide(world, how)
    await told_once(world, owner.withdraw_stake(SOL), f"troth stake show {owner.at.run}")
    assert await tickets_of(world, owner) == [SOL]


@pytest.mark.parametrize("how", HIDDEN)
async def test_a_new_session_key_is_funded_once(joined, how):
    world, owner = joined
    new = key("session", "new").pubkey()
    hide(world, how)
    await told_once(world, owner.set_session_key(new, SOL), f"solana balance {new}")
    assert world.balance(new) == SOL


@pytest.mark.parametrize("how", HIDDEN)
async def test_a_session_key_is_refilled_once(joined, how):
    world, owner = joined
    session = key("session", "alice").pubkey()
    before = world.balance(session)
    hide(world, how)
    await told_once(world, owner.fund_session(session, SOL), f"solana balance {session}")
    assert world.balance(session) == before + SOL


async def test_a_participant_that_tries_again_funds_its_new_session_key_once(joined):
    """It goes on as long as nodes fail: each try of `troth join` names the key, one funds it."""
    world, owner = joined
    settings = SimpleNamespace(stake_lamports=0, role=3, session_lamports=SOL)
    new, once = key("session", "new"), Once()
    hide(world, "always")
    world.rpc.forget_reads()
    world.faults.past = always
    for _try in range(3):
        with pytest.raises(BlockhashExpiredError):
            await join(owner, settings, new, "http://alice", once)
    assert world.balance(new.pubkey()) == SOL
    world.faults.blind = world.faults.past = first(0)
    await join(owner, settings, new, "http://alice", once)
    assert world.balance(new.pubkey()) == SOL


@pytest.mark.parametrize("how", HIDDEN)
async def test_a_deposit_needs_no_care_since_the_program_takes_one_of_an_owner(how):
    world = World()
    at = (await world.create()).at
    owner = Owner(world.client, at, world.wallet("owner", "bob"))
    session = key("session", "bob").pubkey()
    offer = JoinOffer(session, 3, "http://bob", session_lamports=SOL, more_stake=SOL)
    hide(world, how)
    if how == "always":
        with pytest.raises(ProgramRefusedError, match="AlreadyJoined"):
            await owner.join_run(offer)
    else:
        await owner.join_run(offer)
    least = (await world.client.read_run(at.run)).params.min_stake_lamports
    assert await stake_of(world, owner) == [least + SOL]
    assert world.balance(session) == SOL


async def test_a_node_that_is_away_after_a_payment_does_not_make_it_one_that_failed(joined):
    world, owner = joined
    (before,) = await stake_of(world, owner)
    hide(world, "always")
    world.faults.hashless = lambda call: call > 0
    await told_once(world, owner.top_up_stake(SOL), f"troth stake show {owner.at.run}")
    assert await stake_of(world, owner) == [before + SOL]
