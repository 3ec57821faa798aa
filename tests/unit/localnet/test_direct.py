import pytest
from solders.pubkey import Pubkey
from solders.signature import Signature
from support.localnet import SOL, Wallet

from troth_coordinator.chain.errors import RpcRefusedError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.rpc import Account, BytesAt, Rpc
from troth_localnet.direct import DirectRpc
from troth_localnet.svm import Chain


@pytest.fixture
def rpc() -> Rpc:
    return DirectRpc(Chain())


@pytest.fixture
def wallet(rpc):
    return Wallet(rpc.chain)


async def test_a_payment_from_blockhash_to_status(rpc, wallet):
    to = Pubkey.new_unique()
    blockhash, last_valid = await rpc.latest_blockhash()
    assert last_valid == await rpc.block_height() + 150
    signature = await rpc.send(wallet.payment(to, SOL, blockhash))
    slot, (account, nobody) = await rpc.get_accounts([to, Pubkey.new_unique()])
    assert account == Account(SOL, Pubkey.default(), b"", False)
    assert nobody is None
    assert slot == await rpc.get_slot()
    (status, unknown) = await rpc.statuses([signature, Signature.default()])
    assert status.slot == slot
    assert status.failure is None
    assert status.finality == "finalized"
    assert unknown is None
    record = await rpc.transaction(signature)
    assert record.slot == slot
    assert record.failure is None
    assert record.fee_lamports == 5_000
    assert record.compute_units == 150
    assert record.logs[-1].endswith("success")
    assert await rpc.transaction(Signature.default()) is None


async def test_a_refusal_is_the_chain_clients_error(rpc, wallet):
    with pytest.raises(TransactionRejectedError) as caught:
        await rpc.send(wallet.payment(Pubkey.new_unique(), 10**15))
    assert caught.value.failure == TransactionFailure("InstructionError", 0, "Custom", 1)
    assert any("insufficient lamports" in line for line in caught.value.logs)


async def test_a_landed_failure_shows_in_status_and_record(rpc, wallet):
    raw = wallet.payment(Pubkey.new_unique(), 10**15)
    signature = await rpc.send(raw, skip_preflight=True)
    (status,) = await rpc.statuses([signature])
    assert status.failure == TransactionFailure("InstructionError", 0, "Custom", 1)
    assert (await rpc.transaction(signature)).failure == status.failure


async def test_old_statuses_need_a_history_search(rpc, wallet):
    signature = await rpc.send(wallet.payment(Pubkey.new_unique(), SOL))
    rpc.chain.advance(151)
    assert await rpc.statuses([signature]) == [None]
    (status,) = await rpc.statuses([signature], search_history=True)
    assert status is not None


async def test_program_accounts_are_filtered(rpc):
    token = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
    loader = (await rpc.get_accounts([token]))[1][0].owner
    found = dict(await rpc.get_program_accounts(loader, []))
    assert token in found
    size = len(found[token].data)
    assert token in dict(await rpc.get_program_accounts(loader, [size, BytesAt(0, b"\x7fELF")]))
    assert token not in dict(await rpc.get_program_accounts(loader, [BytesAt(0, b"\0")]))
    assert token not in dict(await rpc.get_program_accounts(loader, [size + 1]))


async def test_limits_and_garbage_are_refused_like_a_node_does(rpc):
    with pytest.raises(RpcRefusedError, match="at most 100"):
        await rpc.get_accounts([Pubkey.default()] * 101)
    with pytest.raises(RpcRefusedError, match="1232"):
        await rpc.send(b"garbage")
    with pytest.raises(RpcRefusedError, match="airdrop"):
        await rpc.request_airdrop(Pubkey.new_unique(), 1)


async def test_an_airdrop_pays(rpc):
    key = Pubkey.new_unique()
    signature = await rpc.request_airdrop(key, SOL)
    assert (await rpc.statuses([signature]))[0].failure is None
    assert (await rpc.get_accounts([key]))[1][0].lamports == SOL
