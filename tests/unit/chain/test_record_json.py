"""Transactions in JSON to our records: strict where it counts, and blind for all else."""

import copy

import based58
import pytest
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import UnreadableRecordError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.record_json import (
    MAX_INNER_CALLS,
    MAX_KEYS,
    MAX_LISTED,
    read_listed,
    read_record,
)
from troth_coordinator.chain.rpc import InnerCall, Listed

PAYER, PROGRAM, ACCOUNT, LOADED, READ = (Pubkey.from_bytes(bytes([n] * 32)) for n in range(1, 6))
SIGNATURE = Signature.from_bytes(bytes(range(64)))
LISTED = {"signature": str(SIGNATURE), "slot": 5, "err": None}
HUGE = 2**64


def inner(program, accounts, data):
    encoded = based58.b58encode(data).decode()
    return {"programIdIndex": program, "accounts": accounts, "data": encoded, "stackHeight": 2}


def result(*groups):
    """A transaction whose account numbers are: 0 payer, 1 account, 2 program, 3 and 4 loaded."""
    return {
        "slot": 5,
        "transaction": {"message": {"accountKeys": [str(PAYER), str(ACCOUNT), str(PROGRAM)]}},
        "meta": {
            "err": None,
            "fee": 5_000,
            "innerInstructions": [{"index": at, "instructions": calls} for at, calls in groups],
            "logMessages": ["x"],
            "loadedAddresses": {"writable": [str(LOADED)], "readonly": [str(READ)]},
        },
    }


def written(program, accounts, data):
    return InnerCall(program, accounts, based58.b58encode(data).decode())


def test_numbers_become_keys():
    found = read_record(result((0, [inner(2, [0, 1], b"\0\1"), inner(4, [3], b"")])))
    first, second = found.inner_calls
    assert first == written(PROGRAM, (PAYER, ACCOUNT), b"\0\1")
    assert second == written(READ, (LOADED,), b"")


def test_calls_come_in_the_order_of_execution():
    found = read_record(result((2, [inner(2, [], b"c")]), (0, [inner(2, [], b"a")])))
    assert [call.data for call in found.inner_calls] == [b"a", b"c"]


def test_a_transaction_of_version_1_and_fields_that_nobody_knows():
    """It has no loaded addresses, and what it may spend stands in its message."""
    answer = result((0, [inner(2, [1], b"a")]))
    del answer["meta"]["loadedAddresses"]
    answer["version"] = 1
    answer["transaction"]["message"]["transactionConfig"] = {"computeUnitLimit": 7}
    answer["meta"]["more"] = [[{"deep": HUGE}]]
    assert read_record(answer).inner_calls == (written(PROGRAM, (ACCOUNT,), b"a"),)


@pytest.mark.parametrize("is_there", [True, False])
def test_inner_calls_that_are_not_kept_are_not_empty(is_there):
    answer = result()
    assert read_record(answer).inner_calls == ()
    kept = copy.deepcopy(answer)
    kept["meta"]["innerInstructions"] = None
    if not is_there:
        del kept["meta"]["innerInstructions"]
    assert read_record(kept).inner_calls is None


def test_without_inner_calls_the_message_may_be_anything():
    answer = result()
    answer["transaction"] = "of a format to come"
    assert read_record(answer).inner_calls == ()


@pytest.mark.parametrize("err", ["BorshIoError", {"InstructionError": [0, "BorshIoError"]}, 7, []])
def test_of_a_failed_transaction_no_call_is_read(err):
    answer = result((0, [{"what": "is this"}]))
    answer["meta"]["err"] = err
    answer["transaction"] = None
    found = read_record(answer)
    assert found.inner_calls == ()
    assert found.failure == TransactionFailure.from_json(err)


@pytest.mark.parametrize("logs", [None, 5, "text", {}, [None, 7, [[]]]])
def test_a_log_that_cannot_be_read_is_none(logs):
    answer = result()
    answer["meta"]["logMessages"] = logs
    assert read_record(answer).logs == ()


def test_bytes_of_calls_are_not_looked_at():
    """A stranger's call may have ten thousand bytes; base58 of that many takes 40 ms."""
    answer = result((0, [{"programIdIndex": 2, "accounts": [], "data": "0 is no base58"}]))
    assert read_record(answer).inner_calls == (InnerCall(PROGRAM, (), "0 is no base58"),)


def test_no_record_is_none():
    assert read_record(None) is None


@pytest.mark.parametrize("answer", [True, -1, "x", [], [{}]])
def test_what_is_no_object_is_no_record_of_a_transaction(answer):
    """So answers a node that is broken, whatever was asked."""
    with pytest.raises(TypeError):
        read_record(answer)


