"""Every method through the client other people use: solana-py 0.36 on solders 0.26.

solders panics on a reply of the wrong shape, so each call that returns is a shape that fits.
"""

import base64
import json

import httpx
import pytest
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed, Finalized
from solana.rpc.core import RPCException
from solana.rpc.types import DataSliceOpts, MemcmpOpts, TokenAccountOpts, TxOpts
from solders.account import Account
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.rpc.requests import GetBlockHeight, GetHealth, GetSlot
from solders.rpc.responses import GetBlockHeightResp, GetHealthResp, GetSlotResp
from solders.signature import Signature
from solders.system_program import CreateAccountParams, create_account
from solders.transaction import VersionedTransaction
from unit.localnet.support import SOL, Wallet, memo, pay, signed_v0
from unit.localnet.test_chain import put_table

from troth_localnet.blocks import skip_every
from troth_localnet.methods.registry import METHODS
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_localnet.svm import Chain, ChainConfig

TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
ASSOCIATED = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")


@pytest.fixture
async def server():
    one = RpcServer(Chain(ChainConfig(skip=skip_every(10))), ServerConfig(slot_milliseconds=None))
    await one.start()
    yield one
    await one.stop()


@pytest.fixture
async def client(server):
    async with AsyncClient(server.rpc_url, commitment=Confirmed) as one:
        yield one


@pytest.fixture
def chain(server):
    return server.chain


@pytest.fixture
def wallet(chain):
    return Wallet(chain)


@pytest.fixture
async def call(server):
    """Calls a method without any client library; returns the whole reply."""
    async with httpx.AsyncClient() as http:

        async def post(method, *params):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
            return (await http.post(server.rpc_url, json=body)).json()

        yield post


async def refused(call) -> tuple[str, str]:
    with pytest.raises(RPCException) as caught:
        await call
    error = caught.value.args[0]
    return type(error).__name__, str(error)


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
    assert (latest.blockhash, latest.last_valid_block_height) == chain.latest_blockhash()
    chain.advance(5)
    newer = (await client.get_latest_blockhash()).value
    assert newer.blockhash != latest.blockhash


async def test_is_blockhash_valid(call, chain):
    blockhash = str(chain.latest_blockhash()[0])
    assert (await call("isBlockhashValid", blockhash))["result"]["value"] is True
    chain.advance(200)
    assert (await call("isBlockhashValid", blockhash))["result"]["value"] is False
    assert (await call("isBlockhashValid", "xyz"))["error"]["code"] == -32_602


async def test_airdrop_and_balance(client):
    key = Pubkey.new_unique()
    signature = (await client.request_airdrop(key, SOL)).value
    await client.confirm_transaction(signature, Confirmed)
    assert (await client.get_balance(key)).value == SOL
    assert (await client.get_balance(Pubkey.new_unique())).value == 0
    assert (await refused(client.request_airdrop(key, 10**18)))[0] == "InternalErrorMessage"
    assert (await refused(client.request_airdrop(key, 0)))[0] == "InvalidParamsMessage"


async def test_accounts_in_every_encoding_and_slice(client, call, chain):
    key, data = Pubkey.new_unique(), bytes(range(64))
    chain.accounts.set(key, Account(SOL, data, MEMO_OWNER, False, 3))
    account = (await client.get_account_info(key)).value
    assert (account.lamports, account.owner, account.data) == (SOL, MEMO_OWNER, data)
    assert (await client.get_account_info(key, encoding="base58")).value.data == data
    sliced = await client.get_account_info(key, data_slice=DataSliceOpts(offset=4, length=8))
    assert sliced.value.data == data[4:12]
    assert (await client.get_account_info_json_parsed(key)).value.data == data
    assert (await client.get_account_info(Pubkey.new_unique())).value is None
    bare = await call("getAccountInfo", str(key))
    assert bare["result"]["value"]["data"] == [base64.b64encode(data).decode(), "base64"]
    binary = await call("getAccountInfo", str(key), {"encoding": "binary"})
    assert isinstance(binary["result"]["value"]["data"], str)
    chain.accounts.set(key, Account(SOL, bytes(129), MEMO_OWNER, False, 0))
    kind, text = await refused(client.get_account_info(key, encoding="base58"))
    assert (kind, "128 bytes" in text) == ("InvalidRequestMessage", True)


