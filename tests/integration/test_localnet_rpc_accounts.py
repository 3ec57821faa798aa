"""Accounts, balances and tokens, through solana-py 0.36 on solders 0.26."""

import base64
from dataclasses import replace

import pytest
from solana.rpc.commitment import Confirmed
from solana.rpc.types import DataSliceOpts, MemcmpOpts, TokenAccountOpts
from solders.account import Account
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.system_program import CreateAccountParams, create_account
from solders.transaction import VersionedTransaction
from support import served
from support.localnet import SOL, put_table, signed_v0

from troth_coordinator.chain.http_rpc import HttpRpc
from troth_localnet.direct import DirectRpc

refused = served.refused
server, client, chain, wallet, call = served.FIXTURES
TOKEN = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
ASSOCIATED = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")


MEMO_OWNER = Pubkey.from_bytes(bytes([9]) * 32)


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
    assert account.lamports == SOL
    assert account.owner == MEMO_OWNER
    assert account.data == data
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
    assert kind == "InvalidRequestMessage"
    assert "128 bytes" in text


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


async def test_our_client_resolves_inner_instructions(server, chain, wallet):
    """Over HTTP and in process alike, in a transaction that loads accounts from a table."""
    mint = await make_mint(chain, wallet, decimals=6)
    account, create = make_token_account(wallet.pubkey, mint)
    table = Pubkey.new_unique()
    put_table(chain, table, [account, mint])
    chain.advance(2)
    blockhash, _ = chain.latest_blockhash()
    tables = [AddressLookupTableAccount(table, [account, mint])]
    signature = chain.send(bytes(signed_v0([create], [wallet.key], tables, blockhash)))
    assert chain.history.get(signature).keys.loaded_writable
    async with HttpRpc(server.rpc_url) as rpc:
        found = await rpc.transaction(signature)
    decoded = tuple(replace(call, written=call.data) for call in found.inner_calls)
    in_process = await DirectRpc(chain).transaction(signature)
    assert replace(found, inner_calls=decoded) == in_process
    assert [call.program for call in found.inner_calls].count(TOKEN) >= 3
    assert account in {key for call in found.inner_calls for key in call.accounts}


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
    assert balance.amount == "1500000"
    assert balance.decimals == 6
    assert balance.ui_amount_string == "1.5"
    supply = (await client.get_token_supply(mint)).value
    assert supply.amount == "1500000"
    assert supply.ui_amount == 1.5
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
