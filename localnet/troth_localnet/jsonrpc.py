"""The JSON-RPC 2.0 envelope: one body in, one body out, for any body.

Owns: parsing, batches, ids, the error codes, and the last guard before a reply.
Never: knows a method.
Next: `methods/` for the methods; `rpc.py`, which carries bodies to and from sockets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from troth_localnet.values import Json

logger = logging.getLogger(__name__)

MAX_BATCH: Final = 256
_MAX_ECHO_LENGTH: Final = 128

PARSE_ERROR: Final = -32_700
INVALID_REQUEST: Final = -32_600
METHOD_NOT_FOUND: Final = -32_601
INVALID_PARAMS: Final = -32_602
INTERNAL_ERROR: Final = -32_603
PREFLIGHT_FAILURE: Final = -32_002
BLOCK_NOT_AVAILABLE: Final = -32_004
SLOT_SKIPPED: Final = -32_007
UNSUPPORTED_VERSION: Final = -32_015
MIN_CONTEXT_SLOT: Final = -32_016

Method = Callable[[list[Json]], Json]
Lookup = Callable[[str], Method | None]


class JsonRpcError(Exception):
    """A refusal with a JSON-RPC code; the dispatcher turns it into an error reply."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def handle(body: bytes | str, lookup: Lookup) -> str:
    """Answer one request body; empty text if it held only notifications. Never raises."""
    try:
        request = _parse(body)
    except JsonRpcError as error:
        return _dump(_error_reply(error, None))
    if not isinstance(request, list):
        reply = _answer(request, lookup)
        return "" if reply is None else _dump(reply)
    if not 0 < len(request) <= MAX_BATCH:
        found = f"expected a batch of 1 to {MAX_BATCH} requests, found {len(request)}"
        return _dump(_error_reply(JsonRpcError(INVALID_REQUEST, found), None))
    replies = [reply for item in request if (reply := _answer(item, lookup)) is not None]
    return _dump(replies) if replies else ""


def _parse(body: bytes | str) -> Json:
    try:
        parsed: Json = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise JsonRpcError(PARSE_ERROR, f"Parse error: the body is not JSON ({error})") from error
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _answer(request: Json, lookup: Lookup) -> dict[str, Json] | None:
    """Answer one request object; None for a notification."""
    identity: Json = None
    try:
        identity = _identity(request)
        result = _call(request, lookup)
    except JsonRpcError as error:
        return _error_reply(error, identity)
    if isinstance(request, Mapping) and "id" not in request:
        return None
    return {"jsonrpc": "2.0", "result": result, "id": identity}


def _identity(request: Json) -> Json:
    if not isinstance(request, Mapping):
        found = type(request).__name__
        raise JsonRpcError(INVALID_REQUEST, f"Invalid request: expected an object, found {found}")
    identity = request.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int | float | None):
        raise JsonRpcError(INVALID_REQUEST, "Invalid request: id must be a number, text or null")
    return identity


def _call(request: Json, lookup: Lookup) -> Json:
    if not isinstance(request, Mapping) or request.get("jsonrpc") != "2.0":
        raise JsonRpcError(INVALID_REQUEST, 'Invalid request: expected "jsonrpc": "2.0"')
    name, params = request.get("method"), request.get("params")
    if not isinstance(name, str):
        raise JsonRpcError(INVALID_REQUEST, "Invalid request: expected a method name")
    if params is not None and not isinstance(params, list):
        raise JsonRpcError(INVALID_PARAMS, "Invalid params: expected an array")
    method = lookup(name)
    if method is None:
        raise JsonRpcError(METHOD_NOT_FOUND, f"Method not found: {name[:_MAX_ECHO_LENGTH]}")
    return _guarded(name, method, params or [])


def _guarded(name: str, method: Method, params: list[Json]) -> Json:
    """Keep a fault of ours, or a panic inside solders, from ending the server."""
    try:
        return method(params)
    except JsonRpcError:
        raise
    except BaseException as error:
        # PyO3's PanicException is a BaseException; leave cancellation and exit alone.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        logger.exception("method %s failed", name)
        raise JsonRpcError(INTERNAL_ERROR, f"Internal error in {name}: {error!r:.200}") from error


def _error_reply(error: JsonRpcError, identity: Json) -> dict[str, Json]:
    body: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return {"jsonrpc": "2.0", "error": body, "id": identity}


def _dump(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"))