MEMO_OWNER = Pubkey.from_bytes(bytes([9]) * 32)


async def test_multiple_accounts_keep_order_nulls_and_slices(client, chain, wallet):
    key = Pubkey.new_unique()
    chain.accounts.set(key, Account(SOL, bytes(range(10)), MEMO_OWNER, False, 0))
    missing = Pubkey.new_unique()
    reply = await client.get_multiple_accounts(
        [key, missing, wallet.pubkey], data_slice=DataSliceOpts(2, 3)
    )
    assert [a and a.data for a in reply.value] == [b"\2\3\4", None, b""]
    assert reply.context.slot == chain.slot
    parsed = await client.get_multiple_accounts_json_parsed([key, missing])
    assert parsed.value[0].data == bytes(range(10))
    keys = [Pubkey.new_unique()] * 101
    assert (await refused(client.get_multiple_accounts(keys)))[0] == "InvalidParamsMessage"


async def test_program_accounts_with_filters(client, call, chain):
    keys = [Pubkey.new_unique() for _ in range(3)]
    for number, key in enumerate(keys):
        data = bytes([number]) * (10 + number)
        chain.accounts.set(key, Account(SOL, data, MEMO_OWNER, False, 0))
    everything = (await client.get_program_accounts(MEMO_OWNER)).value
    assert {one.pubkey for one in everything} == set(keys)
    by_size = await client.get_program_accounts(MEMO_OWNER, encoding="base64", filters=[11])
    assert [one.pubkey for one in by_size.value] == [keys[1]]
    by_bytes = await client.get_program_accounts(
        MEMO_OWNER, encoding="base64", filters=[MemcmpOpts(offset=2, bytes="3")]
    )
    assert [one.pubkey for one in by_bytes.value] == [keys[2]]
    assert (await client.get_program_accounts_json_parsed(MEMO_OWNER)).value
    assert (await client.get_program_accounts(Pubkey.new_unique())).value == []
    sliced = await client.get_program_accounts(
        MEMO_OWNER, encoding="base64", data_slice=DataSliceOpts(0, 1)
    )
    assert all(len(one.account.data) == 1 for one in sliced.value)
    wrapped = await call("getProgramAccounts", str(MEMO_OWNER), {"withContext": True})
    assert len(wrapped["result"]["value"]) == 3
    memcmp = {"offset": 0, "bytes": base64.b64encode(b"\1").decode(), "encoding": "base64"}
    found = await call("getProgramAccounts", str(MEMO_OWNER), {"filters": [{"memcmp": memcmp}]})
    assert [one["pubkey"] for one in found["result"]] == [str(keys[1])]


@pytest.mark.parametrize(
    "filters",
    [
        [{}],
        [{"dataSize": 1, "memcmp": {"offset": 0, "bytes": "1"}}],
        [{"dataSize": -1}],
        [{"memcmp": {"offset": 0, "bytes": "0OIl"}}],
        [{"memcmp": {"offset": 0, "bytes": [256]}}],
        [{"memcmp": {"offset": 0, "bytes": "1" * 1_000}}],
        [{"dataSize": 1}] * 5,
        "all",
    ],
)
async def test_bad_filters_are_invalid_params(call, chain, filters):
    chain.accounts.set(Pubkey.new_unique(), Account(SOL, b"x", MEMO_OWNER, False, 0))
    reply = await call("getProgramAccounts", str(MEMO_OWNER), {"filters": filters})
    assert reply["error"]["code"] == -32_602


async def test_send_confirm_and_look_up(client, chain, wallet):
    to = Pubkey.new_unique()
    latest = (await client.get_latest_blockhash()).value
    raw = wallet.transaction(pay(wallet.key, to, SOL), memo(b"hi", wallet.pubkey))
    signature = (await client.send_raw_transaction(raw)).value
    confirmed = await client.confirm_transaction(
        signature, Confirmed, last_valid_block_height=latest.last_valid_block_height
    )
    assert confirmed.value[0].err is None
    statuses = (await client.get_signature_statuses([signature, Signature.default()])).value
    assert statuses[0].slot == chain.slot
    assert statuses[1] is None
    listed = (await client.get_signatures_for_address(to)).value
    assert [one.signature for one in listed] == [signature]
    assert (await client.get_transaction_count()).value == 2


