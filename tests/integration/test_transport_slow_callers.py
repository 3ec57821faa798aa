"""Callers that are slow on purpose, or make the server work: they hold no place for long."""

import asyncio
import contextlib
import socket
import threading

import aiohttp
import pytest
from support import blobs
from yarl import URL

from troth_attestation.openings import openings_root
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

FLOOR = 2**20
SLOW = Patience(grace_seconds=0.3, floor_bytes_per_second=FLOOR)
LARGE, LARGE_DATA = blobs.payload(leaves=32 * 1024, seed=5)
"""32 MiB, for which the slowest honest caller has half a minute."""
SMALL, SMALL_DATA = blobs.payload()
SET = b"an opening set"
SET_BLOB = BlobId(0, BlobKind.OPENINGS, openings_root(SET))


class BlockedSets:
    """Opening sets on a disk that answers only when `go` is set."""

    def __init__(self):
        self.go, self.num_reads = threading.Event(), 0
        self.data = SET

    def shown(self, root):
        self.num_reads += 1
        assert self.go.wait(30)
        return self.data

    def welcome(self, _root):
        return ()


@pytest.fixture
async def ours():
    async with http_transport("127.0.0.1", 0, patience=SLOW) as one:
        one.release(5)
        yield one


@pytest.fixture
async def blocked():
    sets = BlockedSets()
    async with http_transport("127.0.0.1", 0) as one:
        one.show(sets)
        yield one, sets
        sets.go.set()


async def until_cut_off(loop, connection):
    """Say something until the other side refuses to take more, and read nothing."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while True:
            await loop.sock_sendall(connection, b"x")
            await asyncio.sleep(0.05)


async def test_a_sender_that_stalls_in_a_long_body_is_cut_off_at_once(ours):
    """It would keep one of eight places for half a minute; eight such addresses kept all."""
    ours.expect(LARGE, len(LARGE_DATA), bytes)
    reader, writer = await asyncio.open_connection("127.0.0.1", URL(ours.endpoint).port)
    head = f"POST /v1/{LARGE.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(LARGE_DATA)}"
    writer.write(head.encode() + b"\r\n\r\n" + bytes(1000))
    async with asyncio.timeout(5):
        assert b" 408 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_a_reader_that_stalls_in_a_long_body_is_cut_off_at_once(ours):
    ours.hold(LARGE, LARGE_DATA)
    loop = asyncio.get_running_loop()
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.setblocking(False)
        await loop.sock_connect(lazy, ("127.0.0.1", URL(ours.endpoint).port))
        await loop.sock_sendall(lazy, f"GET /v1/{LARGE.address} HTTP/1.1\r\n\r\n".encode())
        async with asyncio.timeout(12):
            await until_cut_off(loop, lazy)


async def test_readers_of_the_same_bytes_share_one_read_from_the_disk(blocked):
    """64 slow readers of a set of 64 MiB took 4 GiB of memory."""
    ours, sets = blocked
    async with aiohttp.ClientSession() as session:

        async def read():
            async with session.get(f"{ours.endpoint}/v1/{SET_BLOB.address}") as answer:
                return await answer.read()

        asked = [asyncio.create_task(read()) for _ in range(30)]
        async with aiohttp.ClientSession() as other, asyncio.timeout(5):
            while len(ours._wire._server._guard.connections) < 30:
                await asyncio.sleep(0)
            async with other.get(f"{ours.endpoint}/v1/x") as answer:  # all were asked before
                assert answer.status == 404
        sets.go.set()
        assert await asyncio.gather(*asked) == [SET] * 30
    assert sets.num_reads <= 2


async def test_what_was_lacking_is_looked_for_anew_by_the_next_caller(blocked):
    ours, sets = blocked
    sets.go.set()
    sets.data = None
    url = f"{ours.endpoint}/v1/{SET_BLOB.address}"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert answer.status == 404
        sets.data = SET
        async with session.get(url) as answer:
            assert await answer.read() == SET


async def test_pushes_of_known_bytes_need_a_place_too(blocked):
    """Each made the server read and hash the set that it has, as many as came."""
    ours, sets = blocked
    url = f"{ours.endpoint}/v1/{SET_BLOB.address}"
    async with aiohttp.ClientSession() as session:

        async def push():
            async with session.post(url, data=SET) as answer:
                return answer.status

        pushes = [asyncio.create_task(push()) for _ in range(20)]
        async with asyncio.timeout(5):
            answers = asyncio.as_completed(pushes)
            done = [await next(answers) for _ in range(12)]
        assert done == [503] * 12
        sets.go.set()
        assert sorted(await asyncio.gather(*pushes)) == [200] * 8 + [503] * 12


async def test_names_that_nobody_answers_for_hold_up_nothing_else(ours, monkeypatch):
    """Members may announce them. Each look-up kept one of the threads that we serve from."""
    answer, look_up = threading.Event(), socket.getaddrinfo

    def slow(host, *more, **named):
        if host.endswith(".example"):
            assert answer.wait(30)
        return look_up("127.0.0.1", *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    ours.hold(SMALL, SMALL_DATA)
    holders = [f"http://h{at}.example:9" for at in range(20)]
    async with http_transport("127.0.0.1", 0) as other, aiohttp.ClientSession() as session:
        fetches = (other.fetch(LARGE, [one], len(LARGE_DATA), bytes) for one in holders)
        asked = [asyncio.create_task(one) for one in fetches]
        try:
            honest = session.get(f"{ours.endpoint}/v1/{SMALL.address}")
            found = await asyncio.wait_for(honest, 5)
            assert await found.read() == SMALL_DATA
        finally:
            answer.set()
            await asyncio.gather(*asked, return_exceptions=True)
