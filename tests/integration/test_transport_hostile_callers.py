"""A caller is anybody's program, too. Each test says what it does to our embedded server."""

import asyncio
import contextlib
import socket
from dataclasses import replace

import aiohttp
import pytest
from support import blobs
from yarl import URL

from troth_client.transport import server
from troth_client.transport.errors import EndpointError, EndpointInUseError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

QUICK = Patience(grace_seconds=0.4, floor_bytes_per_second=1e9)
BLOB, DATA = blobs.payload(leaves=40)


@pytest.fixture
async def ours():
    async with http_transport("127.0.0.1", 0, patience=QUICK) as one:
        one.release(5)
        yield one


@pytest.fixture
async def caller():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield session


def url(transport, blob=BLOB):
    return f"{transport.endpoint}/v1/{blob.address}"


async def raw(transport, data):
    """Open a connection, send bytes, return what comes back until the server ends it."""
    port = URL(transport.endpoint).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionResetError):
                return await reader.read()
            return b""
    finally:
        writer.close()


async def test_ranges_are_those_of_http(ours, caller):
    ours.hold(BLOB, DATA)
    size = len(DATA)
    expected = {
        None: (200, DATA, None),
        "bytes=0-": (200, DATA, None),
        "bytes=100-": (206, DATA[100:], f"bytes 100-{size - 1}/{size}"),
        "bytes=100-199": (206, DATA[100:200], f"bytes 100-199/{size}"),
        "bytes=100-999999999": (206, DATA[100:], f"bytes 100-{size - 1}/{size}"),
        f"bytes={size}-": (416, b"", f"bytes */{size}"),
        "bytes=200-100": (416, b"", f"bytes */{size}"),
        "bytes=99999999999999999999-": (200, DATA, None),
        "bytes=-5": (200, DATA, None),
        "bytes=0-1,5-6": (200, DATA, None),
        "lines=1-2": (200, DATA, None),
    }
    for header, (status, body, span) in expected.items():
        headers = {"Range": header} if header else {}
        async with caller.get(url(ours), headers=headers) as answer:
            assert answer.status == status, header
            assert await answer.read() == body, header
            assert answer.headers.get("Content-Range") == span
    async with caller.head(url(ours)) as answer:
        assert answer.status == 200
        assert answer.content_length == size


async def test_unknown_and_unreleased_blobs_look_the_same(ours, caller):
    held, data = blobs.payload(round_=6, seed=6)
    ours.hold(held, data)
    answers = []
    for blob in (held, BLOB):
        async with caller.get(url(ours, blob)) as answer:
            answers.append((answer.status, await answer.read(), sorted(answer.headers)))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/payload/",
        "/v1/payload/" + "0" * 63,
        "/v1/payload/" + "A" * 64,
        "/v1/other/" + "0" * 64,
        "/v1/payload/../../etc/passwd",
        "/v1/payload/%2e%2e%2fetc",
        "/v2/payload/" + "0" * 64,
    ],
)
async def test_other_paths_do_not_exist(ours, caller, path):
    async with caller.get(ours.endpoint + path) as answer:
        assert answer.status == 404


async def test_other_methods_are_refused(ours, caller):
    async with caller.put(url(ours), data=b"x") as answer:
        assert answer.status == 405
    async with caller.delete(url(ours)) as answer:
        assert answer.status == 405


async def test_a_push_that_nobody_expects_is_refused_without_reading_it(ours):
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {10 * 2**30}\r\n\r\n"
    answer = await raw(ours, head.encode() + DATA)
    assert b" 409 " in answer
    assert b"Connection: close" in answer


async def test_a_refused_push_that_came_whole_costs_no_connection(ours):
    blob, data = blobs.header()
    head = f"POST /v1/{blob.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    assert (await raw(ours, (head.encode() + data) * 3)).count(b" 409 ") == 3


async def test_a_refused_push_that_was_only_announced_ends_the_connection(ours):
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    answer = await raw(ours, f"{head}Content-Length: {len(DATA)}\r\n\r\n".encode() * 2)
    assert answer.count(b" 409 ") == 1
    assert b"Connection: close" in answer


async def test_a_body_for_a_path_that_does_not_exist_is_not_read(ours):
    head = f"POST /v1/other HTTP/1.1\r\nHost: x\r\nContent-Length: {10 * 2**30}\r\n\r\n"
    assert b" 404 " in await raw(ours, head.encode() + DATA)


@pytest.mark.parametrize("length", [0, len(DATA) - 1, len(DATA) + 1, 10 * 2**30])
async def test_a_push_of_another_size_is_refused_without_reading_it(ours, length):
    ours.expect(BLOB, len(DATA), bytes)
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
    assert b" 413 " in await raw(ours, head.encode())


