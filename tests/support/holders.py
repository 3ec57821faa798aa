"""A holder that is anybody's program: a TCP server that says what it likes."""

import asyncio
import contextlib


class Hostile:
    """A TCP server that reads a request head and then runs `behave(writer, head)`."""

    def __init__(self, behave):
        self.behave = behave
        self.heads = []
        self.sent = 0
        self.over = asyncio.Event()
        self.answers = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.over.set()
        await asyncio.gather(*self.answers)

    async def answer(self, reader, writer):
        """Behave in a task of our own, so that the end of a test is no error of asyncio's."""
        behaving = asyncio.create_task(self.converse(reader, writer))
        self.answers.append(asyncio.create_task(self.until_over(behaving, writer)))

    async def until_over(self, behaving, writer):
        over = asyncio.create_task(self.over.wait())
        await asyncio.wait([behaving, over], return_when=asyncio.FIRST_COMPLETED)
        for task in (behaving, over):
            task.cancel()
        await asyncio.gather(behaving, over, return_exceptions=True)
        writer.close()

    def num_unread(self):
        """How many bytes the caller has sent behind the head by now."""
        return len(self.reader._buffer)

    async def converse(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.reader = reader
            await self.behave(self, writer, self.heads[-1])
            await writer.drain()


def ok(length, extra=""):
    return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{extra}\r\n".encode()


def says(*parts):
    async def behave(_, writer, __):
        for part in parts:
            writer.write(part)

    return behave


async def hang(*_):
    await asyncio.Event().wait()
