"""Sending, simulating and looking up transactions, through solana-py 0.36 on solders 0.26."""

import base64

import pytest
from solana.rpc.commitment import Confirmed
from solana.rpc.core import RPCException
from solana.rpc.types import TxOpts
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from support import served
from support.localnet import SOL, memo, pay, put_table, signed_v0

refused = served.refused
server, client, chain, wallet, call = served.FIXTURES


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
    assert value.err is None
    assert value.units_consumed == 150
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
