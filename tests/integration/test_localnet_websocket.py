"""Subscriptions through solana-py, and through a bare websocket where it falls short."""

import asyncio
import json

import pytest
import websockets
from solana.rpc.types import MemcmpOpts
from solana.rpc.websocket_api import SubscriptionError, connect
from solders.account import Account
from solders.pubkey import Pubkey
from solders.rpc.config import RpcTransactionLogsFilter, RpcTransactionLogsFilterMentions
from solders.rpc.responses import (
    AccountNotification,
    LogsNotification,
    ProgramNotification,
    RootNotification,
    SignatureNotification,
    SlotNotification,
    SubscriptionResult,
)
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from support.localnet import SOL, Wallet

from troth_localnet import rpc as rpc_module
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_localnet.subscriptions import MAX_PER_CONNECTION
from troth_localnet.svm import Chain

SYSTEM = Pubkey.default()


@pytest.fixture
async def server():
    one = RpcServer(Chain(), ServerConfig(slot_milliseconds=None))
    await one.start()
    yield one
    await one.stop()


@pytest.fixture
def chain(server):
    return server.chain


@pytest.fixture
def wallet(chain):
    return Wallet(chain)


@pytest.fixture
async def ws(server):
    async with connect(server.ws_url) as socket:
        yield socket


@pytest.fixture
async def bare(server):
    """A websocket without any client library on top: call(method, *params) -> reply."""
    async with websockets.connect(server.ws_url) as socket:

        async def call(method, *params):
            body = {"jsonrpc": "2.0", "id": 9, "method": method, "params": list(params)}
            await socket.send(json.dumps(body))
            return json.loads(await asyncio.wait_for(socket.recv(), 5))

        call.socket = socket
        yield call


async def next_of(ws):
    (message,) = await asyncio.wait_for(ws.recv(), 5)
    return message


async def subscribed(ws, request):
    await request
    message = await next_of(ws)
    assert isinstance(message, SubscriptionResult)
    return message.result


async def assert_silent(ws, chain):
    """Nothing is queued: the next message is that of a fresh slot subscription."""
    await subscribed(ws, ws.slot_subscribe())
    chain.advance()
    assert isinstance(await next_of(ws), SlotNotification)


async def test_account_changes_are_told(ws, chain, wallet):
    to = Pubkey.new_unique()
    number = await subscribed(ws, ws.account_subscribe(to, encoding="base64"))
    chain.send(wallet.payment(to, SOL))
    reported = await next_of(ws)
    assert isinstance(reported, AccountNotification)
    assert reported.subscription == number
    assert reported.result.value.lamports == SOL
    assert reported.result.context.slot == chain.slot


async def test_a_closed_account_is_told_as_empty(ws, chain, wallet):
    await subscribed(ws, ws.account_subscribe(wallet.pubkey))
    chain.send(wallet.payment(Pubkey.new_unique(), wallet.lamports - 5_000))
    reported = (await next_of(ws)).result.value
    assert reported.lamports == 0
    assert reported.owner == SYSTEM
    assert reported.data == b""


async def test_other_accounts_are_not_told(ws, chain, wallet):
    await subscribed(ws, ws.account_subscribe(Pubkey.new_unique()))
    chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    await assert_silent(ws, chain)


async def test_program_accounts_are_told_if_they_pass_the_filters(ws, chain, wallet):
    all_accounts = await subscribed(ws, ws.program_subscribe(SYSTEM, encoding="base64"))
    await subscribed(ws, ws.program_subscribe(SYSTEM, encoding="base64", filters=[5]))
    none = [MemcmpOpts(offset=0, bytes="2")]
    await subscribed(ws, ws.program_subscribe(SYSTEM, encoding="base64", filters=none))
    to = Pubkey.new_unique()
    chain.send(wallet.payment(to, SOL))
    reported = [await next_of(ws), await next_of(ws)]
    assert all(isinstance(one, ProgramNotification) for one in reported)
    assert {one.subscription for one in reported} == {all_accounts}
    assert {one.result.value.pubkey for one in reported} == {wallet.pubkey, to}
    await assert_silent(ws, chain)


async def test_logs_are_told_to_all_and_to_those_mentioned(ws, chain, wallet):
    everyone = await subscribed(ws, ws.logs_subscribe(RpcTransactionLogsFilter.All))
    mentioned = await subscribed(
        ws, ws.logs_subscribe(RpcTransactionLogsFilterMentions(wallet.pubkey))
    )
    await subscribed(ws, ws.logs_subscribe(RpcTransactionLogsFilterMentions(Pubkey.new_unique())))
    signature = chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    reported = [await next_of(ws), await next_of(ws)]
    assert all(isinstance(one, LogsNotification) for one in reported)
    assert {one.subscription for one in reported} == {everyone, mentioned}
    assert reported[0].result.value.signature == signature
    assert reported[0].result.value.logs[-1].endswith("success")
    await assert_silent(ws, chain)


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("lamports", [SOL, 10**15])
async def test_a_signature_is_told_once_whenever_it_lands(ws, chain, wallet, order, lamports):
    raw = wallet.payment(Pubkey.new_unique(), lamports)
    signature = VersionedTransaction.from_bytes(raw).signatures[0]
    if order == "before":
        chain.send(raw, skip_preflight=True)
    await subscribed(ws, ws.signature_subscribe(signature))
    if order == "after":
        chain.send(raw, skip_preflight=True)
    reported = await next_of(ws)
    assert isinstance(reported, SignatureNotification)
    assert (reported.result.value.err is None) == (lamports == SOL)
    await assert_silent(ws, chain)


