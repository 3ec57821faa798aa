"""The embedded chain behind JSON-RPC: HTTP on one port, websocket on the next, loopback only.

Owns: sockets, body limits, the slot clock, the queue of each websocket.
Never: knows a method (methods/) or a notification (subscriptions.py).
Next: __main__.py runs this as a process, embedded.py launches that process.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from aiohttp import WSMsgType, hdrs, web

from troth_localnet.errors import OptionError
from troth_localnet.jsonrpc import INVALID_REQUEST, Method, handle
from troth_localnet.methods.context import Node
from troth_localnet.methods.registry import lookup
from troth_localnet.ports import bind_pair
from troth_localnet.subscriptions import Connection, SubscriptionHub
from troth_localnet.svm import Chain

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 50 * 1024
"""The default of Solana's nodes; more than a transaction or a hundred addresses ever need."""
MAX_WEBSOCKET_MESSAGE_BYTES: Final = 64 * 1024
MAX_WEBSOCKETS: Final = 256
MAX_QUEUED_NOTIFICATIONS: Final = 10_000
MAX_MISSED_SLOTS: Final = 25
"""A stall of at most so many slots is made up for; a longer one was a stop or a sleep."""
MIN_SLOT_MILLISECONDS, MAX_SLOT_MILLISECONDS = 20, 400
_JSON: Final = "application/json"
_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The address and the clock of a server.

    - port: of JSON-RPC; the websocket takes the next; 0 lets the system pick.
    - slot_milliseconds: 20 to 400, or None for time that moves on trothAdvanceSlots only.
    """

    host: str = "127.0.0.1"
    port: int = 0
    slot_milliseconds: int | None = 400

    def __post_init__(self) -> None:
        """Check the slot time."""
        value = self.slot_milliseconds
        if value is not None and not MIN_SLOT_MILLISECONDS <= value <= MAX_SLOT_MILLISECONDS:
            raise OptionError(
                f"a slot of {MIN_SLOT_MILLISECONDS} to {MAX_SLOT_MILLISECONDS} milliseconds",
                f"{value}",
                "Choose one in that range, or a stepped clock",
            )


class RpcServer:
    """Serves one Chain from the event loop it is started in.

    `start` raises BindRefusedError or PortInUseError; `stop` may be called twice.
    """

    def __init__(self, chain: Chain, config: ServerConfig | None = None) -> None:
        self.chain = chain
        self.config = config or ServerConfig()
        self._node = Node(chain)
        self._hub = SubscriptionHub(self._node)
        self._runners: list[web.AppRunner] = []
        self._clock: asyncio.Task[None] | None = None
        self._sockets: set[web.WebSocketResponse] = set()
        self.port = 0

    @property
    def rpc_url(self) -> str:
        """The address of JSON-RPC."""
        return f"http://{_bracketed(self.config.host)}:{self.port}"

    @property
    def ws_url(self) -> str:
        """The address of the websocket."""
        return f"ws://{_bracketed(self.config.host)}:{self.port + 1}"

    async def start(self) -> None:
        """Listen on both ports and start the slot clock."""
        listeners = bind_pair(self.config.host, self.config.port)
        self.port = int(listeners[0].getsockname()[1])
        for listener, routes in zip(
            listeners, (self._http_routes(), self._ws_routes()), strict=True
        ):
            app = web.Application(client_max_size=MAX_BODY_BYTES)
            app.add_routes(routes)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
            await runner.setup()
            await web.SockSite(runner, listener).start()
            self._runners.append(runner)
        self.chain.observers.append(self._hub)
        if self.config.slot_milliseconds is not None:
            self._clock = asyncio.create_task(
                self._run_clock(self.config.slot_milliseconds / 1_000)
            )
            self._clock.add_done_callback(_report_stopped_clock)

    async def stop(self) -> None:
        """Stop the clock, close every connection and both ports."""
        if self._clock is not None:
            self._clock.cancel()
            await asyncio.gather(self._clock, return_exceptions=True)
            self._clock = None
        if self._hub in self.chain.observers:
            self.chain.observers.remove(self._hub)
        for websocket in list(self._sockets):
            await websocket.close(code=1001, message=b"the chain was stopped")
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    async def _run_clock(self, seconds_per_slot: float) -> None:
        """Open slots at a steady rate; after a short stall the missed ones are opened empty.

        After a long one the chain goes on where it stood. Its clients slept or were stopped with
        it, and would have missed every window.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds_per_slot
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            num_due = max(1, int((loop.time() - due) / seconds_per_slot) + 1)
            if num_due > MAX_MISSED_SLOTS:
                num_due, due = 1, loop.time()
            self.chain.advance(num_due)
            due += num_due * seconds_per_slot

    def _http_routes(self) -> list[web.RouteDef]:
        return [web.post("/", self._answer_http), web.get("/health", self._answer_health)]

    def _ws_routes(self) -> list[web.RouteDef]:
        return [web.get("/", self._answer_websocket)]

    async def _answer_health(self, request: web.Request) -> web.Response:
        _refuse_foreign_host(request)
        return web.Response(text="ok")

    async def _answer_http(self, request: web.Request) -> web.Response:
        _refuse_foreign_host(request)
        if request.content_type != _JSON:
            # Web pages cannot send this type to another site without asking, and we never agree.
            raise web.HTTPUnsupportedMediaType(text=f"expected Content-Type {_JSON}\n")
        length = request.content_length
        if length is not None and length > MAX_BODY_BYTES:
            return _too_large()
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _too_large()
        return web.Response(text=handle(body, self._lookup), content_type=_JSON)

    def _lookup(self, name: str) -> Method | None:
        return lookup(self._node, name)

    async def _answer_websocket(self, request: web.Request) -> web.StreamResponse:
        _refuse_foreign_host(request)
        if len(self._sockets) >= MAX_WEBSOCKETS:
            raise web.HTTPServiceUnavailable(text=f"at most {MAX_WEBSOCKETS} websockets\n")
        websocket = web.WebSocketResponse(max_msg_size=MAX_WEBSOCKET_MESSAGE_BYTES, compress=False)
        await websocket.prepare(request)
        queue: asyncio.Queue[str] = asyncio.Queue(MAX_QUEUED_NOTIFICATIONS)
        connection = Connection(lambda text: _enqueue(queue, request, text))
        writer = asyncio.create_task(_write(queue, websocket))
        self._sockets.add(websocket)
        try:
            await self._read(websocket, connection)
        finally:
            self._sockets.discard(websocket)
            self._hub.drop(connection)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return websocket

    async def _read(self, websocket: web.WebSocketResponse, connection: Connection) -> None:
        def find(name: str) -> Method | None:
            return self._hub.lookup(connection, name) or self._lookup(name)

        async for message in websocket:
            if message.type is not WSMsgType.TEXT:
                continue
            reply = handle(message.data, find)
            if reply:
                connection.outbox(reply)
            self._hub.tell_if_landed(connection)


