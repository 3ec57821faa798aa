"""A holder that is anybody's program: a TCP server that says what it likes."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Self

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Behave = Callable[["Hostile", Writer, str], Awaitable[object]]
"""`behave(holder, writer, head)` answers one request."""


class Hostile:
    """A TCP server that reads a request head and then runs `behave(holder, writer, head)`."""

    def __init__(self, behave: Behave) -> None:
        self.behave = behave
        self.heads: list[str] = []
        self.sent = 0
        self.over = asyncio.Event()
        self.answers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        self.over.set()
        await asyncio.gather(*self.answers)

    async def answer(self, reader: Reader, writer: Writer) -> None:
        """Behave in a task of our own, so that the end of a test is no error of asyncio's."""
        behaving = asyncio.create_task(self.converse(reader, writer))
        self.answers.append(asyncio.create_task(self.until_over(behaving, writer)))

    async def until_over(self, behaving: asyncio.Task[None], writer: Writer) -> None:
        over = asyncio.create_task(self.over.wait())
        await asyncio.wait([behaving, over], return_when=asyncio.FIRST_COMPLETED)
        for task in (behaving, over):
            task.cancel()
        await asyncio.gather(behaving, over, return_exceptions=True)
        writer.close()

    def num_unread(self) -> int:
        """How many bytes the caller has sent behind the head by now."""
        return len(vars(self.reader)["_buffer"])

    async def converse(self, reader: Reader, writer: Writer) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.reader = reader
            await self.behave(self, writer, self.heads[-1])
            await writer.drain()


def ok(length: int, extra: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{extra}\r\n".encode()


def says(*parts: bytes) -> Behave:
    async def behave(_: Hostile, writer: Writer, __: str) -> None:
        for part in parts:
            writer.write(part)

    return behave


async def hang(*_: object) -> None:
    await asyncio.Event().wait()
