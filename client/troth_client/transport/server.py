"""The embedded HTTP server: serves released blobs by address, takes expected pushes.

Owns: routes, Range, size caps and time limits for callers. Never: reads a body whose size is
not the expected one. A blob that is not released looks like one that does not exist.
Next: `blob_cache.py` for the gate; `places.py` for callers that take too much; `http.py` for the
calling side.

    GET, HEAD /v1/<kind>/<hex>   200, 206 with Range, 404, 416; the kinds are those of `BlobKind`
    GET       /v1/reach/<port>   whether the caller can be reached there; `reach.py`
    POST      the same           201 kept, 200 known, 404, 408, 409, 413, 422, 429, 503, 507

A caller that asks with `Expect: 100-continue` sends the body only if it is wanted.
"""

import asyncio
import contextlib
import errno
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from troth_client.runtime.files import DiskFullError
from troth_client.runtime.handles import most_connections
from troth_client.telemetry.loopback import is_loopback
from troth_client.transport.base import OF_FILES, OF_STATES, BlobKind
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.errors import BlobRefusedError, EndpointError, EndpointInUseError
from troth_client.transport.exchange import Pace, Patience
from troth_client.transport.places import UNKNOWN, Place, Places, caller_of
from troth_client.transport.quota import Quota
from troth_client.transport.reach import ROUTE, Reacher
from troth_client.transport.tally import Tally

PATH = "/v1/"
_CHUNK_BYTES = 64 * 1024
_MAX_CONNECTIONS = 512
_MAX_QUEUED = 128  # connections that the system keeps until they are accepted
_MAX_ACCEPTED = 8  # at once; asyncio has several such groups open before it ends those of no place
_MAX_PUSHES = 8
_MAX_PIECES = 64  # of 1 MiB at most; they take no place from what a round needs
_MAX_READS = 64
_METHODS = frozenset({"GET", "HEAD", "POST"})
_MOST_SIZES = 8
_PROXY_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Real-IP")
_ADDRESS = re.compile(rf"{PATH}((?:{'|'.join(BlobKind)})/[0-9a-f]{{64}})")
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")


@dataclass(slots=True)
class _Shared:
    """Bytes that are read from the disk once for all who ask for them at the same time."""

    data: asyncio.Task[bytes | None]
    num_callers: int = 0


@dataclass(frozen=True, slots=True)
class Extras:
    """Parts that not every server has.

    A hub has a quota for senders, and pages for callers on this machine. A guarded server connects
    back to callers at public addresses only. `tally` may count for others too.
    """

    quota: Quota | None = None
    pages: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    is_guarded: bool = False
    tally: Tally = field(default_factory=Tally)


