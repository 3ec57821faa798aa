"""Node, time, blocks, fees and the edges of every method, through solana-py 0.36 on solders 0.26.

solders panics on a reply of the wrong shape, so each call that returns is a shape that fits.
"""

import json

import pytest
from solana.rpc.commitment import Finalized
from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.message import Message
from solders.pubkey import Pubkey
from solders.rpc.requests import GetBlockHeight, GetHealth, GetSlot
from solders.rpc.responses import GetBlockHeightResp, GetHealthResp, GetSlotResp
from support import served
from support.localnet import SOL, pay

from troth_localnet.methods.registry import METHODS

refused = served.refused
server, client, chain, wallet, call = served.FIXTURES


async def test_node_and_time(client, chain):
    assert await client.is_connected()
    assert (await client.get_version()).value.solana_core
    assert (await client.get_genesis_hash()).value == chain.blocks.genesis_hash
    identity = (await client.get_identity()).value.identity
    assert (await client.get_slot_leader()).value == identity
    assert str(identity) in (await client.get_cluster_nodes()).to_json()
    assert (await client.get_vote_accounts()).value.current == []
    chain.advance(11)
    assert (await client.get_slot()).value == chain.slot == 12
    assert (await client.get_slot(Finalized)).value == 12
    assert (await client.get_block_height()).value == 11
    assert (await client.get_block_time(12)).value == 1_700_000_004
    assert (await client.get_epoch_info()).value.absolute_slot == 12
    assert (await client.get_epoch_schedule()).value.slots_per_epoch == 432_000
    assert (await client.get_blocks(8)).value == [8, 10, 11, 12]
    assert (await client.get_blocks(8, 11)).value == [8, 10, 11]
    assert (await client.get_first_available_block()).value == 0
    assert (await client.get_minimum_ledger_slot()).value == 0
    assert (await client.get_transaction_count()).value == 0
    assert (await client.get_minimum_balance_for_rent_exemption(0)).value == 890_880


async def test_skipped_future_and_forgotten_blocks_have_their_errors(client, chain):
    chain.advance(25_000)
    assert (await refused(client.get_block_time(24_999)))[0] == "SlotSkippedMessage"
    assert (await refused(client.get_block(10**9)))[0] == "BlockNotAvailableMessage"
    kind, text = await refused(client.get_block(5))
    assert kind == "BlockCleanedUpMessage"
    assert "First available block" in text


async def test_blockhashes(client, chain):
    latest = (await client.get_latest_blockhash()).value
    blockhash, last_valid_height = chain.latest_blockhash()
    assert latest.blockhash == blockhash
    assert latest.last_valid_block_height == last_valid_height
    chain.advance(5)
    newer = (await client.get_latest_blockhash()).value
    assert newer.blockhash != latest.blockhash


async def test_is_blockhash_valid(call, chain):
    blockhash = str(chain.latest_blockhash()[0])
    assert (await call("isBlockhashValid", blockhash))["result"]["value"] is True
    chain.advance(200)
    assert (await call("isBlockhashValid", blockhash))["result"]["value"] is False
    assert (await call("isBlockhashValid", "xyz"))["error"]["code"] == -32_602


async def test_fees(client, call, chain, wallet):
    budget = [set_compute_unit_limit(100_000), set_compute_unit_price(20_000)]
    to = Pubkey.new_unique()
    latest, _ = chain.latest_blockhash()
    message = Message.new_with_blockhash([*budget, pay(wallet.key, to, SOL)], wallet.pubkey, latest)
    assert (await client.get_fee_for_message(message)).value == 7_000
    chain.send(wallet.transaction(*budget, pay(wallet.key, to, SOL)))
    fees = (await call("getRecentPrioritizationFees", [str(to)]))["result"]
    assert fees[-1] == {"slot": chain.slot, "prioritizationFee": 20_000}
    other = (await call("getRecentPrioritizationFees", [str(Pubkey.new_unique())]))["result"]
    assert other[-1]["prioritizationFee"] == 0
    assert (await call("getRecentPrioritizationFees"))["result"][-1]["slot"] == chain.slot
    chain.advance(200)
    assert (await client.get_fee_for_message(message)).value is None


async def test_blocks_in_every_detail(client, call, chain, wallet):
    signature = chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    slot = chain.slot
    for encoding in ("json", "jsonParsed", "base64", "base58"):
        reply = await client.get_block(slot, encoding, max_supported_transaction_version=0)
        assert reply.value.block_height == 1
        assert reply.value.parent_slot == 0
        assert len(reply.value.transactions) == 2
    short = await call("getBlock", slot, {"transactionDetails": "signatures"})
    assert str(signature) in short["result"]["signatures"]
    none = (await call("getBlock", slot, {"transactionDetails": "none"}))["result"]
    assert "transactions" not in none
    accounts = await call("getBlock", slot, {"transactionDetails": "accounts"})
    keys = accounts["result"]["transactions"][1]["transaction"]["accountKeys"]
    assert keys[0] == {
        "pubkey": str(wallet.pubkey),
        "signer": True,
        "writable": True,
        "source": "transaction",
    }
    chain.advance(1)
    following = (await client.get_block(chain.slot)).value
    assert following.previous_blockhash == reply.value.blockhash
    assert (await call("getBlocksWithLimit", 0, 2))["result"] == [0, 1]


async def test_time_can_be_stepped_and_skipped(call, client, chain):
    assert (await call("trothAdvanceSlots"))["result"] == 2
    assert (await call("trothAdvanceSlots", 5))["result"] == 7
    assert (await call("trothSkipSlots", 1))["result"] == 10  # slot 9 is skipped by the rule
    assert (await client.get_blocks(5)).value == [5, 6, 7, 10]
    for bad in (0, -1, 10**9, "1", 1.5, True):
        assert (await call("trothAdvanceSlots", bad))["error"]["code"] == -32_602


async def test_a_slot_not_yet_reached_is_refused(call, chain):
    key = str(Pubkey.new_unique())
    for method, params in (("getBalance", [key]), ("getAccountInfo", [key]), ("getSlot", [])):
        assert "result" in await call(method, *params, {"minContextSlot": chain.slot})
        reply = await call(method, *params, {"minContextSlot": chain.slot + 1})
        assert reply["error"] == {
            "code": -32_016,
            "message": "Minimum context slot has not been reached",
            "data": {"contextSlot": chain.slot},
        }


WRONG = [None, True, -1, 2**64, 1.5, "", "0OIl", "x" * 5_000, [], [None], {}, {"encoding": "zip"}]


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_wrong_parameters_never_break_a_method(call, chain, method):
    """Any input gives a result, or an error that a client can act on, never an internal one."""
    for value in WRONG:
        for params in ([value], [value, value], [str(Pubkey.default()), value], [1, value, value]):
            reply = await call(method, *params)
            if "error" in reply:
                assert reply["error"]["code"] not in (-32_603, -32_601) or (
                    method == "requestAirdrop"
                ), (method, params, reply)
            assert json.dumps(reply)


async def test_batches_through_the_clients_provider(client, chain):
    slot, height, health = await client._provider.make_batch_request(
        (GetSlot(), GetBlockHeight(), GetHealth()),
        (GetSlotResp, GetBlockHeightResp, GetHealthResp),
    )
    assert slot.value == chain.slot
    assert height.value == chain.height
    assert health.value == "ok"
