"""Opening sets over real sockets: holders that hang, lie, stop or never end; callers that pry."""

import asyncio
import contextlib
import re
import tracemalloc

import aiohttp
import pytest
from support import blobs, opened
from support.holders import Hostile, hang, ok, says

from troth_client.state.openings_store import OpeningsStore
from troth_client.transport.errors import FetchError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

QUICK = Patience(grace_seconds=0.6, floor_bytes_per_second=1e9, hedge_seconds=0.15)
NO_HEDGE = Patience(grace_seconds=0.6, floor_bytes_per_second=1e9, hedge_seconds=30)
AUDIT = opened.opened()
DATA = AUDIT.data
HALF = len(DATA) // 2
OTHER = opened.opened(round_=8).data


async def half_then_hang(_, writer, __):
    writer.write(ok(len(DATA)) + DATA[:HALF])
    await writer.drain()
    await hang()


async def without_end(self, writer, _):
    """Chunked, so that no length gives it away; it begins as the true set does."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for part in (DATA, *[bytes(2**16)] * 2**17):
        writer.write(b"%x\r\n" % len(part) + part + b"\r\n")
        await writer.drain()
        self.sent += len(part)


def flipped(at):
    changed = bytearray(DATA)
    changed[at] ^= 1
    return bytes(changed)


BEHAVIOURS = {
    "hangs": (hang, "HolderSilentError"),
    "stops half-way and hangs": (half_then_hang, "HolderSilentError"),
    "closes half-way": (says(ok(len(DATA)), DATA[:HALF]), "HolderTruncatedError"),
    "announces half": (says(ok(HALF), DATA[:HALF]), "HolderLiedError"),
    "announces one byte more": (says(ok(len(DATA) + 1), DATA + b"x"), "HolderLiedError"),
    "sends without end": (without_end, "HolderLiedError"),
    "changes the head": (says(ok(len(DATA)), flipped(40)), "HolderLiedError"),
    "changes a value": (says(ok(len(DATA)), flipped(HALF)), "HolderLiedError"),
    "changes a path": (says(ok(len(DATA)), flipped(-1)), "HolderLiedError"),
    "sends another audit's set": (says(ok(len(OTHER)), OTHER), "HolderLiedError"),
    "sends nothing": (says(ok(0)), "HolderLiedError"),
    "says it has none": (says(b"HTTP/1.1 404 N\r\nContent-Length: 0\r\n\r\n"), "HolderLacksError"),
    "redirects": (
        says(b"HTTP/1.1 302 F\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
        "HolderLiedError",
    ),
}


@contextlib.asynccontextmanager
async def participant(folder, patience=QUICK):
    """A transport with its openings store."""
    store = OpeningsStore(folder)
    async with http_transport("127.0.0.1", 0, patience=patience) as transport:
        transport.show(store)
        yield transport, store


@contextlib.asynccontextmanager
async def trainer(folder):
    async with participant(folder) as (transport, store):
        store.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
        yield transport


async def fetch(transport, store, *holders):
    async with asyncio.timeout(10):
        return await store.fetch(transport, AUDIT.sampled, AUDIT.root, holders)


@pytest.mark.parametrize("what", BEHAVIOURS)
async def test_a_hostile_holder_costs_a_try_and_leaves_nothing(what, tmp_path):
    behave, error = BEHAVIOURS[what]
    async with Hostile(behave) as bad, participant(tmp_path) as (transport, store):
        with pytest.raises(FetchError) as found:
            await fetch(transport, store, bad.endpoint)
        assert blobs.reasons(found.value) == {bad.endpoint: error}
        assert list(tmp_path.iterdir()) == []
        (head,) = bad.heads
        assert head.startswith(f"GET /v1/openings/{AUDIT.root.hex()} HTTP/1.1\r\n")


@pytest.mark.parametrize("what", BEHAVIOURS)
async def test_one_honest_holder_behind_a_hostile_one_is_enough(what, tmp_path):
    behave, _ = BEHAVIOURS[what]
    async with (
        Hostile(behave) as bad,
        trainer(tmp_path / "trainer") as honest,
        participant(tmp_path / "seat") as (transport, store),
    ):
        assert await fetch(transport, store, bad.endpoint, honest.endpoint) == DATA
        assert store.find(9, 5) == AUDIT.root


async def test_a_flood_is_cut_off_at_the_size_that_the_draw_fixes(tmp_path):
    async with Hostile(without_end) as bad, participant(tmp_path) as (transport, store):
        tracemalloc.start()
        with pytest.raises(FetchError):
            await fetch(transport, store, bad.endpoint)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert bad.sent < 64 * 2**20  # as much as the socket buffers of both sides hold
    assert peak < 16 * 2**20


@pytest.mark.parametrize("dies", [half_then_hang, says(ok(len(DATA)), DATA[:HALF])])
async def test_a_download_goes_on_at_our_own_server_where_another_holder_died(dies, tmp_path):
    async with (
        Hostile(dies) as first,
        trainer(tmp_path / "trainer") as second,
        participant(tmp_path / "seat", NO_HEDGE) as (transport, store),
    ):
        assert await fetch(transport, store, first.endpoint, second.endpoint) == DATA


async def test_only_the_rest_is_asked_for(tmp_path):
    """The second holder cannot deliver the first half, and need not."""

    async def rest(_, writer, head):
        start = int(re.search(r"Range: bytes=(\d+)-", head)[1])
        span = f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA)}"
        head = f"HTTP/1.1 206 P\r\nContent-Length: {len(DATA) - start}\r\n{span}\r\n\r\n"
        writer.write(head.encode() + DATA[start:])

    stops = says(ok(len(DATA)), DATA[:HALF])
    async with (
        Hostile(stops) as first,
        Hostile(rest) as second,
        participant(tmp_path, NO_HEDGE) as (transport, store),
    ):
        assert await fetch(transport, store, first.endpoint, second.endpoint) == DATA


async def test_a_set_that_was_damaged_at_home_is_fetched_again(tmp_path):
    async with trainer(tmp_path / "a") as holder, participant(tmp_path / "b") as (transport, store):
        await fetch(transport, store, holder.endpoint)
        (file,) = (tmp_path / "b").iterdir()
        file.write_bytes(flipped(HALF))
        assert await fetch(transport, store, holder.endpoint) == DATA


@pytest.fixture
async def ask(tmp_path):
    """Ask a trainer's server for a path; returns status, body and headers."""
    async with trainer(tmp_path) as server, aiohttp.ClientSession() as session:

        async def asking(path, method="GET", **options):
            async with session.request(method, server.endpoint + path, **options) as answer:
                return answer.status, await answer.read(), answer.headers

        yield asking