class BlobServer:
    """Serves one blob cache on one address until `stop`. `tally` counts the answers."""

    def __init__(self, cache: BlobCache, patience: Patience, extras: Extras | None = None) -> None:
        self._extras = extras or Extras()
        self.tally = self._extras.tally
        self._reacher = Reacher(is_guarded=self._extras.is_guarded)
        self._cache = cache
        self._patience = patience
        self._pushes = Places(_MAX_PUSHES)
        self._piece_pushes = Places(_MAX_PIECES)
        self._reads = Places(_MAX_READS)
        self._shared: dict[str, _Shared] = {}
        self._guard: _BoundedServer | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; port 0 lets the system choose. Returns the port.

        Raises EndpointInUseError, or EndpointError for an address that is not this machine's.
        """
        guard = _BoundedServer(
            self._answer,
            auto_decompress=False,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=self._patience.grace_seconds,
            lingering_time=0,  # an unread body is not worth reading
        )
        try:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(guard, host, port, backlog=_MAX_ACCEPTED)
        except OSError as error:
            kind = EndpointInUseError if error.errno == errno.EADDRINUSE else EndpointError
            raise kind(
                f"to listen on {host}:{port}",
                f"{error.strerror or error}",
                "Stop the other process or choose another port; 0 lets the system choose.",
            ) from error
        for one in self._listener.sockets:
            with one.dup() as listening:  # asyncio has one figure for the queue and for a group
                listening.listen(_MAX_QUEUED)
        self._guard = guard
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and end open connections; idempotent."""
        if self._listener is not None and self._guard is not None:
            self._listener.close()
            self._guard.pre_shutdown()
            await self._guard.shutdown(timeout=1.0)
            await self._listener.wait_closed()
        self._listener = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._answered(request)
        if request.method in _METHODS:
            self.tally.answers[request.method, answer.status] += 1
        return answer

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        page = self._extras.pages.get(request.path)
        if page is not None and request.method == "GET" and _is_local(request):
            return web.Response(text=page())
        asked = ROUTE.fullmatch(request.path)
        if asked is not None and request.method == "GET":
            return await self._reacher.answer(request, int(asked[1]))
        found = _ADDRESS.fullmatch(request.path)
        if found is None:
            return web.Response(status=404)
        if request.method == "POST":
            answer = await self._take(request, found[1])
            if not request.content.is_eof():  # bytes that are not wanted may still come
                answer.force_close()
            return answer
        if request.method in ("GET", "HEAD"):
            caller, give_up = _caller(request)
            async with self._reads.wait(caller, give_up), self._served(found[1]) as data:
                return web.Response(status=404) if data is None else await self._give(request, data)
        return web.Response(status=405, headers={"Allow": "GET, HEAD, POST"})

    @contextlib.asynccontextmanager
    async def _served(self, address: str) -> AsyncIterator[bytes | None]:
        """Yield the bytes at an address; however many callers read them, they lie here once."""
        one = self._shared.get(address)
        if one is None:
            reading = asyncio.create_task(asyncio.to_thread(self._cache.served, address))
            one = self._shared[address] = _Shared(reading)
            reading.add_done_callback(lambda _: self._forget(address))
        one.num_callers += 1
        try:
            yield await asyncio.shield(one.data)
        finally:
            one.num_callers -= 1
            self._forget(address)

    def _forget(self, address: str) -> None:
        """Let go of bytes that nobody asks for now; what is lacking is looked for anew."""
        one = self._shared.get(address)
        if one is not None and one.data.done() and not (one.num_callers and _found(one.data)):
            del self._shared[address]

    async def _give(self, request: web.BaseRequest, data: bytes) -> web.StreamResponse:
        span = _range(request.headers.get("Range", ""), len(data))
        if not span:
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
        part = memoryview(data)[span.start : span.stop]
        answer = web.StreamResponse(status=200 if len(part) == len(data) else 206)
        answer.content_type = "application/octet-stream"
        answer.content_length = len(part)
        answer.headers["Accept-Ranges"] = "bytes"
        if answer.status == 206:
            answer.headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(data)}"
        try:
            pace = Pace(self._patience)
            async with pace.limit:
                await answer.prepare(request)
                if request.method == "GET":
                    await _send(answer, part, pace)
                await answer.write_eof()
            self.tally.num_sent += len(part)
        except TimeoutError:  # the caller stopped reading: a polite close would wait for it
            if request.transport is not None:
                request.transport.abort()
        return answer

    async def _take(self, request: web.BaseRequest, address: str) -> web.Response:
        places = self._piece_pushes if _is_piece(address) else self._pushes
        with places.hold(*_caller(request)) as has_place:
            if not has_place:
                return web.Response(status=503, text="busy")
            return await self._push(request, address)

    async def _push(self, request: web.BaseRequest, address: str) -> web.Response:
        if await asyncio.to_thread(self._cache.is_known, address):
            return web.Response(status=200)
        sizes, size = self._cache.welcome(address), request.content_length
        if not sizes:
            return web.Response(status=409, text="not expected")
        if size is None or size not in sizes:
            wanted = " or ".join(map(str, sorted(sizes))) if len(sizes) < _MOST_SIZES else "less"
            return web.Response(status=413, text=f"expected Content-Length {wanted}")
        quota = self._extras.quota
        sender, is_piece = _caller(request)[0], _is_piece(address)
        if quota is not None and not quota.take(sender, size, is_piece=is_piece):
            return web.Response(status=429, text="too many bytes from this address")
        return web.Response(status=await self._receive(request, address, size))

    async def _receive(self, request: web.BaseRequest, address: str, size: int) -> int:
        """Read, check and keep a push; returns the status."""
        try:
            pace = Pace(self._patience)
            async with pace.limit:
                await _ask_for_body(request)
                data = await _body(request, size, pace)
            self.tally.num_received += size
            blob = await asyncio.to_thread(self._cache.judge, address, data)
            if blob.kind in OF_FILES:  # flushed to the disk, which takes its time
                await asyncio.to_thread(self._cache.accept, blob, data)
            else:
                self._cache.accept(blob, data)
        except BlobRefusedError:
            return 422
        except (TimeoutError, asyncio.IncompleteReadError):
            return 408
        except DiskFullError:
            return 507
        return 201


