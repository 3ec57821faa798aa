"""Transport over HTTP: an embedded server, and a client that trusts no holder.

Owns: endpoints, requests with Range, the error for each kind of failure.
Never: follows a redirect, decompresses, keeps cookies or reads a proxy from the environment: a
holder's answer is a status, a length and bytes, or it is a failure.
Next: `server.py` for the serving side, `exchange.py` for the race between holders.
"""

import re
from pathlib import Path

import aiohttp
from yarl import URL

from troth_client.transport.base import BlobId
from troth_client.transport.blob_cache import BlobCache, MemoryBlobs
from troth_client.transport.endpoint import OWN, check_endpoint
from troth_client.transport.errors import (
    EndpointError,
    HolderError,
    HolderLacksError,
    HolderLiedError,
    HolderRefusedError,
    HolderSilentError,
    HolderTruncatedError,
    HolderUnreachableError,
)
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.files import FolderBlobs
from troth_client.transport.guard import public_socket
from troth_client.transport.names import Names
from troth_client.transport.server import PATH, BlobServer, Extras
from troth_client.transport.tally import Tally
from troth_client.transport.wire import Partial

_CONNECT_SECONDS = 3.0
_SHORT_BYTES = 16 * 1024
_NEXT = "Asking another holder."
# A host name that cannot be encoded makes the resolver raise UnicodeError, which is a ValueError.
# An endpoint is a stranger's text, so any error that it causes in these libraries is that holder's.
_FOREIGN_FAULTS = (aiohttp.ClientError, OSError, ValueError, EndpointError)
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class HttpWire:
    """One client session, and one listening socket if `address` (host, port) is given."""

    def __init__(
        self,
        address: tuple[str, int] | None,
        advertised: str,
        patience: Patience,
        *,
        tally: Tally,
        is_guarded: bool = False,
    ) -> None:
        self._tally = tally
        self._make_socket = public_socket if is_guarded else None
        self._address = address
        self._advertised = advertised
        self._patience = patience
        self._server: BlobServer | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self, cache: BlobCache) -> str:
        """Listen and return the endpoint to announce; errors as in `BlobServer.start`.

        Without an address it only opens the session, and the endpoint is "".
        """
        endpoint = "" if self._address is None else await self._listen(cache, *self._address)
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(
                limit=64, limit_per_host=8, socket_factory=self._make_socket, resolver=Names()
            ),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_SECONDS, sock_read=self._patience.grace_seconds
            ),
        )
        return endpoint

    async def stop(self) -> None:
        """Stop listening and close the session; idempotent."""
        if self._session is not None:
            await self._session.close()
        if self._server is not None:
            await self._server.stop()

    async def read(self, holder: str, blob: BlobId, into: Partial) -> None:
        """Append the missing bytes; HolderError names what the holder did instead."""
        headers = {"Accept-Encoding": "identity"}
        if into.data:
            headers["Range"] = f"bytes={len(into.data)}-"
        try:
            async with self._request("GET", holder, blob, headers=headers) as answer:
                await _receive(holder, answer, into)
        except _FOREIGN_FAULTS as error:
            raise _named(holder, error) from error

    async def write(self, holder: str, blob: BlobId, data: bytes) -> None:
        """Push bytes; HolderRefusedError if they are not taken."""
        try:
            async with self._request("POST", holder, blob, data=data) as answer:
                if answer.status not in (200, 201):
                    raise HolderRefusedError(
                        f"{holder} to take a push", f"status {answer.status}", "Serving it instead."
                    )
        except _FOREIGN_FAULTS as error:
            raise _named(holder, error) from error

    async def _listen(self, cache: BlobCache, host: str, port: int) -> str:
        if self._advertised:
            check_endpoint(self._advertised, OWN)
        extras = Extras(is_guarded=self._make_socket is not None, tally=self._tally)
        self._server = BlobServer(cache, self._patience, extras)
        port = await self._server.start(host, port)
        shown = f"[{host}]" if ":" in host else host
        return self._advertised or f"http://{shown}:{port}"

    def _request(
        self,
        method: str,
        holder: str,
        blob: BlobId,
        *,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
    ) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            raise EndpointError("a started transport", "one that is not", "Use `async with`.")
        url = check_endpoint(holder).join(URL(PATH + blob.address))
        return self._session.request(
            method,
            url,
            headers=headers,
            data=data,
            # A holder that knows or refuses long bytes says so before they are sent.
            expect100=data is not None and len(data) > _SHORT_BYTES,
            allow_redirects=False,
        )