async def test_ranges_of_a_set_are_those_of_http(ask):
    path = f"/v1/openings/{AUDIT.root.hex()}"
    size = len(DATA)
    status, whole, _ = await ask(path)
    assert status == 200
    assert whole == DATA
    status, part, head = await ask(path, headers={"Range": "bytes=100-199"})
    assert status == 206
    assert part == DATA[100:200]
    assert head["Content-Range"] == f"bytes 100-199/{size}"
    status, part, head = await ask(path, headers={"Range": f"bytes={size}-"})
    assert status == 416
    assert part == b""
    assert head["Content-Range"] == f"bytes */{size}"
    status, part, head = await ask(path, "HEAD")
    assert status == 200
    assert part == b""
    assert head["Content-Length"] == str(size)


async def test_nothing_beside_the_set_can_be_asked_for(ask):
    """The drawn tiles are all of u that ever leaves: there is no path to any other."""
    root, u = AUDIT.root.hex(), AUDIT.after.tree
    for path in (
        f"/v1/openings/{u.root.hex()}",
        f"/v1/openings/{u.levels[0][0].hex()}",
        f"/v1/openings/{root}/0",
        f"/v1/openings/{root.upper()}",
        f"/v1/openings/9-5-{root}",
        f"/v1/openings/../{root}",
        "/v1/openings/9/5",
        "/v1/openings/",
        "/v1/openings",
        "/openings/9/5",
        f"/v1/payload/{root}",
    ):
        assert (await ask(path))[0] == 404, path


async def test_nobody_can_push_a_set(ask):
    other = opened.opened(round_=8)
    status, _, _ = await ask(f"/v1/openings/{other.root.hex()}", "POST", data=other.data)
    assert status == 409
    assert (await ask(f"/v1/openings/{other.root.hex()}"))[0] == 404
