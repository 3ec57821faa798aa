"""A TCP proxy on one line, with troubles that change while it runs.

Owns: one listening port, the connections through it, the count of what passed.
Never: understands JSON-RPC (`rpc_proxy.py` does) or chooses a trouble (`schedule.py` does).
Next: `trouble.py` for the effects.

The port stays taken while the proxy refuses: a second socket is bound to it and never listens. So
no other program can slip in, and a caller sees a refused connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Self

from troth_simulation.faults.trouble import ANSWERS, Effect, Trouble

CHUNK_BYTES: Final = 64 * 1024
_METHODS: Final = (b"GET ", b"HEAD ", b"POST ")
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER on, zero seconds: closing sends a reset."""


@dataclass(slots=True)
class Traffic:
    """Counts of requests and bytes by name, up from the caller and down to it.

    Names are JSON-RPC methods at a node, HTTP methods with the kind of blob at an endpoint.
    """

    requests: Counter[str] = field(default_factory=Counter)
    bytes_up: Counter[str] = field(default_factory=Counter)
    bytes_down: Counter[str] = field(default_factory=Counter)
    num_connections: int = 0

    @property
    def num_bytes(self) -> int:
        """All bytes in both directions."""
        return self.bytes_up.total() + self.bytes_down.total()


class TcpProxy:
    """Listens on a loopback port, or another address of ours, and passes bytes to `upstream`.

    `set` changes what is wrong with the line, for open connections too. `seed` decides which bits
    are wrong. Use it as an async context manager; `port` is known once started.
    """

    def __init__(
        self, upstream: tuple[str, int], *, host: str = "127.0.0.1", port: int = 0, seed: int = 0
    ) -> None:
        self.upstream = upstream
        self.host, self.port = host, port
        self.traffic = Traffic()
        self._draw = random.Random(seed)
        self._trouble: Trouble | None = None
        self._changed = asyncio.Event()
        self._free_at = {"up": 0.0, "down": 0.0}
        self._holder: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address for HTTP callers."""
        return f"http://{self.host}:{self.port}"

    async def set(self, trouble: Trouble | None) -> None:
        """Let the line have this trouble from now on; None: it is fine.

        Raises ValueError for an effect on a node's answers.
        """
        if trouble is not None and trouble.effect in ANSWERS:
            raise ValueError(
                f"expected an effect on a line, found {trouble.effect}: RpcProxy has it"
            )
        self._trouble = trouble
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        effect = None if trouble is None else trouble.effect
        if effect in (Effect.REFUSE, Effect.RESET):
            self._cut()
        if effect is Effect.REFUSE:
            self._close()
        elif self._server is None:
            await self._listen()

    async def __aenter__(self) -> Self:
        """Take the port and listen; OSError if it is not free."""
        self._holder = _bound(self.host, self.port)
        self.port = int(self._holder.getsockname()[1])
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cut every connection and give the port back."""
        self._close()
        self._cut()
        await asyncio.gather(*self._open, return_exceptions=True)
        if self._holder is not None:
            self._holder.close()

    async def _listen(self) -> None:
        listener = _bound(self.host, self.port)
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=CHUNK_BYTES)

    def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _cut(self) -> None:
        for one in self._open:
            one.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection in a task of its own, so that `set` can cut it."""
        self.traffic.num_connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sides = [writer]
        try:
            if not self._has(Effect.RESET):
                await self._hold("up", 0)
                above, up = await asyncio.open_connection(*self.upstream, limit=CHUNK_BYTES)
                sides.append(up)
                await self._pump_both((reader, up), (above, writer))
                for side in sides:
                    side.close()
        except* OSError:
            pass  # nobody listens above, or one side is gone: the other one sees a reset
        finally:
            for side in sides:
                _drop(side)

    async def _pump_both(
        self,
        up: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        down: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Pass bytes both ways until both sides have ended; OSError if one breaks off."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(*up, "up"))
            group.create_task(self._pump(*down, "down"))

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str
    ) -> None:
        """Pass bytes one way until either side ends."""
        name = "other"
        while chunk := await reader.read(CHUNK_BYTES):
            if way == "up" and chunk.startswith(_METHODS):
                name = _request_name(chunk)
                self.traffic.requests[name] += 1
            await self._hold(way, len(chunk))
            counter = self.traffic.bytes_up if way == "up" else self.traffic.bytes_down
            counter[name if way == "up" else "answers"] += len(chunk)
            writer.write(self._damaged(chunk) if way == "down" else chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _hold(self, way: str, num_bytes: int) -> None:
        """Wait for as long as the trouble makes these bytes wait."""
        while self._has(Effect.STALL):
            await self._changed.wait()
        trouble = self._trouble
        if trouble is None:
            return
        if trouble.effect is Effect.DELAY:
            await asyncio.sleep(trouble.amount)
        elif trouble.effect is Effect.RATE:
            now = asyncio.get_running_loop().time()
            self._free_at[way] = max(now, self._free_at[way]) + num_bytes / trouble.amount
            with contextlib.suppress(TimeoutError):
                # The end of the trouble frees what still waits.
                await asyncio.wait_for(self._changed.wait(), self._free_at[way] - now)

    def _damaged(self, chunk: bytes) -> bytes:
        trouble = self._trouble
        if trouble is None or trouble.effect is not Effect.CORRUPT:
            return chunk
        if self._draw.random() >= trouble.amount:
            return chunk
        damaged = bytearray(chunk)
        damaged[self._draw.randrange(len(damaged))] ^= 1 << self._draw.randrange(8)
        return bytes(damaged)

    def _has(self, effect: Effect) -> bool:
        return self._trouble is not None and self._trouble.effect is effect


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address that others of our process may share."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.setblocking(False)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _request_name(chunk: bytes) -> str:
    """Return `GET payload` for `GET /v1/payload/…`."""
    method, _, rest = chunk[:80].partition(b" ")
    parts = rest.split(b" ")[0].split(b"/")
    kind = parts[2].decode("ascii", "replace") if len(parts) > 2 else ""
    return f"{method.decode('ascii', 'replace')} {kind}".rstrip()


def _drop(writer: asyncio.StreamWriter) -> None:
    """End a connection with a reset, unless it is closing in order."""
    if writer.transport.is_closing():
        return
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
