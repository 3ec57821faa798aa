"""The one door: whatever a node answers, the caller sees one of our errors and nothing else."""

import copy
import gzip
import json
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from solders.hash import Hash
from support.hostile_rpc import HostileServer, http, reply
from support.rpc_methods import CONTEXT, KEY, METHODS, SIGNATURE

from troth_coordinator.chain.errors import (
    ChainError,
    MalformedReplyError,
    RpcLimitedError,
    RpcRefusedError,
    RpcTimeoutError,
    RpcUnreachableError,
    TransactionRejectedError,
)
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.rpc import Listed

UNCOMMITTED = ("getSignatureStatuses", "requestAirdrop", "getGenesisHash", "getVersion")
"""Methods that take no commitment."""
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


async def ask(server, method, **options):
    async with HttpRpc(server.url, **{"timeout_seconds": 5.0, **options}) as rpc:
        return await METHODS[method][0](rpc)


@EVERY_METHOD
async def test_an_honest_answer_is_read(method):
    async with HostileServer(lambda request: http(reply(METHODS[method][1], request))) as server:
        found = await ask(server, method)
    assert server.requests[0]["method"] == method
    if method == "getMultipleAccounts":
        slot, (account, missing) = found
        assert slot == 9
        assert account.lamports == 7
        assert account.owner == KEY
        assert account.data == b"\1\2\3"
        assert missing is None
    elif method == "getSignatureStatuses":
        assert found[0].slot == 5
        assert found[0].failure is None
        assert found[0].finality == "confirmed"
        assert found[1] is None
    elif method == "getTransaction":
        failure = TransactionFailure("InstructionError", 1, "Custom", 6003)
        assert found.slot == 5
        assert found.failure == failure
        assert found.logs == ("Program log: x",)
        assert found.fee_lamports == 5000
        assert found.compute_units == 77
        assert found.inner_calls == ()
    elif method == "getSignaturesForAddress":
        assert found == [Listed(SIGNATURE, 5, True), Listed(SIGNATURE, 5, False)]
    elif method == "simulateTransaction":
        assert found.failure == TransactionFailure("InstructionError", 1, "Custom", 6003)
        assert found.logs == ("Program log: x",)
    elif method == "getVersion":
        assert found == "3.0.1"
    elif method == "getLatestBlockhash":
        blockhash, last_valid_height = found
        assert blockhash == Hash.from_bytes(bytes(KEY))
        assert last_valid_height == 159
    elif method == "getProgramAccounts":
        assert [address for address, _account in found] == [KEY]
        filters = server.requests[0]["params"][1]["filters"]
        assert {"dataSize": 3} in filters
        assert any("memcmp" in entry for entry in filters)
    elif method == "getGenesisHash":
        assert found == bytes(KEY)


async def test_reads_and_preflight_are_at_confirmed():
    def answer(request):
        return http(reply(METHODS[request["method"]][1], request))

    async with HostileServer(answer) as server:
        for method in METHODS:
            await ask(server, method)
    for request in server.requests:
        if request["method"] in UNCOMMITTED:
            continue
        assert "confirmed" in json.dumps(request), request


@EVERY_METHOD
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        b"\xff\xfe\x00",
        b"[]",
        b"{}",
        b"null",
        b'{"jsonrpc":"2.0","id":0}',
        b'{"jsonrpc":"2.0","id":0,"result":{"context":{"slot":"x"},"value":[1,2,3]}}',
        b'{"jsonrpc":"2.0","id":0,"result":[[],[]]}',
        b'{"jsonrpc":"2.0","id":0,"result":true}',
        b'{"jsonrpc":"2.0","id":0,"result":-1}',
        b"[" * 100_000,
        gzip.compress(bytes(10_000_000), mtime=0),  # the workers compare the names of tests
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_garbage_is_malformed(method, body):
    async with HostileServer(lambda request: http(body)) as server:
        with pytest.raises(MalformedReplyError) as caught:
            await ask(server, method)
    assert method in str(caught.value)


@EVERY_METHOD
async def test_error_status(method):
    async with HostileServer(lambda request: http(b"oops", "500 Internal Error")) as server:
        with pytest.raises(RpcUnreachableError, match="HTTP status 500"):
            await ask(server, method)


@EVERY_METHOD
async def test_error_object_keeps_its_text(method):
    body = b'{"jsonrpc":"2.0","id":0,"error":{"code":-32011,"message":"History is not kept"}}'
    async with HostileServer(lambda request: http(body)) as server:
        with pytest.raises(RpcRefusedError, match="-32011: History is not kept"):
            await ask(server, method)


@pytest.mark.parametrize("code", [-32005, -32429, 429])
async def test_an_error_object_that_asks_us_to_wait(code):
    error = {"code": code, "message": "Too many requests"}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()
    async with HostileServer(lambda request: http(body)) as server:
        with pytest.raises(RpcLimitedError, match=f"error {code}: Too many requests") as caught:
            await ask(server, "getSlot")
    assert caught.value.retry_after_seconds is None


@pytest.mark.parametrize(
    ("status", "after", "seconds"),
    [
        ("429 Too Many Requests", "7", 7.0),
        ("503 Service Unavailable", "3", 3.0),
        ("429 Too Many Requests", "Fri, 31 Dec 1999 23:59:59 GMT", None),
        ("429 Too Many Requests", "9" * 400, None),
        ("429 Too Many Requests", "-1", None),
    ],
)
async def test_a_status_that_asks_us_to_wait(status, after, seconds):
    body = http(b"slow down", status).replace(b"\r\n", f"\r\nRetry-After: {after}\r\n".encode(), 1)
    async with HostileServer(lambda request: body) as server:
        with pytest.raises(RpcLimitedError, match=f"HTTP status {status[:3]}") as caught:
            await ask(server, "getSlot")
    assert caught.value.retry_after_seconds == seconds


