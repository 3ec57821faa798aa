"""One address asks for too much of our server: callers from other addresses notice nothing."""

import asyncio
import contextlib

import pytest
from support import blobs
from yarl import URL

from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport
from troth_client.transport.places import Places

FLOOD, HONEST = "127.0.0.1", "127.0.0.2"
BLOB, DATA = blobs.payload(leaves=40)
PATIENT = Patience(grace_seconds=60)
SOON = 20  # long before a silent caller would lose its place
"""Nothing is cut off for its slowness here: only fairness can help the honest caller."""


@pytest.fixture
async def ours():
    async with http_transport("127.0.0.1", 0, patience=PATIENT) as one:
        one.hold(BLOB, DATA)
        one.release(BLOB.round)
        yield one


@contextlib.asynccontextmanager
async def flood(transport, num, said=b""):
    """So many connections from one address, which say something and then read nothing."""
    port, opened = URL(transport.endpoint).port, []
    try:
        for _ in range(num):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
            writer.transport.pause_reading()
            opened.append((reader, writer))
            writer.write(said)
            await writer.drain()
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def honest_fetch(transport):
    """Fetch from another source address; return the bytes."""
    source = (HONEST, 0)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", URL(transport.endpoint).port, local_addr=source
    )
    request = f"GET /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head
    data = await reader.readexactly(len(DATA))
    writer.close()
    return data


LARGE, LARGE_DATA = blobs.payload(leaves=8 * 1024, seed=3)
ASKING = f"GET /v1/{LARGE.address} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
FLOODS = pytest.mark.parametrize(
    ("num", "said"), [(600, b""), (400, ASKING)], ids=["600 silent", "400 asking"]
)
"""Both are more than the server has places for: 512 for connections, and 64 for readers.

400 connections that say nothing at all leave places for others, with or without fairness.
"""


@FLOODS
async def test_connections_from_one_address_delay_nobody(ours, num, said):
    ours.hold(LARGE, LARGE_DATA)
    async with flood(ours, num, said), asyncio.timeout(SOON):
        assert await honest_fetch(ours) == DATA


@FLOODS
async def test_the_same_connections_keep_others_out_where_nobody_gives_up_a_place(
    ours, num, said, monkeypatch
):
    """The test above can fail: it tells a fair server from one with limits only."""
    monkeypatch.setattr(Places, "_displace", lambda *_: False)
    ours.hold(LARGE, LARGE_DATA)
    async with flood(ours, num, said):
        with pytest.raises((TimeoutError, ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(honest_fetch(ours), 1)


async def test_readers_that_never_read_block_nobody(ours):
    ours.hold(LARGE, LARGE_DATA)
    async with flood(ours, 100, ASKING), asyncio.timeout(SOON):
        for _ in range(8):
            assert await honest_fetch(ours) == DATA


async def test_pushes_that_stall_block_no_push_from_elsewhere(ours):
    wanted, data = blobs.payload(leaves=2, seed=4)
    ours.expect(wanted, len(data), bytes)
    head = f"POST /v1/{wanted.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    async with flood(ours, 20, head.encode()), asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", URL(ours.endpoint).port, local_addr=(HONEST, 0)
        )
        writer.write(head.encode() + data)
        assert b" 201 " in await reader.readuntil(b"\r\n\r\n")
        writer.close()