def _enqueue(queue: asyncio.Queue[str], request: web.Request, text: str) -> None:
    """Queue a text; a reader that has fallen far behind is cut off."""
    try:
        queue.put_nowait(text)
    except asyncio.QueueFull:
        logger.warning("a websocket reader is %d messages behind: closed", queue.qsize())
        if request.transport is not None:
            request.transport.abort()


async def _write(queue: asyncio.Queue[str], websocket: web.WebSocketResponse) -> None:
    while True:
        try:
            await websocket.send_str(await queue.get())
        except ConnectionError:
            return


def _report_stopped_clock(clock: asyncio.Task[None]) -> None:
    """Report a fault that stopped time: nothing else would show it."""
    if not clock.cancelled() and clock.exception() is not None:
        logger.error("the slot clock stopped", exc_info=clock.exception())


def _refuse_foreign_host(request: web.Request) -> None:
    """Refuse names that only resolve to us, as a web page's rebound domain would."""
    host = request.headers.get(hdrs.HOST, "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name not in _LOCAL_NAMES and not name.startswith("127."):
        raise web.HTTPForbidden(text="expected a loopback Host header\n")


def _too_large() -> web.Response:
    text = (
        f'{{"jsonrpc":"2.0","error":{{"code":{INVALID_REQUEST},"message":"Invalid request:'
        f' the body is over {MAX_BODY_BYTES} bytes"}},"id":null}}'
    )
    response = web.Response(status=413, text=text, content_type=_JSON)
    response.force_close()
    return response


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
