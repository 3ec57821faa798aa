"""The session key's money: filled up when low, within a limit, and every refusal reported once."""

import asyncio

import pytest
from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer
from support.chain import SOL, World, key
from support.faulty_rpc import always

from troth_client.participant.keeping import SPARE_LAMPORTS
from troth_client.participant.session_funding import UNSPENDABLE_LAMPORTS, SessionFunding
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.errors import InsufficientFundsError, RpcUnreachableError
from troth_coordinator.chain.operations import Owner

FULL = UNSPENDABLE_LAMPORTS + 4_000_000
FEE = 5_000
SESSION = key("session", "ada")


@pytest.fixture
def world():
    return World()


@pytest.fixture
async def owner(world):
    authority = await world.create()
    owner, session = await world.join(authority.at, "ada")
    await leave(world, session.key, FULL)
    return owner


async def leave(world, session, lamports):
    """Take money from the session key until so much is left."""
    away = world.balance(session.pubkey()) - lamports - FEE
    to = Pubkey.new_unique()
    terms = TransferParams(from_pubkey=session.pubkey(), to_pubkey=to, lamports=away)
    await world.client.send([transfer(terms)], [session])
    assert world.balance(session.pubkey()) == lamports


def funding(world, owner, left):
    return SessionFunding(owner, left, EventList(), SESSION.pubkey(), FULL)


async def test_a_full_funding_is_left_alone(world, owner):
    one = funding(world, owner, SOL)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS + 1_000_000)
    await one.check()
    assert one.events.events == []
    assert world.balance(one.session) == UNSPENDABLE_LAMPORTS + 1_000_000


async def test_a_low_funding_is_filled_up_and_the_fee_is_reported(world, owner):
    one = funding(world, owner, SOL)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS + 999_999)
    before = world.balance(owner.key.pubkey())
    await one.check()
    assert world.balance(one.session) == FULL
    assert one.events.events == [
        {
            "event": "session_refilled",
            "lamports": 3_000_001,
            "left": SOL - 3_000_001,
            "fee": FEE,
        }
    ]
    assert before - world.balance(owner.key.pubkey()) == 3_000_001 + FEE


async def test_no_more_than_the_limit_is_ever_moved(world, owner):
    one = funding(world, owner, 5_000_000)
    before = world.balance(owner.key.pubkey())
    for _ in range(2):
        await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
        await one.check()
    assert [event["lamports"] for event in one.events.events] == [4_000_000, 1_000_000]
    assert one.left == 0
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    await asyncio.wait_for(one.watch(0), 5)
    assert before - world.balance(owner.key.pubkey()) == 5_000_000 + 2 * FEE


async def test_a_session_that_was_given_nothing_is_somebody_elses_to_pay(world, owner):
    one = SessionFunding(owner, SOL, EventList(), SESSION.pubkey(), 0)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    await asyncio.wait_for(one.watch(0), 5)
    assert one.events.events == []


async def test_an_owner_without_money_is_reported_once_and_asked_again(world, owner):
    poor = Owner(world.client, owner.at, world.wallet("poor", lamports=UNSPENDABLE_LAMPORTS))
    one = funding(world, poor, SOL)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    with pytest.raises(InsufficientFundsError):
        await one.check()
    watching = asyncio.create_task(one.watch(0))
    for _ in range(50):
        await asyncio.sleep(0)
    (event,) = one.events.events
    assert event["event"] == "session_refill_failed"
    assert str(poor.key.pubkey()) in event["reason"]
    world.chain.airdrop(poor.key.pubkey(), SOL)
    async with asyncio.timeout(5):
        while len(one.events.events) < 2:
            await asyncio.sleep(0)
    watching.cancel()
    assert one.events.events[1]["event"] == "session_refilled"
    assert world.balance(one.session) == FULL


HIDING = {
    "says that they expired": ({"blind": always}, 40),
    "does not show them, and time stands still": ({"blind": always}, 0),
    "says that it refused them": ({"blind": always, "refuse": always}, 40),
    "says nothing about them": ({"mute": always, "cut": always}, 0),
}


@pytest.mark.parametrize("how", HIDING)
async def test_a_node_that_hides_what_landed_moves_no_more_than_the_limit(world, owner, how):
    """The node passes every refill on, and shows the balance of before."""
    limit = 10_000_000
    one = funding(world, owner, limit)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    faults, world.slots_per_sleep = HIDING[how]
    for name, fault in {**faults, "past": always}.items():
        setattr(world.faults, name, fault)
    world.rpc.sent.clear()
    await asyncio.wait_for(one.watch(0), 20)
    assert world.balance(SESSION.pubkey()) == UNSPENDABLE_LAMPORTS + limit
    assert len(set(world.rpc.sent)) == 3  # 4,000,000 twice, then the rest
    assert one.left == 0
    last = one.events.named("session_refill_failed")[-1]
    assert "its 2000000 lamports count against the limit" in last["reason"]


async def test_a_refill_that_fails_before_it_is_signed_does_not_count(world, owner):
    one = funding(world, owner, SOL)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    world.faults.hashless = always
    with pytest.raises(RpcUnreachableError):
        await one.check()
    assert one.left == SOL


async def test_an_owner_with_too_little_is_asked_for_no_signature(world, owner):
    lamports = 4_000_000 + SPARE_LAMPORTS - 1
    poor = Owner(world.client, owner.at, world.wallet("poor", lamports=lamports))
    one = funding(world, poor, SOL)
    await leave(world, SESSION, UNSPENDABLE_LAMPORTS)
    world.rpc.sent.clear()
    with pytest.raises(InsufficientFundsError):
        await one.check()
    assert world.rpc.sent == []
    assert one.left == SOL
    world.chain.airdrop(poor.key.pubkey(), 1)
    await one.check()
    assert world.balance(SESSION.pubkey()) == FULL