async def test_signatures_for_address_pages_newest_first(client, chain, wallet):
    to = Pubkey.new_unique()
    sent = [chain.send(wallet.payment(to, SOL // 100 + n)) for n in range(5)]
    newest_first = sent[::-1]

    async def listed(**kwargs):
        reply = await client.get_signatures_for_address(to, **kwargs)
        return [one.signature for one in reply.value]

    assert await listed() == newest_first
    assert await listed(limit=2) == newest_first[:2]
    assert await listed(before=newest_first[1], limit=2) == newest_first[2:4]
    assert await listed(until=newest_first[3]) == newest_first[:3]
    assert await listed(before=newest_first[-1]) == []


@pytest.mark.parametrize("encoding", ["json", "jsonParsed", "base58", "base64"])
async def test_transactions_in_every_encoding(client, chain, wallet, encoding):
    to = Pubkey.new_unique()
    raw = wallet.transaction(pay(wallet.key, to, SOL))
    signature = chain.send(raw)
    for version in (None, 0):
        reply = await client.get_transaction(
            signature, encoding=encoding, max_supported_transaction_version=version
        )
        assert reply.value.slot == chain.slot
        meta = reply.value.transaction.meta
        assert meta.fee == 5_000
        assert meta.err is None
        assert meta.compute_units_consumed == 150
        assert meta.pre_balances[1] == 0
        assert meta.post_balances[1] == SOL
        if encoding.startswith("base"):
            assert bytes(reply.value.transaction.transaction) == raw
        else:
            assert reply.value.transaction.transaction.signatures == [signature]
    unknown = await client.get_transaction(Signature.new_unique(), encoding=encoding)
    assert unknown.value is None


async def test_a_failed_transaction_shows_its_error(client, chain, wallet):
    raw = wallet.payment(Pubkey.new_unique(), 10**15)
    opts = TxOpts(skip_preflight=True, skip_confirmation=True)
    signature = (await client.send_raw_transaction(raw, opts)).value
    reply = await client.get_transaction(signature, max_supported_transaction_version=0)
    assert "Custom(1)" in str(reply.value.transaction.meta.err)
    assert any("insufficient" in line for line in reply.value.transaction.meta.log_messages)
    status = (await client.get_signature_statuses([signature])).value[0]
    assert "Custom(1)" in str(status.err)


async def test_preflight_errors_carry_error_logs_and_units(client, wallet, chain):
    raw = wallet.payment(Pubkey.new_unique(), 10**15)
    with pytest.raises(RPCException) as caught:
        await client.send_raw_transaction(raw)
    failure = caught.value.args[0]
    assert type(failure).__name__ == "SendTransactionPreflightFailureMessage"
    assert failure.message.endswith("custom program error: 0x1")
    assert failure.data.err.err.code == 1
    assert any("insufficient" in line for line in failure.data.logs)
    assert failure.data.units_consumed == 150
    again = wallet.payment(Pubkey.new_unique(), SOL)
    chain.send(again)
    assert "already been processed" in (await refused(client.send_raw_transaction(again)))[1]
    chain.advance(151)
    old = wallet.payment(Pubkey.new_unique(), SOL, Hash.new_unique())
    assert "Blockhash not found" in (await refused(client.send_raw_transaction(old)))[1]


@pytest.mark.parametrize("spoil", ["signature", "rent", "payer"])
async def test_other_refusals_parse_too(client, chain, wallet, spoil):
    good = VersionedTransaction.from_bytes(wallet.payment(Pubkey.new_unique(), SOL))
    if spoil == "signature":
        raw = bytes(VersionedTransaction.populate(good.message, [Signature.new_unique()]))
        expected = ("SendTransactionPreflightFailureMessage", "signature verification")
    elif spoil == "rent":
        raw = wallet.payment(Pubkey.new_unique(), 1)
        expected = ("SendTransactionPreflightFailureMessage", "insufficient funds for rent")
    else:
        nobody = Keypair()
        message = Message.new_with_blockhash([], nobody.pubkey(), chain.latest_blockhash()[0])
        raw = bytes(VersionedTransaction(message, [nobody]))
        expected = ("SendTransactionPreflightFailureMessage", "no record of a prior credit")
    kind, text = await refused(client.send_raw_transaction(raw))
    assert kind == expected[0]
    assert expected[1] in text


async def test_simulation(client, call, chain, wallet):
    to = Pubkey.new_unique()
    transaction = VersionedTransaction.from_bytes(wallet.payment(to, SOL))
    value = (await client.simulate_transaction(transaction, sig_verify=True)).value
    assert (value.err, value.units_consumed) == (None, 150)
    assert chain.accounts.get(to) is None
    failing = VersionedTransaction.from_bytes(wallet.payment(to, 10**15))
    failed = (await client.simulate_transaction(failing)).value
    assert failed.err.err.code == 1
    assert failed.logs
    old = VersionedTransaction.from_bytes(wallet.payment(to, SOL, Hash.new_unique()))
    assert "BlockhashNotFound" in str((await client.simulate_transaction(old)).value.err)
    encoded = base64.b64encode(bytes(old)).decode()
    config = {
        "encoding": "base64",
        "replaceRecentBlockhash": True,
        "innerInstructions": True,
        "accounts": {"addresses": [str(to)], "encoding": "base64"},
    }
    result = (await call("simulateTransaction", encoded, config))["result"]["value"]
    assert result["err"] is None
    assert result["accounts"][0]["lamports"] == SOL
    assert result["innerInstructions"] == []
    assert result["replacementBlockhash"]["blockhash"] == str(chain.latest_blockhash()[0])
    both = {**config, "sigVerify": True}
    assert (await call("simulateTransaction", encoded, both))["error"]["code"] == -32_602


async def test_an_unsigned_simulation_is_run_unless_signatures_are_asked_for(client, wallet):
    good = VersionedTransaction.from_bytes(wallet.payment(Pubkey.new_unique(), SOL))
    unsigned = VersionedTransaction.populate(good.message, [Signature.default()])
    assert (await client.simulate_transaction(unsigned)).value.err is None
    checked = await client.simulate_transaction(unsigned, sig_verify=True)
    assert "SignatureFailure" in str(checked.value.err)


async def test_v0_transactions_with_lookup_tables(client, chain, wallet):
    to, table = Pubkey.new_unique(), Pubkey.new_unique()
    put_table(chain, table, [to])
    chain.advance(2)
    transaction = signed_v0(
        [pay(wallet.key, to, SOL)],
        [wallet.key],
        [AddressLookupTableAccount(table, [to])],
        chain.latest_blockhash()[0],
    )
    assert (await client.simulate_transaction(transaction)).value.err is None
    signature = (await client.send_transaction(transaction)).value
    assert (await client.get_balance(to)).value == SOL
    for encoding in ("json", "jsonParsed", "base64"):
        reply = await client.get_transaction(
            signature, encoding=encoding, max_supported_transaction_version=0
        )
        assert reply.value.transaction.version == 0
        if encoding != "jsonParsed":
            assert reply.value.transaction.meta.loaded_addresses.writable == [to]
    kind, _ = await refused(client.get_transaction(signature, encoding="json"))
    assert kind == "UnsupportedTransactionVersionMessage"
    listed = (await client.get_signatures_for_address(to)).value
    assert [one.signature for one in listed] == [signature]


async def test_inner_instructions_are_listed(client, chain, wallet):
    """Creating an associated token account calls the token and system programs."""
    mint = await make_mint(chain, wallet, decimals=6)
    signature = chain.send(wallet.transaction(make_token_account(wallet.pubkey, mint)[1]))
    for encoding in ("json", "jsonParsed", "base64"):
        reply = await client.get_transaction(
            signature, encoding=encoding, max_supported_transaction_version=0
        )
        (group,) = reply.value.transaction.meta.inner_instructions
        assert group.index == 0
        assert len(group.instructions) >= 3
    block = (await client.get_block(chain.slot, max_supported_transaction_version=0)).value
    assert len(block.transactions) == len(chain.blocks.open.signatures)


async def test_token_balances(client, call, chain, wallet):
    mint = await make_mint(chain, wallet, decimals=6)
    account, instruction = make_token_account(wallet.pubkey, mint)
    mint_to = Instruction(
        TOKEN,
        b"\x07" + (1_500_000).to_bytes(8, "little"),
        [
            AccountMeta(mint, False, True),
            AccountMeta(account, False, True),
            AccountMeta(wallet.pubkey, True, False),
        ],
    )
    chain.send(wallet.transaction(instruction, mint_to))
    balance = (await client.get_token_account_balance(account)).value
    assert (balance.amount, balance.decimals, balance.ui_amount_string) == ("1500000", 6, "1.5")
    supply = (await client.get_token_supply(mint)).value
    assert (supply.amount, supply.ui_amount) == ("1500000", 1.5)
    for opts in (TokenAccountOpts(mint=mint), TokenAccountOpts(program_id=TOKEN)):
        owned = (await client.get_token_accounts_by_owner(wallet.pubkey, opts)).value
        assert [one.pubkey for one in owned] == [account]
    none = TokenAccountOpts(mint=Pubkey.new_unique())
    assert (await client.get_token_accounts_by_owner(wallet.pubkey, none)).value == []
    for address in (wallet.pubkey, Pubkey.new_unique(), mint):
        kind, _ = await refused(client.get_token_account_balance(address))
        assert kind == "InvalidParamsMessage"
    assert (await call("getTokenAccountsByOwner", str(wallet.pubkey), {}))["error"]


async def make_mint(chain, wallet, decimals):
    key = Keypair()
    create = create_account(
        CreateAccountParams(
            from_pubkey=wallet.pubkey,
            to_pubkey=key.pubkey(),
            lamports=chain.minimum_balance(82),
            space=82,
            owner=TOKEN,
        )
    )
    initialise = Instruction(
        TOKEN,
        bytes([20, decimals]) + bytes(wallet.pubkey) + b"\0",
        [AccountMeta(key.pubkey(), False, True)],
    )
    blockhash, _ = chain.latest_blockhash()
    message = Message.new_with_blockhash([create, initialise], wallet.pubkey, blockhash)
    chain.send(bytes(VersionedTransaction(message, [wallet.key, key])))
    return key.pubkey()


def make_token_account(owner, mint):
    address, _ = Pubkey.find_program_address([bytes(owner), bytes(TOKEN), bytes(mint)], ASSOCIATED)
    keys = [
        AccountMeta(owner, True, True),
        AccountMeta(address, False, True),
        AccountMeta(owner, False, False),
        AccountMeta(mint, False, False),
        AccountMeta(Pubkey.default(), False, False),
        AccountMeta(TOKEN, False, False),
    ]
    return address, Instruction(ASSOCIATED, b"\0", keys)


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


async def test_old_style_transaction_encodings(call, chain, wallet):
    signature = chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    reply = await call("getTransaction", str(signature), "base64")
    assert reply["result"]["transaction"][1] == "base64"
    config = {"encoding": "binary"}
    assert isinstance(
        (await call("getTransaction", str(signature), config))["result"]["transaction"], str
    )


@pytest.mark.parametrize("method", ["getTransaction", "getBlock", "getSignaturesForAddress"])
async def test_history_is_not_read_below_confirmed(call, chain, wallet, method):
    signature = chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    target = {"getTransaction": str(signature), "getBlock": chain.slot}.get(
        method, str(wallet.pubkey)
    )
    assert "result" in await call(method, target, {"commitment": "confirmed"})
    reply = await call(method, target, {"commitment": "processed"})
    assert "below `confirmed`" in reply["error"]["message"]


WRONG = [None, True, -1, 2**64, 1.5, "", "0OIl", "x" * 5_000, [], [None], {}, {"encoding": "zip"}]


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_wrong_parameters_never_break_a_method(call, chain, method):
    """Whatever comes in: a result, or an error that a client can act on, never an internal one."""
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
    assert (slot.value, height.value, health.value) == (chain.slot, chain.height, "ok")