async def test_slots_and_roots_are_told(ws, chain):
    await subscribed(ws, ws.slot_subscribe())
    chain.advance()
    reported = await next_of(ws)
    assert isinstance(reported, SlotNotification)
    assert reported.result.slot == 2
    assert reported.result.parent == 1
    assert reported.result.root == 1
    await subscribed(ws, ws.root_subscribe())
    chain.skip(3)
    slot, root = await next_of(ws), await next_of(ws)
    assert slot.result.slot == 6
    assert slot.result.parent == 2
    assert isinstance(root, RootNotification)
    assert root.result == 2


@pytest.mark.parametrize("kind", ["account", "program", "logs", "slot", "root", "signature"])
async def test_after_unsubscribing_nothing_is_told(ws, chain, wallet, kind):
    target = {
        "account": [wallet.pubkey],
        "program": [SYSTEM],
        "signature": [Signature.new_unique()],
    }.get(kind, [])
    number = await subscribed(ws, getattr(ws, f"{kind}_subscribe")(*target))
    await getattr(ws, f"{kind}_unsubscribe")(number)
    assert (await next_of(ws)).result is True
    chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    chain.advance()
    await assert_silent(ws, chain)


async def test_unsubscribing_the_unknown_is_an_error(bare):
    assert (await bare("accountUnsubscribe", 77))["error"]["code"] == -32_602
    assert (await bare("voteSubscribe"))["error"]["code"] == -32_601


async def test_a_connection_cannot_end_anothers_subscription(bare, ws, chain):
    number = await subscribed(ws, ws.slot_subscribe())
    assert (await bare("slotUnsubscribe", number))["error"]["code"] == -32_602
    chain.advance()
    assert isinstance(await next_of(ws), SlotNotification)


async def test_subscription_errors_reach_the_client(ws):
    with pytest.raises(SubscriptionError):
        await ws.program_subscribe(SYSTEM, encoding="base64", filters=[1] * 5)
        await next_of(ws)


async def test_ordinary_methods_work_over_the_websocket(bare, chain):
    assert (await bare("getSlot"))["result"] == chain.slot


async def test_subscriptions_per_connection_are_limited(bare):
    for _ in range(MAX_PER_CONNECTION):
        assert "result" in await bare("slotSubscribe")
    assert "unsubscribe first" in (await bare("slotSubscribe"))["error"]["message"]


async def test_a_closed_connection_leaves_nothing_behind(server, chain):
    async with connect(server.ws_url) as ws:
        await subscribed(ws, ws.slot_subscribe())
        assert server._hub._by_topic
    async with asyncio.timeout(5):
        while server._hub._by_topic:
            await asyncio.sleep(0.005)
    chain.advance()


async def test_a_reader_that_falls_behind_is_cut_off(monkeypatch, chain, server):
    monkeypatch.setattr(rpc_module, "MAX_QUEUED_NOTIFICATIONS", 50)
    async with websockets.connect(server.ws_url, max_queue=1) as socket:
        await socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
        assert "result" in await socket.recv()
        for _ in range(51):
            chain.advance()
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await asyncio.wait_for(socket.recv(), 5)


@pytest.mark.parametrize("text", ["garbage", "[" * 5_000, "{}", '{"jsonrpc":"2.0"}'])
async def test_garbage_gets_an_error_and_the_socket_lives_on(bare, text):
    await bare.socket.send(text)
    assert "error" in json.loads(await bare.socket.recv())
    assert "result" in await bare("getSlot")


async def test_a_huge_message_ends_only_its_own_socket(server, bare):
    async with websockets.connect(server.ws_url, max_size=None) as socket:
        await socket.send("x" * 1_000_000)
        with pytest.raises(websockets.ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 5)
    assert "result" in await bare("getSlot")


async def test_account_data_keeps_its_encoding(bare, chain, wallet):
    key = wallet.pubkey
    chain.accounts.set(key, Account(10 * SOL, b"", SYSTEM, False, 0))
    await bare("accountSubscribe", str(key), {"encoding": "base58"})
    chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    reported = json.loads(await bare.socket.recv())
    assert reported["method"] == "accountNotification"
    assert reported["params"]["result"]["value"]["data"] == ["", "base58"]