class _BoundedServer(web.Server):
    """aiohttp's server with a bound on connections; it ends silent ones by its keep-alive timer."""

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401  as aiohttp has them
        super().__init__(*args, **settings)
        self._places = Places(most_connections(_MAX_CONNECTIONS))
        self._place_of: dict[RequestHandler, Place] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Take a connection, or end it at once when it finds no place."""
        super().connection_made(handler, transport)
        caller = caller_of(transport.get_extra_info("peername"))
        place = self._places.take(caller, transport.abort)
        if place is None:
            transport.abort()
        else:
            self._place_of[handler] = place

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Give the place of a connection back."""
        place = self._place_of.pop(handler, None)
        if place is not None:
            self._places.leave(place)
        super().connection_lost(handler, exc)


def _caller(request: web.BaseRequest) -> tuple[str, Callable[[], None]]:
    """Return the address that asks, and how to end its connection."""
    transport = request.transport
    if transport is None:  # it has gone: its handler ends by itself
        return UNKNOWN, _nothing
    return caller_of(transport.get_extra_info("peername")), transport.abort


def _is_local(request: web.BaseRequest) -> bool:
    """Tell whether the caller is on this machine, and speaks for nobody else, as a proxy does."""
    is_passed_on = any(name in request.headers for name in _PROXY_HEADERS)
    return is_loopback(request.remote or "") and not is_passed_on


def _is_piece(address: str) -> bool:
    return address.partition("/")[0] in OF_STATES


def _nothing() -> None:
    pass


def _range(header: str, size: int) -> range:
    """Return the bytes asked for; empty if there are none. Other kinds of Range are ignored."""
    found = _RANGE.fullmatch(header)
    if found is None:
        return range(size)
    last = min(size - 1, int(found[2])) if found[2] else size - 1
    return range(int(found[1]), last + 1)


async def _ask_for_body(request: web.BaseRequest) -> None:
    """Answer `Expect: 100-continue`: until now, the caller holds its bytes back."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself begins after this line


def _found(reading: "asyncio.Task[bytes | None]") -> bool:
    return not reading.cancelled() and reading.exception() is None and reading.result() is not None


async def _body(request: web.BaseRequest, size: int, pace: Pace) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = await request.content.read(size - len(data))
        if not chunk:
            raise asyncio.IncompleteReadError(bytes(data), size)
        data += chunk
        pace.moved(len(chunk))
    return bytes(data)


async def _send(answer: web.StreamResponse, data: memoryview, pace: Pace) -> None:
    for first in range(0, len(data), _CHUNK_BYTES):
        chunk = data[first : first + _CHUNK_BYTES]
        await answer.write(chunk)
        pace.moved(len(chunk))
