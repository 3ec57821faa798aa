"""A TCP server that sends back what it gets, and a caller that talks to it.

Owns: both sides of one conversation. Never: a fault; the proxy between them has it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def echo_server() -> AsyncIterator[tuple[str, int]]:
    """Listen on a free port; yields the address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()


async def echoed(port: int, data: bytes) -> bytes:
    """Return what comes back for some bytes on a new connection; OSError if it breaks off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await reader.readexactly(len(data))
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the other side ended") from error
    finally:
        writer.close()
