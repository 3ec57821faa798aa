"""Records and lists of transactions over HTTP: a stranger may land any shape of one."""

import json

import pytest
from support.hostile_rpc import HostileServer, http, reply
from support.rpc_methods import CONTEXT, LISTED, METHODS, RECORD

from troth_coordinator.chain.errors import (
    MalformedReplyError,
    RpcRefusedError,
    UnreadableRecordError,
)
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.http_rpc import HttpRpc


async def ask(server, method):
    async with HttpRpc(server.url, timeout_seconds=5.0) as rpc:
        return await METHODS[method][0](rpc)


UNSUPPORTED = {"code": -32015, "message": "Transaction version (1) is not supported"}
REFUSED = {"code": -32602, "message": "Invalid params: maxSupportedTransactionVersion"}


async def record_from(*answers):
    """The record that is read from such answers to getTransaction, and the versions asked for.

    An answer is what becomes JSON, or a text that need not be any.
    """
    texts = iter(one if isinstance(one, str) else json.dumps(one) for one in answers)
    async with HostileServer(lambda _: http(next(texts).encode())) as server:
        found = await ask(server, "getTransaction")
    configs = [request["params"][1] for request in server.requests]
    assert {config["encoding"] for config in configs} == {"json"}
    return found, [config["maxSupportedTransactionVersion"] for config in configs]


async def test_every_provider_is_asked_for_the_version_that_it_knows():
    found, versions = await record_from({"result": {**RECORD, "more": [{}]}})
    assert found.slot == 5
    assert versions == [0]


async def test_a_transaction_of_a_newer_version_is_asked_for_again_and_read():
    found, versions = await record_from(
        {"error": UNSUPPORTED}, {"result": {**RECORD, "version": 127, "more": [{}]}}
    )
    assert found.slot == 5
    assert versions == [0, 127]


@pytest.mark.parametrize(
    ("second", "found"),
    [(UNSUPPORTED, r"error -32015: Transaction version \(1\)"), (REFUSED, "error -32602: Invalid")],
)
async def test_a_version_that_a_node_does_not_show_is_an_unreadable_record(second, found):
    with pytest.raises(UnreadableRecordError, match=found):
        await record_from({"error": UNSUPPORTED}, {"error": second})


@pytest.mark.parametrize("answers", [[REFUSED], [UNSUPPORTED, {"code": -32603, "message": "x"}]])
async def test_other_refusals_are_no_records(answers):
    with pytest.raises(RpcRefusedError):
        await record_from(*({"error": error} for error in answers))


@pytest.mark.parametrize("err", ["BorshIoError", "New", {"New": {"a": [1]}}, 7, [[]], {}])
async def test_a_reason_that_nobody_knows_is_a_failure_all_the_same(err):
    failed = {"InstructionError": [0, err]}

    def answer(request):
        method = request["method"]
        if method == "getTransaction":
            return http(reply({**RECORD, "meta": {**RECORD["meta"], "err": failed}}, request))
        if method == "getSignaturesForAddress":
            return http(reply([{**LISTED, "err": failed}], request))
        value = [{"slot": 5, "err": failed, "confirmationStatus": "confirmed"}] * 2
        is_one = method == "simulateTransaction"
        return http(reply({"context": CONTEXT, "value": value[0] if is_one else value}, request))

    async with HostileServer(answer) as server:
        record = await ask(server, "getTransaction")
        (listed,) = await ask(server, "getSignaturesForAddress")
        status, _ = await ask(server, "getSignatureStatuses")
        simulated = await ask(server, "simulateTransaction")
    assert listed.has_failed
    assert record.failure == TransactionFailure.from_json(failed)
    assert status.failure == TransactionFailure.from_json(failed)
    assert simulated.failure == TransactionFailure.from_json(failed)


async def test_of_two_keys_the_last_one_counts():
    text = json.dumps({"result": RECORD}).replace('"slot": 5', '"slot": "x", "slot": 6')
    found, _ = await record_from(text)
    assert found.slot == 6


@pytest.mark.parametrize(
    "number", ["9" * 5_000, "18446744073709551616", "-1", "1e3", "5.0", "NaN", "true", '"5"']
)
async def test_a_slot_that_is_none(number):
    text = json.dumps({"result": RECORD}).replace('"slot": 5', f'"slot": {number}')
    with pytest.raises(MalformedReplyError):
        await record_from(text)


async def test_an_answer_that_is_nested_deeply_is_malformed():
    deep = "[" * 100_000 + "]" * 100_000
    text = json.dumps({"result": RECORD}).replace('"blockTime": 1', f'"blockTime": {deep}')
    with pytest.raises(MalformedReplyError, match="RecursionError"):
        await record_from(text)


async def test_a_page_is_asked_for_that_fits_into_an_answer():
    """Each transaction of the page has the longest memo, of characters that JSON writes in six."""
    listed = {**LISTED, "memo": "\1" * 4_096}

    def answer(request):
        return http(reply([listed] * request["params"][1]["limit"], request))

    async with HostileServer(answer) as server:
        found = await ask(server, "getSignaturesForAddress")
    assert len(found) == server.requests[0]["params"][1]["limit"]