async def test_a_push_without_a_length_is_refused(ours):
    ours.expect(BLOB, len(DATA), bytes)
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in await raw(ours, head.encode() + b"5\r\nhello\r\n")


async def test_pushed_bytes_are_kept_only_if_they_pass_every_check(ours, caller):
    signed, signed_data = blobs.header()
    ours.expect(signed, len(signed_data), blobs.signed)
    ours.expect(BLOB, len(DATA), bytes)
    wrong_bytes = DATA[:-1] + bytes([DATA[-1] ^ 1])
    wrong_signature = signed_data[:-1] + b"x"
    tries = [(BLOB, wrong_bytes, 422), (signed, wrong_signature, 422)]
    tries += [(BLOB, DATA, 201), (signed, signed_data, 201), (BLOB, DATA, 200)]
    for blob, data, status in tries:
        async with caller.post(url(ours, blob), data=data) as answer:
            assert answer.status == status
        async with caller.get(url(ours, blob)) as answer:
            assert answer.status == (404 if status == 422 else 200)


async def test_a_pushed_gzip_bomb_is_only_bytes(ours, caller):
    ours.expect(BLOB, len(DATA), bytes)
    headers = {"Content-Encoding": "gzip"}
    async with caller.post(url(ours), data=bytes(len(DATA)), headers=headers) as answer:
        assert answer.status == 422


async def test_a_push_that_stalls_is_given_up(ours):
    ours.expect(BLOB, len(DATA), bytes)
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(DATA)}\r\n\r\n"
    assert b" 408 " in await raw(ours, head.encode() + DATA[:100])


async def test_pushes_beyond_the_bound_are_told_to_come_back(ours, caller, monkeypatch):
    ours.expect(BLOB, len(DATA), bytes)
    head = f"POST /v1/{BLOB.address} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(DATA)}\r\n\r\n"
    stalled = [asyncio.create_task(raw(ours, head.encode())) for _ in range(20)]
    answers = await asyncio.gather(*stalled)
    assert sum(b" 503 " in answer for answer in answers) == 12
    assert sum(b" 408 " in answer for answer in answers) == 8
    async with caller.post(url(ours), data=DATA) as answer:
        assert answer.status == 201


@pytest.mark.parametrize("said", [b"", b"GET /v1/payl", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_a_caller_that_never_finishes_its_request_is_cut_off(ours, said):
    assert await raw(ours, said) == b""


async def test_endless_headers_are_refused(ours):
    head = b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000
    assert b" 400 " in await raw(ours, head)


async def test_a_caller_that_stops_reading_is_cut_off(ours):
    large, data = blobs.payload(leaves=32 * 1024, seed=9)
    ours.hold(large, data)
    port = URL(ours.endpoint).port
    with socket.create_connection(("127.0.0.1", port)) as lazy:
        lazy.setblocking(False)
        request = f"GET /v1/{large.address} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        await asyncio.get_running_loop().sock_sendall(lazy, request)
        await asyncio.sleep(4 * QUICK.grace_seconds)
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while part := await asyncio.get_running_loop().sock_recv(lazy, 2**20):
                received += len(part)
    assert received < len(data) - 2**21  # more than that may lie in the buffers of the sockets


async def test_connections_beyond_the_bound_are_ended_at_once(caller, monkeypatch):
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 4)
    patience = replace(QUICK, grace_seconds=4.0)  # far more than a loaded machine needs
    async with http_transport("127.0.0.1", 0, patience=patience) as ours:
        ours.release(5)
        ours.hold(BLOB, DATA)
        waiting = {asyncio.create_task(raw(ours, b"")) for _ in range(20)}
        async with asyncio.timeout(patience.grace_seconds / 2):
            while len(waiting) > 4:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) == 4
        await asyncio.wait(waiting)
        async with caller.get(url(ours)) as answer:
            assert await answer.read() == DATA


async def test_a_port_in_use_is_named():
    async with http_transport("127.0.0.1", 0) as first:
        port = URL(first.endpoint).port
        with pytest.raises(EndpointInUseError, match=rf"127\.0\.0\.1:{port}.*another port"):
            async with http_transport("127.0.0.1", port):
                pass
    async with http_transport("127.0.0.1", port) as second:
        assert second.endpoint == first.endpoint


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host.invalid"])
async def test_an_address_of_another_machine_is_refused(host):
    with pytest.raises(EndpointError, match=r"192|invalid"):
        async with http_transport(host, 0):
            pass


async def test_blobs_in_a_folder_are_served_over_http(tmp_path):
    async with http_transport("127.0.0.1", 0, folder=tmp_path) as first:
        first.hold(BLOB, DATA)
    async with (
        http_transport("127.0.0.1", 0, folder=tmp_path) as again,
        http_transport("127.0.0.1", 0) as taker,
    ):
        again.release(5)
        assert await taker.fetch(BLOB, [again.endpoint], len(DATA), bytes) == DATA
