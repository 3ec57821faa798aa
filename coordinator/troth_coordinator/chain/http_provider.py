"""One request to a node over HTTP: the text of its answer, or the error that it stands for.

Owns: the size limit, HTTP statuses and JSON-RPC error objects.
Never: reads a result; http_rpc.py does, and bounds the time.
Next: http_rpc.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
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
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
"""No compression is asked for and none undone: a small answer must not unfold to a large one."""
_LONGEST_NUMBER = 10
"""Digits of a Retry-After that is read at all."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose answer solders has no class for, or cannot read in all its forms."""

    method: str
    params: Sequence[object]

    def to_json(self) -> str:
        """Return the body, as solders' requests do."""
        written = {"jsonrpc": "2.0", "id": 1, "method": self.method, "params": list(self.params)}
        return json.dumps(written)


class CappedProvider(AsyncHTTPProvider):
    """solana-py's HTTP provider with a size limit and readable JSON-RPC errors.

    It asks through aiohttp, which takes a sixth of httpx's processor time for a small answer.
    """

    def __init__(self, url: str, max_reply_bytes: int, name: str) -> None:
        super(AsyncHTTPProvider, self).__init__(url)
        self._max_reply_bytes = max_reply_bytes
        self._name = name
        self._http: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()

    async def make_request_unparsed(self, body: Body | Request) -> str:
        """Post one request and return the text of its answer."""
        try:
            return await self._post(body)
        except _NotForRequestsError as error:
            await self._refuse_websocket()
            raise RpcUnreachableError(self._name, str(error)) from error
        except (aiohttp.ServerConnectionError, aiohttp.ClientOSError) as error:
            # A websocket may close or reset the connection; nobody listens where none was made.
            if not isinstance(error, aiohttp.ClientConnectorError):
                await self._refuse_websocket()
            raise

    async def _post(self, body: Body | Request) -> str:
        received = bytearray()
        async with self._session().post(
            self.endpoint_uri, data=body.to_json().encode(), headers=_HEADERS, allow_redirects=False
        ) as response:
            _check_status(self._name, response)
            async for chunk in response.content.iter_any():
                received += chunk
                if len(received) > self._max_reply_bytes:
                    raise RpcUnreachableError(
                        self._name, f"an answer of more than {self._max_reply_bytes} bytes"
                    )
        text = received.decode()
        if '"error"' in text:
            method = body.method if isinstance(body, Request) else type(body).__name__
            _raise_rpc_error(self._name, method, text)
        return text

    def _session(self) -> aiohttp.ClientSession:
        """Return the session, which belongs to the loop of the first request."""
        if self._http is None:
            # The certificates that httpx ships, on every machine the same. A context costs 20 ms.
            is_secure = self.endpoint_uri.lower().startswith(("https:", "wss:"))
            context = httpx.create_ssl_context(trust_env=False) if is_secure else True
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context),
                timeout=aiohttp.ClientTimeout(total=None),  # the caller bounds the whole request
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._http

    async def _refuse_websocket(self) -> None:
        """Raise RpcUnreachableError if a websocket answers: its port follows that of the RPC."""
        url = urlsplit(self.endpoint_uri)
        try:
            async with self._session().get(
                self.endpoint_uri, headers=_HANDSHAKE, allow_redirects=False
            ) as response:
                is_websocket = response.status == HTTPStatus.SWITCHING_PROTOCOLS
        except aiohttp.ClientError:
            return
        if is_websocket:
            step = "name the address of JSON-RPC, not of the websocket beside it"
            if url.port:
                scheme = url.scheme.replace("ws", "http")
                step = "name the port of JSON-RPC, which is one less: "
                step += f"--rpc {scheme}://{url.hostname}:{url.port - 1}"
            raise RpcUnreachableError(self._name, "a websocket, which takes no requests", step)


def reason_of(error: aiohttp.ClientError) -> str:
    """Say why a request failed, without the address, which may hold a key."""
    if isinstance(error, aiohttp.InvalidURL):
        return "no address that can be asked"
    if isinstance(error, aiohttp.ClientResponseError):
        return "no answer in HTTP"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno) if error.errno > 0 else error.strerror or "no host"
    return str(error) or type(error).__name__


class _NotForRequestsError(Exception):
    """A status with which other servers than an RPC answer a POST."""


class Client(AsyncClient):
    """solana-py's client on our provider, at commitment `confirmed`."""

    def __init__(self, provider: CappedProvider) -> None:
        super(AsyncClient, self).__init__(Confirmed)
        self._provider = provider


def _check_status(name: str, response: aiohttp.ClientResponse) -> None:
    """Raise what an HTTP status other than 200 says."""
    status = response.status
    if status == HTTPStatus.OK:
        return
    after = response.headers.get("Retry-After", "")
    if status == HTTPStatus.TOO_MANY_REQUESTS or after:
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