def http_transport(
    host: str,
    port: int,
    *,
    folder: Path | None = None,
    advertised: str = "",
    patience: Patience | None = None,
    is_guarded: bool = False,
) -> Exchange:
    """Make the transport of a real participant.

    `host`, `port`: the address to listen on, port 0 for any free port; host "" to listen nowhere,
    so that all connections are outbound and the endpoint is "". `folder`: keep blobs there
    instead of in memory. `advertised`: the endpoint for others, if we listen on another one.
    `is_guarded`: connect to public addresses only.
    """
    patience = patience or Patience()
    blobs = FolderBlobs(folder) if folder else MemoryBlobs()
    address = (host, port) if host else None
    tally = Tally()
    wire = HttpWire(address, advertised, patience, tally=tally, is_guarded=is_guarded)
    return Exchange(BlobCache(blobs), wire, patience, tally)


def http_reader(patience: Patience | None = None, *, is_guarded: bool = False) -> Exchange:
    """Make a transport that only fetches: it listens nowhere and serves nothing to anybody."""
    patience = patience or Patience()
    tally = Tally()
    wire = HttpWire(None, "", patience, tally=tally, is_guarded=is_guarded)
    return Exchange(BlobCache(MemoryBlobs()), wire, patience, tally)


async def _receive(holder: str, answer: aiohttp.ClientResponse, into: Partial) -> None:
    try:
        _check_answer(holder, answer, into)
        async for chunk in answer.content.iter_any():
            into.append(holder, chunk)
    except BaseException:
        answer.close()  # never read the rest of what a liar sends
        raise


def _check_answer(holder: str, answer: aiohttp.ClientResponse, into: Partial) -> None:
    """Judge status and lengths before the first byte of the body."""
    if answer.status == 404:
        raise HolderLacksError(f"{holder} to have it", "status 404", _NEXT)
    if answer.status == 200:
        into.restart()
    elif answer.status != 206 or not into.data:
        raise HolderLiedError(f"{holder} to answer 200 or 206", f"status {answer.status}", _NEXT)
    wanted = into.num_bytes - len(into.data)
    if answer.status == 206:
        span = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        found = tuple(map(int, span.groups())) if span else ()
        if found != (len(into.data), into.num_bytes - 1, into.num_bytes):
            raise HolderLiedError(
                f"{holder} to send the last {wanted} bytes", f"{found or 'no range'}", _NEXT
            )
    if answer.content_length is not None and not into.fits(answer.content_length):
        raise HolderLiedError(
            f"{holder} to send {wanted} bytes", f"Content-Length {answer.content_length}", _NEXT
        )


def _named(holder: str, error: Exception) -> HolderError:
    """Translate what the HTTP library raises."""
    found = f"{type(error).__name__}: {error}"
    if isinstance(error, TimeoutError):
        return HolderSilentError(f"{holder} to send something", found, _NEXT)
    if isinstance(error, aiohttp.ClientPayloadError):
        return HolderTruncatedError(f"{holder} to send all bytes", found, _NEXT)
    if isinstance(error, aiohttp.ClientResponseError):
        return HolderLiedError(f"{holder} to speak HTTP", found, _NEXT)
    return HolderUnreachableError(f"{holder} to accept a connection", found, _NEXT)
