"""The JSON of a transaction to our record: inner calls with their keys, in order, or None."""

import base64
import copy

import based58
import pytest
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.record_json import read_record
from troth_coordinator.chain.rpc import InnerCall

PAYER = Keypair.from_seed(bytes(32))
PROGRAM, ACCOUNT, LOADED, READ = (Pubkey.from_bytes(bytes([n] * 32)) for n in (2, 3, 4, 5))


def inner(program, accounts, data):
    encoded = based58.b58encode(data).decode()
    return {"programIdIndex": program, "accounts": accounts, "data": encoded, "stackHeight": 2}


def result(*groups):
    """A transaction whose account numbers are: 0 payer, 1 account, 2 program, 3 and 4 loaded."""
    meta = AccountMeta(ACCOUNT, is_signer=False, is_writable=True)
    message = Message.new_with_blockhash(
        [Instruction(PROGRAM, b"x", [meta])], PAYER.pubkey(), Hash.default()
    )
    raw = bytes(VersionedTransaction(message, [PAYER]))
    return {
        "slot": 5,
        "transaction": [base64.b64encode(raw).decode(), "base64"],
        "meta": {
            "err": None,
            "fee": 5_000,
            "innerInstructions": [{"index": at, "instructions": calls} for at, calls in groups],
            "logMessages": ["x"],
            "loadedAddresses": {"writable": [str(LOADED)], "readonly": [str(READ)]},
        },
    }


def test_numbers_become_keys():
    found = read_record(result((0, [inner(2, [0, 1], b"\0\1"), inner(4, [3], b"")])))
    assert found.inner_calls == (
        InnerCall(PROGRAM, (PAYER.pubkey(), ACCOUNT), b"\0\1"),
        InnerCall(READ, (LOADED,), b""),
    )


def test_calls_come_in_the_order_of_execution():
    found = read_record(result((2, [inner(2, [], b"c")]), (0, [inner(2, [], b"a")])))
    assert [call.data for call in found.inner_calls] == [b"a", b"c"]


def test_a_node_without_loaded_addresses():
    answer = result((0, [inner(2, [1], b"a")]))
    del answer["meta"]["loadedAddresses"]
    assert read_record(answer).inner_calls == (InnerCall(PROGRAM, (ACCOUNT,), b"a"),)


@pytest.mark.parametrize("change", [lambda meta: meta.update(innerInstructions=None), dict.clear])
def test_inner_calls_that_are_not_kept_are_not_empty(change):
    answer = result()
    assert read_record(answer).inner_calls == ()
    kept = copy.deepcopy(answer)
    change(kept["meta"])
    kept["meta"]["fee"] = 5_000
    assert read_record(kept).inner_calls is None


@pytest.mark.parametrize(("program", "accounts"), [(5, []), (-1, []), (2, [5]), (2, [0, -5])])
def test_a_number_without_an_account_is_malformed(program, accounts):
    with pytest.raises(MalformedReplyError, match="account number"):
        read_record(result((0, [inner(program, accounts, b"")])))


def test_another_encoding_is_malformed():
    answer = result((0, [inner(2, [], b"")]))
    answer["transaction"][1] = "base58"
    with pytest.raises(MalformedReplyError, match="base58"):
        read_record(answer)
