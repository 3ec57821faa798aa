import json

import pytest

from troth_localnet.jsonrpc import MAX_BATCH, JsonRpcError, handle


def echo(params):
    return params


def boom(_params):
    raise KeyError("ours")


class PanicException(BaseException):
    """Named as PyO3 names it."""


def panic(_params):
    raise PanicException("solders")


def interrupt(_params):
    raise KeyboardInterrupt


def refuse(_params):
    raise JsonRpcError(-32_602, "no", {"why": 1})


METHODS = {"echo": echo, "boom": boom, "panic": panic, "interrupt": interrupt, "refuse": refuse}


def call(body):
    text = handle(body if isinstance(body, bytes) else json.dumps(body), METHODS.get)
    return json.loads(text) if text else None


def request(method="echo", **fields):
    return {"jsonrpc": "2.0", "id": 1, "method": method, **fields}


def code(body):
    return call(body)["error"]["code"]


def test_a_request_is_answered_under_its_id():
    assert call(request(params=[1, "a"])) == {"jsonrpc": "2.0", "id": 1, "result": [1, "a"]}
    assert call(request(id="x"))["id"] == "x"
    assert call(request())["result"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"garbage",
        b"{",
        b'{"a":NaN}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"id":' + b"9" * 10_000 + b"}",
    ],
)
def test_what_is_not_json_is_a_parse_error(body):
    assert code(body) == -32_700


@pytest.mark.parametrize(
    "body",
    [
        1,
        "text",
        None,
        [],
        [[]],
        {"id": 1},
        request(jsonrpc="1.0"),
        request(method=5),
        request(id=[1]),
        request(id=True),
        [1] * (MAX_BATCH + 1),
    ],
)
def test_what_is_no_request_is_an_invalid_request(body):
    reply = call(body)
    (reply,) = reply if isinstance(reply, list) else [reply]
    assert reply["error"]["code"] == -32_600


def test_unknown_methods_and_named_params_have_their_codes():
    assert code(request("nope")) == -32_601
    assert code(request(params={"a": 1})) == -32_602
    assert code(request(params=7)) == -32_602


def test_a_long_method_name_is_not_echoed_whole():
    assert len(call(request("x" * 100_000))["error"]["message"]) < 200


def test_a_refusal_carries_its_data():
    assert call(request("refuse"))["error"] == {
        "code": -32_602,
        "message": "no",
        "data": {"why": 1},
    }


@pytest.mark.parametrize("method", ["boom", "panic"])
def test_a_fault_or_panic_inside_is_an_internal_error(method):
    assert code(request(method)) == -32_603


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        call(request("interrupt"))


def test_a_batch_is_answered_in_order_faults_included():
    replies = call([request(id=1, params=[1]), 5, request("nope", id=3), request("boom", id=4)])
    assert [reply.get("id") for reply in replies] == [1, None, 3, 4]
    assert [reply.get("error", {}).get("code") for reply in replies] == [
        None,
        -32_600,
        -32_601,
        -32_603,
    ]


def test_notifications_get_no_reply():
    notification = {"jsonrpc": "2.0", "method": "echo"}
    assert call(notification) is None
    assert call([notification, notification]) is None
    assert [reply["id"] for reply in call([notification, request()])] == [1]
