"""Reach: whether others get a connection to this machine, found out before an address is announced.

Owns: both sides of the question. The asked server connects to the address that the question comes
from, and to no other: nobody can aim it at somebody else. It passes on nothing but a token.
Never: decides what follows from the answer. Next: `server.py`, which answers; `troth join` asks.

    GET /v1/reach/<port>   200 with the token found at the caller's own address, 204 none, 429 busy
"""

import asyncio
import contextlib
import errno
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from troth_client.transport.endpoint import check_endpoint
from troth_client.transport.errors import EndpointError, EndpointInUseError
from troth_client.transport.guard import is_public, public_socket
from troth_client.transport.names import Names
from troth_client.transport.places import Places, caller_of

ROUTE: Final = re.compile(r"/v1/reach/(\d{4,5})")
MOST_ASKED: Final = 3
ANSWER_SECONDS: Final = 4.0
_CONNECT_SECONDS: Final = 2.0
_MOST_AT_A_TIME: Final = 4
_TOKEN: Final = re.compile(rb"troth-reach [0-9a-f]{32}\n")
_TOKEN_BYTES: Final = 45


class Reacher:
    """The asked side: connects back to whoever asks, a few at a time and one for each address."""

    def __init__(self, *, is_guarded: bool) -> None:
        """`is_guarded`: connect to public addresses only, as on every public cluster."""
        self._is_guarded = is_guarded
        self._places = Places(_MOST_AT_A_TIME)
        self._under_way: set[str] = set()

    async def answer(self, request: web.BaseRequest, port: int) -> web.Response:
        """Say what lies at the caller's own address and port."""
        peer = request.transport.get_extra_info("peername") if request.transport else None
        host, caller = str(peer[0]) if peer else "", caller_of(peer)
        is_allowed = bool(host) and 1_024 <= port <= 65_535
        if not is_allowed or (self._is_guarded and not is_public(host)):
            return web.Response(status=204)
        if caller in self._under_way:
            return web.Response(status=429)
        self._under_way.add(caller)
        try:
            with self._places.hold(caller, _nothing) as has_place:
                if not has_place:
                    return web.Response(status=429)
                token = await _token_at(host, port)
        finally:
            self._under_way.discard(caller)
        return web.Response(status=204) if token is None else web.Response(body=token)


async def is_reachable(
    holders: Sequence[str], host: str, port: int, *, is_guarded: bool = False
) -> bool | None:
    """Ask up to three holders to connect to us at a free port, 0 for any; None: nobody answered.

    Raises EndpointInUseError or EndpointError if we cannot listen there.
    """
    if not holders:
        return None
    token = f"troth-reach {secrets.token_hex(16)}\n".encode()
    was_answered = False
    async with _offered(token, host, port) as own, _session(is_guarded) as session:
        for holder in secrets.SystemRandom().sample(holders, min(MOST_ASKED, len(holders))):
            found = await _asked(session, holder, own)
            if found == token:
                return True
            was_answered |= found is not None
    return False if was_answered else None


@contextlib.asynccontextmanager
async def _offered(token: bytes, host: str, port: int) -> AsyncIterator[int]:
    """Show the token to whoever connects inside the block; yields the port."""

    async def show(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(token)
            await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(show, host, port)
    except OSError as error:
        kind = EndpointInUseError if error.errno == errno.EADDRINUSE else EndpointError
        raise kind(
            f"to listen on {host}:{port}",
            error.strerror or str(error),
            "Stop the other process or choose another port; 0 lets the system choose.",
        ) from error
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def _session(is_guarded: bool) -> aiohttp.ClientSession:
    make_socket = public_socket if is_guarded else None
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(socket_factory=make_socket, resolver=Names()),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
        trust_env=False,
    )


async def _asked(session: aiohttp.ClientSession, holder: str, port: int) -> bytes | None:
    """Return what a holder found, b"" if nothing; None if it cannot or does not say."""
    try:
        url = check_endpoint(holder).join(URL(f"/v1/reach/{port}"))
        async with session.get(url, allow_redirects=False) as answer:
            if answer.status == 204:
                return b""
            return await answer.content.read(_TOKEN_BYTES) if answer.status == 200 else None
    except (aiohttp.ClientError, OSError, ValueError, EndpointError):
        return None


async def _token_at(host: str, port: int) -> bytes | None:
    """Return the token at an address, None if there is none; whatever else lies there stays."""
    writer = None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            found = await reader.readexactly(_TOKEN_BYTES)
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return None
    finally:
        if writer is not None:
            writer.close()
    return found if _TOKEN.fullmatch(found) else None


def _nothing() -> None:
    pass
