"""Sends that are checked by a node some slots behind the one that was asked before it.

Several nodes behind one address are such nodes.
"""

import pytest
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction
from support.chain import SOL, World, key

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import RpcRefusedError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.newest_slot import LAG_SECONDS, NewestSlot
from troth_coordinator.chain.rpc import BEHIND_CODE
from troth_localnet.rpc import RpcServer, ServerConfig

BOB = key("bob").pubkey()


def pay(payer):
    return transfer(TransferParams(from_pubkey=payer.pubkey(), to_pubkey=BOB, lamports=SOL))


@pytest.fixture
async def over_http():
    """A world, a client that asks it over HTTP, and the address that it asks."""
    world = World()
    server = RpcServer(world.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    async with HttpRpc(server.rpc_url) as rpc:
        yield world, CoordinatorClient(rpc, sleeper=world._sleep), rpc
    await server.stop()


@pytest.mark.parametrize("lag_slots", [1, 2, 5])
async def test_a_blockhash_that_a_node_does_not_know_yet_is_repeated(lag_slots):
    """Before, each attempt was signed under a newer one, and after four the send failed."""
    world = World()
    alice, rpc, born = world.wallet("alice"), world.rpc, {}
    latest, send, taken = rpc.latest_blockhash, rpc.send, []

    async def latest_blockhash():
        found = await latest()
        born.setdefault(found[0], world.chain.slot)
        return found

    async def send_behind(raw, *, skip_preflight=False):
        blockhash = VersionedTransaction.from_bytes(raw).message.recent_blockhash
        if world.chain.slot - born[blockhash] < lag_slots:
            raise TransactionRejectedError(TransactionFailure("BlockhashNotFound"), [])
        taken.append(raw)
        return await send(raw, skip_preflight=skip_preflight)

    rpc.latest_blockhash, rpc.send = latest_blockhash, send_behind
    await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL
    assert len(set(taken)) == 1
    assert len(born) == 1


async def test_a_blockhash_of_no_chain_is_given_up_for_another():
    world = World()
    alice, send, refused = world.wallet("alice"), world.rpc.send, []

    async def send_later(raw, *, skip_preflight=False):
        if not refused or raw == refused[0]:
            refused.append(raw)
            raise TransactionRejectedError(TransactionFailure("BlockhashNotFound"), [])
        return await send(raw, skip_preflight=skip_preflight)

    world.rpc.send = send_later
    await world.client.send([pay(alice)], [alice])
    assert world.balance(BOB) == SOL


async def test_a_node_behind_what_was_seen_sends_and_judges_nothing(over_http):
    """Its preflight would refuse what follows from the newest slot, and nothing says that it lags.

    The slot of the answer stands for that of another node behind the address.
    """
    world, client, rpc = over_http
    alice = world.wallet("alice")
    seen = world.chain.slot + 3
    rpc._newest.saw(seen)
    with pytest.raises(RpcRefusedError, match="Minimum context slot") as caught:
        await rpc.send(b"")
    assert caught.value.code == BEHIND_CODE
    await client.simulate([pay(alice)], [alice])
    assert world.chain.slot == seen
    rpc._newest.saw(seen + 3)
    sent = await client.send([pay(alice)], [alice])
    assert sent.slot == seen + 3
    assert world.balance(BOB) == SOL


async def test_the_slots_of_accounts_and_of_what_landed_count_as_seen(over_http):
    world, client, rpc = over_http
    world.chain.advance(5)
    await client.balance(BOB)
    assert rpc._newest.config == {"minContextSlot": world.chain.slot}
    alice = world.wallet("alice")
    sent = await client.send([pay(alice)], [alice])
    assert rpc._newest.config["minContextSlot"] >= sent.slot


def test_a_slot_that_was_never_true_is_insisted_on_for_some_seconds_only():
    seconds = [100.0]
    newest = NewestSlot(lambda: seconds[0])
    newest.saw(10**12)
    for _ in range(3):
        newest.told(is_behind=True)
        assert newest.config == {"minContextSlot": 10**12}
        seconds[0] += LAG_SECONDS / 2.5
    newest.told(is_behind=True)
    assert newest.config == {}
