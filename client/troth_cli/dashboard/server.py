"""The server of the page: files, the state of the run, transactions on demand.

Owns: the routes, who may ask, the headers. Never: reads the chain; `feed.py` does.
Next: `feed.py`.

    GET /                            the page, and its files
    GET /api/events                  server-sent events `state`: all first, then what changed
    GET /api/state                   the same state once, as JSON
    GET /api/transactions/SUBJECT    those of participant/INDEX or audit/ROUND/TARGET/KIND

The server listens on loopback only. A page of another origin cannot read it: no CORS header is
sent, and a request that names another host is refused (DNS rebinding). Such a page cannot keep it
busy either: what a browser asks for on another page's behalf is refused.
"""

import json
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Final

from aiohttp import web

from troth_cli.dashboard.feed import Feed, UnknownSubjectError
from troth_client.telemetry.loopback import names_loopback
from troth_client.transport.errors import EndpointInUseError
from troth_coordinator.chain.errors import ChainError

HOST: Final = "127.0.0.1"
MAX_STREAMS: Final = 32
"""Pages that follow at the same time; browsers open one stream each."""
_KINDS: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DashboardServer:
    """Serves one feed on a port of loopback. `port` 0 lets the system pick one."""

    def __init__(self, feed: Feed, port: int) -> None:
        self._feed = feed
        self._port = port
        self._num_streams = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> str:
        """Listen; return the address of the page. Raises EndpointInUseError."""
        app = web.Application(middlewares=[self._checked])
        app.add_routes(
            [
                web.get("/", self._file),
                web.get("/{name:[a-z]+\\.(?:css|js)}", self._file),
                web.get("/api/events", self._events),
                web.get("/api/state", self._state),
                web.get("/api/transactions/{subject:.+}", self._transactions),
            ]
        )
        # Open pages follow until they are closed: nobody waits for them at the end.
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=0.5
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise EndpointInUseError(
                f"a free port at {HOST}:{self._port}",
                error.strerror or str(error),
                "Name another one with --port, or leave it out.",
            ) from error
        self._port = self._runner.addresses[0][1]
        return f"http://{HOST}:{self._port}/"

    async def stop(self) -> None:
        """Stop serving; may be called twice."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other hosts and other pages, and give every answer the headers."""
        if not names_loopback(request.host):
            return web.Response(status=421, text="This server answers for loopback only.\n")
        # A browser says whose page asks; other programs say nothing, and may ask.
        site = request.headers.get("Sec-Fetch-Site", "none")
        if request.path.startswith("/api/") and site not in ("none", "same-origin"):
            return web.Response(status=403, text="This server answers its own page only.\n")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        found = resources.files("troth_cli.dashboard") / "static" / name
        if not found.is_file():
            raise web.HTTPNotFound
        kind = _KINDS[name[name.index(".") :]]
        return web.Response(body=found.read_bytes(), content_type=kind, charset="utf-8")

    async def _state(self, _request: web.Request) -> web.Response:
        return _json(self._feed.state())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Send the whole state, then each change, until the page is closed."""
        if self._num_streams >= MAX_STREAMS:
            return _json({"error": f"{MAX_STREAMS} pages follow already"}, status=503)
        answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._num_streams += 1
        try:
            await answer.prepare(request)
            async for state in self._feed.follow():
                await answer.write(f"event: state\ndata: {json.dumps(state)}\n\n".encode())
        except (TimeoutError, ConnectionError):
            pass  # the page was closed
        finally:
            self._num_streams -= 1
        return answer

    async def _transactions(self, request: web.Request) -> web.Response:
        try:
            return _json(await self._feed.transactions(request.match_info["subject"]))
        except UnknownSubjectError as error:
            return _json({"error": str(error)}, status=404)
        except ChainError as error:
            return _json({"error": f"The node did not answer: {error}"}, status=502)


def _json(values: object, status: int = 200) -> web.Response:
    return web.json_response(values, status=status)