NUMBERS = [None, True, -1, HUGE, 1.0, "5", [], {}]
SHAPES = [None, True, 5, "x", {"a": 1}]
NO_KEYS = [None, 5, "x", "", "1" * 5_000, "0" * 44, "\ud800", [], {}]
HOSTILE = {
    ("slot",): NUMBERS,
    ("meta",): [None, 5, "x", [], {}],
    ("meta", "fee"): NUMBERS,
    ("meta", "computeUnitsConsumed"): [True, False, -1, HUGE, "5", "", []],
    ("meta", "innerInstructions"): [True, 5, "x", {"a": 1}, [5], [None], [[]], [{}] * 300],
    ("meta", "innerInstructions", 0, "index"): [*NUMBERS, MAX_KEYS],
    ("meta", "innerInstructions", 0, "instructions"): SHAPES,
    ("meta", "innerInstructions", 0, "instructions", 0): [None, 5, "x", [], {}],
    ("meta", "innerInstructions", 0, "instructions", 0, "programIdIndex"): [*NUMBERS, 5],
    ("meta", "innerInstructions", 0, "instructions", 0, "accounts"): [*SHAPES, [5], [-1], [None]],
    ("meta", "innerInstructions", 0, "instructions", 0, "data"): [None, 5, [], {}],
    ("meta", "loadedAddresses"): [5, "x", [1], 0, []],
    ("meta", "loadedAddresses", "writable"): [5, "x", {"a": 1}, [5], 0, {}],
    ("transaction",): [None, 5, "x", [], {}, ["AQ==", "base64"]],
    ("transaction", "message"): [None, 5, "x", [], {}],
    ("transaction", "message", "accountKeys"): [None, *SHAPES, [], [str(READ)] * (MAX_KEYS + 1)],
    ("transaction", "message", "accountKeys", 0): NO_KEYS,
}
PLACES = [(at, junk) for at, values in HOSTILE.items() for junk in values]


def place_of(answer, at):
    for key in at[:-1]:
        answer = answer[key]
    return answer


@pytest.mark.parametrize(("at", "junk"), PLACES)
def test_a_wrong_part_makes_an_unreadable_record(at, junk):
    answer = result((0, [inner(2, [0, 4], b"a")]))
    place_of(answer, at)[at[-1]] = junk
    with pytest.raises(UnreadableRecordError, match="getTransaction"):
        read_record(answer)


OPTIONAL = [
    ("meta", "computeUnitsConsumed"),
    ("meta", "innerInstructions"),
    ("meta", "loadedAddresses"),
    ("meta", "loadedAddresses", "writable"),
]


@pytest.mark.parametrize("at", [("meta", "err"), *(at for at in HOSTILE if at not in OPTIONAL)])
def test_a_missing_part_makes_an_unreadable_record(at):
    answer = result((0, [inner(2, [0, 4], b"a")]))
    if isinstance(at[-1], int):
        place_of(answer, at)[at[-1]] = {}
    else:
        del place_of(answer, at)[at[-1]]
    with pytest.raises(UnreadableRecordError, match="getTransaction"):
        read_record(answer)


def test_more_calls_than_any_runtime_allows_make_an_unreadable_record():
    half = [inner(2, [], b"")] * (MAX_INNER_CALLS // 2)
    assert len(read_record(result((0, half), (1, half))).inner_calls) == MAX_INNER_CALLS
    with pytest.raises(UnreadableRecordError, match=f"at most {MAX_INNER_CALLS}"):
        read_record(result((0, half), (1, half), (2, half[:1])))


@pytest.mark.parametrize("err", ["BorshIoError", {"InstructionError": [0, "New"]}, 7, [], {}, ""])
def test_whatever_is_not_null_is_a_failure(err):
    entry = {**LISTED, "err": err, "memo": HUGE, "confirmationStatus": [], "more": {}}
    assert read_listed([entry, LISTED]) == [Listed(SIGNATURE, 5, True), Listed(SIGNATURE, 5, False)]


@pytest.mark.parametrize(
    "listed",
    [
        *SHAPES,
        [5],
        [None],
        [[]],
        *([{**LISTED, "slot": slot}] for slot in NUMBERS),
        *([{**LISTED, "signature": text}] for text in NO_KEYS),
        *([{key: LISTED[key] for key in LISTED if key != missing}] for missing in LISTED),
        [LISTED] * (MAX_LISTED + 1),
    ],
)
def test_a_page_with_a_wrong_part_is_malformed(listed):
    with pytest.raises((TypeError, ValueError, KeyError)):
        read_listed(listed)
