"""Opening sets over real sockets: holders that hang, lie, stop or never end; callers that pry."""

import asyncio
import contextlib
import os
import re
import sys
import tracemalloc
from pathlib import Path

import aiohttp
import pytest
from support import blobs, opened
from support.holders import Hostile, hang, ok, says

import troth_client.state.openings_store as store_module
from troth_attestation.openings import openings_root
from troth_client.runtime.files import DiskFullError
from troth_client.state.openings_store import OpeningsStore, Wanted
from troth_client.transport.errors import FetchError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

QUICK = Patience(grace_seconds=2.0, floor_bytes_per_second=1e9, hedge_seconds=0.15)
NO_HEDGE = Patience(grace_seconds=2.0, floor_bytes_per_second=1e9, hedge_seconds=30)
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


async def test_nobody_can_push_a_set_that_no_open_audit_names(ask):
    other = opened.opened(round_=8)
    status, _, _ = await ask(f"/v1/openings/{other.root.hex()}", "POST", data=other.data)
    assert status == 409
    assert (await ask(f"/v1/openings/{other.root.hex()}"))[0] == 404


PATH = f"/v1/openings/{AUDIT.root.hex()}"
WANTED = Wanted(AUDIT.root, AUDIT.sampled, is_ours=False)


@pytest.fixture
async def push(tmp_path):
    """Push bytes to a member that wants the set; returns the status and what it holds then."""
    async with participant(tmp_path) as (transport, store), aiohttp.ClientSession() as session:
        store.want([WANTED])

        async def pushing(data, path=PATH, **options):
            url = transport.endpoint + path
            async with session.post(url, data=data, **options) as answer:
                return answer.status, sorted(file.name for file in tmp_path.iterdir())

        yield pushing


async def test_a_member_keeps_and_serves_the_set_that_an_open_audit_names(push):
    status, files = await push(DATA)
    assert status == 201
    assert files == [f"9-5-{AUDIT.root.hex()}"]
    assert (await push(DATA))[0] == 200, "it has it already"


JUNK = {
    "zeros of the right size": (bytes(len(DATA)), PATH, 422),
    "one bit off": (flipped(HALF), PATH, 422),
    "one byte short": (DATA[:-1], PATH, 413),
    "one byte long": (DATA + b"x", PATH, 413),
    "far too long": (bytes(2**23), PATH, 413),
    "another audit's": (OTHER, PATH, 422 if len(OTHER) == len(DATA) else 413),
    "of no open audit": (OTHER, f"/v1/openings/{openings_root(OTHER).hex()}", 409),
}


@pytest.mark.parametrize("what", JUNK)
async def test_pushed_junk_is_refused_and_leaves_nothing(what, push):
    data, path, wanted = JUNK[what]
    status, files = await push(data, path, expect100=True)
    assert status == wanted
    assert files == []


async def test_a_push_without_end_or_length_is_not_read(push):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 2**16
            yield bytes(2**16)

    with contextlib.suppress(aiohttp.ClientError):
        assert (await push(endless()))[0] == 413
    assert sent < 2**24


async def test_so_many_pushes_at_once_leave_one_set(push):
    async def one():
        with contextlib.suppress(aiohttp.ClientError):  # the server ends a connection it refuses
            return (await push(DATA))[0]

    statuses = set(await asyncio.gather(*(one() for _ in range(40))))
    assert 201 in statuses
    assert statuses <= {200, 201, 503, None}
    assert (await push(DATA))[1] == [f"9-5-{AUDIT.root.hex()}"]


async def test_a_full_disk_refuses_a_push_and_goes_on_serving(push, monkeypatch):
    def full(*_args):
        raise DiskFullError("room", "none", "")

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "atomic_write", full)
        status, files = await push(DATA)
        assert status == 507
        assert files == []
    assert (await push(DATA))[0] == 201


class Shows:
    """Opening sets that are always there."""

    def shown(self, _root):
        return DATA


async def test_a_refused_set_is_not_uploaded():
    """A holder that says no at once costs its caller a header, not a mebibyte."""
    bodies = []

    async def refuse(server, writer, head):
        assert "Expect: 100-continue" in head
        await asyncio.sleep(0.1)
        bodies.append(server.num_unread())
        writer.write(b"HTTP/1.1 409 C\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async with Hostile(refuse) as holder, http_transport("127.0.0.1", 0, patience=QUICK) as ours:
        ours.show(Shows())
        (result,) = await ours.offer(AUDIT.blob, [holder.endpoint])
    assert type(result.error).__name__ == "HolderRefusedError"
    assert bodies == [0]


@pytest.mark.parametrize("behave", [hang, says(b"nonsense\r\n\r\n"), says()])
async def test_a_hostile_receiver_keeps_nobody(behave):
    async with Hostile(behave) as holder, http_transport("127.0.0.1", 0, patience=QUICK) as ours:
        ours.show(Shows())
        async with asyncio.timeout(30):
            (result,) = await ours.offer(AUDIT.blob, [holder.endpoint])
    assert result.error is not None


async def test_a_target_that_listens_nowhere_is_served_by_whom_it_pushed_to(tmp_path):
    """It announces an address that leads nowhere; it reaches the others, they never reach it."""
    nowhere = "http://127.0.0.1:9"
    async with (
        http_transport("127.0.0.1", 0, advertised=nowhere, patience=QUICK) as target,
        participant(tmp_path / "keeper") as (keeper, kept),
        participant(tmp_path / "seat") as (seat, judged),
    ):
        store = OpeningsStore(tmp_path / "target")
        store.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
        target.show(store)
        kept.want([WANTED])
        with pytest.raises(FetchError):
            await fetch(seat, judged, target.endpoint)
        (result,) = await target.offer(AUDIT.blob, [keeper.endpoint])
        assert result.error is None
        assert await fetch(seat, judged, target.endpoint, keeper.endpoint) == DATA


PUSHER = """
import asyncio, sys
from pathlib import Path
from support import opened
from troth_client.state.openings_store import OpeningsStore
from troth_client.transport.http import http_transport

async def push():
    audit, store = opened.opened(), OpeningsStore(Path(sys.argv[1]))
    store.make(audit.sampled, audit.after, audit.before)
    async with http_transport("127.0.0.1", 0) as transport:
        transport.show(store)
        (result,) = await transport.offer(audit.blob, [sys.argv[2]])
        print(transport.endpoint if result.error is None else result.error, flush=True)
        await asyncio.sleep(600)

asyncio.run(push())
"""


async def test_kill_9_of_the_target_after_its_push_takes_nothing_from_its_judges(tmp_path):
    paths = os.pathsep.join([str(Path(opened.__file__).parent.parent), *sys.path])
    async with (
        participant(tmp_path / "keeper") as (keeper, kept),
        participant(tmp_path / "seat") as (seat, judged),
    ):
        kept.want([WANTED])
        target = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PUSHER, str(tmp_path / "target"), keeper.endpoint),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
        )
        endpoint = (await target.stdout.readline()).decode().strip()
        target.kill()
        await target.wait()
        assert endpoint.startswith("http://127.0.0.1:"), endpoint
        assert await fetch(seat, judged, endpoint, keeper.endpoint) == DATA
