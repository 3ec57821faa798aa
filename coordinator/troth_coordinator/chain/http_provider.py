"""One request to a node over HTTP: the text of its answer, or the error that it stands for.

Owns: the size limit, HTTP statuses and JSON-RPC error objects.
Never: reads a result; http_rpc.py does, and bounds the time.
Next: http_rpc.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import httpx
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed
from solana.rpc.providers.async_http import AsyncHTTPProvider

from troth_coordinator.chain.errors import (
    RpcLimitedError,
    RpcRefusedError,
    RpcUnreachableError,
    TransactionRejectedError,
)
from troth_coordinator.chain.failure import TransactionFailure

if TYPE_CHECKING:
    from solders.rpc.requests import Body

_LIMITED_CODES = frozenset({-32005, -32429, 429})
"""A node that is behind, or too many requests; providers use all three for the latter."""
_NOT_FOR_REQUESTS = frozenset({400, 405, 426})
"""Bad request, method not allowed, upgrade required: so websocket servers refuse a POST."""
_HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dHJvdGggbG9va3MgaW4uLg==",
}
_LONGEST_NUMBER = 10
"""Digits of a Retry-After that is read at all."""


class CappedProvider(AsyncHTTPProvider):
    """solana-py's HTTP provider with a size limit and readable JSON-RPC errors."""

    def __init__(self, url: str, timeout_seconds: float, max_reply_bytes: int, name: str) -> None:
        super(AsyncHTTPProvider, self).__init__(url)
        self._max_reply_bytes = max_reply_bytes
        self._name = name
        # A TLS context costs 20 ms, so plain http (localnets) goes without one.
        self.session = httpx.AsyncClient(
            timeout=timeout_seconds, trust_env=False, verify=url.startswith("https:")
        )

    async def make_request_unparsed(self, body: Body) -> str:
        """Post one request and return the text of its answer."""
        try:
            return await self._post(body)
        except _NotForRequestsError as error:
            await self._refuse_websocket()
            raise RpcUnreachableError(self._name, str(error)) from error
        except (httpx.RemoteProtocolError, httpx.ReadError):  # closed, or reset, without an answer
            await self._refuse_websocket()
            raise

    async def _post(self, body: Body) -> str:
        request = self._before_request(body=body)
        # No compression asked for and none undone: a small answer must not unfold to a large one.
        request["headers"]["Accept-Encoding"] = "identity"
        received = bytearray()
        async with self.session.stream("POST", **request) as response:
            _check_status(self._name, response)
            async for chunk in response.aiter_raw():
                received += chunk
                if len(received) > self._max_reply_bytes:
                    raise RpcUnreachableError(
                        self._name, f"an answer of more than {self._max_reply_bytes} bytes"
                    )
        text = received.decode()
        if '"error"' in text:
            _raise_rpc_error(self._name, type(body).__name__, text)
        return text

    async def _refuse_websocket(self) -> None:
        """Raise RpcUnreachableError if a websocket answers: its port follows that of the RPC."""
        url = httpx.URL(self.endpoint_uri)
        try:
            async with self.session.stream("GET", url, headers=_HANDSHAKE) as response:
                is_websocket = response.status_code == httpx.codes.SWITCHING_PROTOCOLS
        except httpx.HTTPError:
            return
        if is_websocket:
            step = "name the address of JSON-RPC, not of the websocket beside it"
            if url.port:
                scheme = url.scheme.replace("ws", "http")
                step = "name the port of JSON-RPC, which is one less: "
                step += f"--rpc {scheme}://{url.host}:{url.port - 1}"
            raise RpcUnreachableError(self._name, "a websocket, which takes no requests", step)


class _NotForRequestsError(Exception):
    """A status with which other servers than an RPC answer a POST."""


class Client(AsyncClient):
    """solana-py's client on our provider, at commitment `confirmed`."""

    def __init__(self, provider: CappedProvider) -> None:
        super(AsyncClient, self).__init__(Confirmed)
        self._provider = provider


def _check_status(name: str, response: httpx.Response) -> None:
    """Raise what an HTTP status other than 200 says."""
    status = response.status_code
    if status == httpx.codes.OK:
        return
    after = response.headers.get("Retry-After", "")
    if status == httpx.codes.TOO_MANY_REQUESTS or after:
        # A date is left aside: it would be compared with a clock that may be wrong.
        seconds = float(after) if after.isdecimal() and len(after) < _LONGEST_NUMBER else None
        raise RpcLimitedError(name, f"HTTP status {status}", seconds)
    if status in _NOT_FOR_REQUESTS:
        raise _NotForRequestsError(f"HTTP status {status}")
    raise RpcUnreachableError(name, f"HTTP status {status}")


def _raise_rpc_error(name: str, method: str, text: str) -> None:
    """Raise what a JSON-RPC error object says; solders would drop its message."""
    reply = json.loads(text)
    error = reply.get("error") if isinstance(reply, Mapping) else None
    if not isinstance(error, Mapping):
        return
    data = error.get("data")
    if isinstance(data, Mapping) and data.get("err") is not None:
        failure = TransactionFailure.from_json(data["err"])
        logs = data.get("logs") or []
        if failure is not None and isinstance(logs, list):
            raise TransactionRejectedError(failure, [str(line) for line in logs])
    code, message = error.get("code"), str(error.get("message", ""))[:300]
    if code in _LIMITED_CODES:
        raise RpcLimitedError(name, f"error {code}: {message}")
    raise RpcRefusedError(method, code if isinstance(code, int) else 0, message)
