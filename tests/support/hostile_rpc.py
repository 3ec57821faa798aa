"""A server on a real loopback socket that answers whatever a test tells it to."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

Request = dict[str, Any]
"""A JSON-RPC request as it was parsed."""


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + body


def reply(result: object, request: Request) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request.get("id", 0), "result": result}).encode()


class HostileServer:
    """`answer(request) -> bytes | None`: raw bytes to send back; None hangs for ever.

    With `drip_seconds` the bytes go out one at a time. `num_sent` counts what was accepted by the
    socket, so that a test can tell that a client stopped reading.
    """

    def __init__(self, answer: Callable[[Request], bytes | None], drip_seconds: float = 0) -> None:
        self.answer = answer
        self.drip_seconds = drip_seconds
        self.num_sent = 0
        self.requests: list[Request] = []

    async def __aenter__(self) -> "HostileServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        self._tasks: set[asyncio.Task[Any]] = set()
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._tasks.add(serving)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await self._one(reader, writer)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        length = next(lengths, None)
        if length is None:  # the question whether it is a websocket
            raise ConnectionError
        request = json.loads(await reader.readexactly(length))
        self.requests.append(request)
        answer = self.answer(request)
        while answer is None:
            await asyncio.Event().wait()
        step = 1 if self.drip_seconds else 1 << 16
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await writer.drain()
            self.num_sent += len(answer[start : start + step])
            if self.drip_seconds:
                await asyncio.sleep(self.drip_seconds)
        if b"Content-Length: 999999" in answer[:200]:
            raise ConnectionError
