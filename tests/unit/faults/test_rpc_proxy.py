"""The proxy of a node's answers, before an embedded chain whose slots the test moves."""

import pytest
from solders.keypair import Keypair
from solders.transaction import VersionedTransaction
from support import served
from support.localnet import SOL

from troth_coordinator.chain.errors import RpcUnreachableError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_simulation.faults.rpc_proxy import RpcProxy
from troth_simulation.faults.trouble import Effect, Trouble

server, client, chain, wallet, call = served.FIXTURES
FRIEND = Keypair().pubkey()


@pytest.fixture
async def proxy(server):
    async with RpcProxy(server.rpc_url) as proxy:
        yield proxy


@pytest.fixture
async def rpc(proxy):
    async with HttpRpc(f"http://127.0.0.1:{proxy.port}") as rpc:
        yield rpc


async def lamports(rpc) -> int:
    _slot, (account,) = await rpc.get_accounts([FRIEND])
    return 0 if account is None else account.lamports


async def test_answers_pass_and_are_counted_by_method(chain, proxy, rpc):
    assert await rpc.get_slot() == chain.slot
    assert dict(proxy.traffic.requests) == {"getSlot": 1}
    assert proxy.traffic.bytes_up["getSlot"] > 50
    assert proxy.traffic.bytes_down["getSlot"] > 20


@pytest.mark.parametrize("status", [429, 503])
async def test_a_status_comes_instead_of_every_answer(proxy, rpc, status):
    proxy.set(Trouble(Effect.STATUS, status))
    with pytest.raises(RpcUnreachableError, match=str(status)):
        await rpc.get_slot()
    proxy.set(None)
    assert await rpc.get_slot() >= 0


async def test_a_swallowed_transaction_has_its_signature_and_never_lands(chain, proxy, rpc, wallet):
    proxy.set(Trouble(Effect.SWALLOW))
    raw = wallet.payment(FRIEND, SOL)
    signature = await rpc.send(raw)
    chain.advance(1)
    assert signature == VersionedTransaction.from_bytes(raw).signatures[0]
    assert chain.accounts.balance(FRIEND) == 0
    assert await rpc.statuses([signature]) == [None]


async def test_a_frozen_node_shows_the_chain_as_it_was_and_still_forwards(
    chain, proxy, rpc, wallet
):
    assert await lamports(rpc) == 0
    slot = await rpc.get_slot()
    proxy.set(Trouble(Effect.FREEZE))
    chain.advance(3)
    signature = await rpc.send(wallet.payment(FRIEND, SOL))
    chain.advance(3)
    assert chain.accounts.balance(FRIEND) == SOL
    assert await rpc.get_slot() == slot
    assert await lamports(rpc) == 0
    assert await rpc.statuses([signature]) == [None]
    proxy.set(None)
    assert await lamports(rpc) == SOL
    assert await rpc.get_slot() == slot + 6
    (status,) = await rpc.statuses([signature])
    assert status is not None and status.failure is None


async def test_a_lagging_node_shows_what_was_so_many_slots_ago(chain, proxy, rpc, wallet):
    proxy.set(Trouble(Effect.LAG, 4))
    real, shown, balances = [], [], []
    for step in range(12):
        if step == 3:
            chain.send(wallet.payment(FRIEND, SOL))
        chain.advance(1)
        real.append(chain.slot)
        shown.append((await rpc.get_accounts([FRIEND]))[0])
        balances.append(await lamports(rpc))
    for now, slot in zip(real, shown, strict=True):
        assert slot == max((one for one in real if one <= now - 4), default=real[0])
    assert balances[:7] == [0] * 7, "the payment landed with the fourth step"
    assert balances[8:] == [SOL] * 4


async def test_an_effect_on_a_line_is_refused_with_the_proxy_that_has_it(proxy):
    with pytest.raises(ValueError, match="TcpProxy"):
        proxy.set(Trouble(Effect.STALL))