async def test_errors_call_a_node_by_its_name_not_by_its_address():
    async with HostileServer(lambda request: http(b"oops", "500 Internal Error")) as server:
        secret = server.url + "/?api-key=secret"
        async with HttpRpc(secret, name="node.example") as rpc:
            with pytest.raises(RpcUnreachableError, match=r"RPC at node\.example: ") as caught:
                await rpc.get_slot()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "error", [None, 7, [], {}, {"code": "x"}, {"code": -32002, "data": {"err": 7, "logs": 3}}]
)
async def test_odd_error_objects(error):
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).encode()
    async with HostileServer(lambda request: http(body)) as server:
        with pytest.raises(ChainError):
            await ask(server, "sendTransaction")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("BlockhashNotFound", TransactionFailure("BlockhashNotFound")),
        (
            {"InstructionError": [2, {"Custom": 6001}]},
            TransactionFailure("InstructionError", 2, "Custom", 6001),
        ),
    ],
)
async def test_preflight_refusal_carries_reason_and_logs(error, expected):
    data = {"err": error, "logs": ["a", "b"], "accounts": None, "unitsConsumed": 3}
    body = {"code": -32002, "message": "Transaction simulation failed", "data": data}
    text = json.dumps({"jsonrpc": "2.0", "id": 0, "error": body}).encode()
    async with HostileServer(lambda request: http(text)) as server:
        with pytest.raises(TransactionRejectedError) as caught:
            await ask(server, "sendTransaction")
    assert caught.value.failure == expected
    assert caught.value.logs == ("a", "b")


async def test_fewer_answers_than_questions():
    short = {"context": CONTEXT, "value": [None]}
    async with HostileServer(lambda request: http(reply(short, request))) as server:
        for method in ("getMultipleAccounts", "getSignatureStatuses"):
            with pytest.raises(MalformedReplyError, match=r"1 .* for 2 keys"):
                await ask(server, method)


async def test_a_server_that_hangs():
    async with HostileServer(lambda request: None) as server:
        started = time.monotonic()
        with pytest.raises(RpcTimeoutError, match=r"no complete answer to getSlot in 0\.2 s"):
            await ask(server, "getSlot", timeout_seconds=0.2)
    assert time.monotonic() - started < 3


async def test_a_server_that_drips():
    """Each byte arrives in time, the whole never would: the limit is on the whole."""
    body = http(reply(9, {}))
    async with HostileServer(lambda request: body, drip_seconds=0.05) as server:
        with pytest.raises(RpcTimeoutError):
            await ask(server, "getSlot", timeout_seconds=0.4)


async def test_a_body_of_100_megabytes_is_not_read():
    body = http(b'{"jsonrpc":"2.0","id":0,"result":"' + b"a" * 100_000_000 + b'"}')
    async with HostileServer(lambda request: body) as server:
        with pytest.raises(RpcUnreachableError, match="more than 1000000 bytes"):
            await ask(server, "getSlot", max_reply_bytes=1_000_000)
    assert server.num_sent < 50_000_000


async def test_a_body_that_ends_early():
    async with HostileServer(lambda request: http(b'{"json', length=999999)) as server:
        with pytest.raises(RpcUnreachableError):
            await ask(server, "getSlot")


async def test_not_even_http():
    async with HostileServer(lambda request: b"SSH-2.0-OpenSSH_9\r\n") as server:
        with pytest.raises(RpcUnreachableError):
            await ask(server, "getSlot")


async def test_nobody_listens():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with HttpRpc(f"http://127.0.0.1:{port}") as rpc:
        with pytest.raises(RpcUnreachableError, match="troth localnet up"):
            await rpc.get_slot()


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1:1", "http://"])
async def test_an_address_that_is_none(url):
    with pytest.raises(ChainError):
        async with HttpRpc(url) as rpc:
            await rpc.get_slot()


async def test_too_many_addresses_in_one_call():
    async with HttpRpc("http://127.0.0.1:1") as rpc:
        with pytest.raises(ChainError, match="at most 100"):
            await rpc.get_accounts([KEY] * 101)


def paths(value, at=()):
    """Every place in a JSON tree."""
    yield at
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield from paths(inner, (*at, key))


JUNK = st.sampled_from(
    [None, True, -1, 2**64, 1.5, "", "0", "x" * 50, "\0", [], [None], {}, {"a": 1}, "////"]
)


@EVERY_METHOD
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_an_answer_with_one_wrong_part(method, data):
    """Wherever the lie is, the caller gets a value or one of our errors, never a panic."""
    result = copy.deepcopy(METHODS[method][1])
    *parents, last = data.draw(st.sampled_from([at for at in paths(result) if at] or [("",)]))
    junk = data.draw(JUNK)
    if last == "":
        result = junk
    else:
        place = result
        for key in parents:
            place = place[key]
        place[last] = junk
    async with HostileServer(lambda request: http(reply(result, request))) as server:
        try:
            await ask(server, method)
        except ChainError as error:
            assert error.next_step


@pytest.mark.parametrize("blockhash", ["", "0", "base58", "x" * 50])
async def test_a_reply_that_makes_the_parser_panic(blockhash):
    """solders unwraps this one: a BaseException that `except Exception` would let through."""
    result = {"context": CONTEXT, "value": {"blockhash": blockhash, "lastValidBlockHeight": 1}}
    async with HostileServer(lambda request: http(reply(result, request))) as server:
        with pytest.raises(MalformedReplyError, match="panic in the parser"):
            await ask(server, "getLatestBlockhash")
