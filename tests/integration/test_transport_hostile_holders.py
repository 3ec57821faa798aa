"""A holder is anybody's program. Each test opens with what it does to whoever asks it.

Real sockets on loopback; the hostile side is a bare TCP server that says what it likes.
"""

import asyncio
import contextlib
import gzip
import re
import tracemalloc

import pytest
from support import blobs
from support.holders import Hostile, hang, ok, says

from troth_client.transport.errors import FetchError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

QUICK = Patience(grace_seconds=2.0, floor_bytes_per_second=1e9, hedge_seconds=0.15)
BUSY = Patience(grace_seconds=2, floor_bytes_per_second=1e9, hedge_seconds=0.15)
NO_HEDGE = Patience(grace_seconds=2.0, floor_bytes_per_second=1e9, hedge_seconds=30)
BLOB, DATA = blobs.payload(leaves=200)


async def half_then_hang(_, writer, __):
    writer.write(ok(len(DATA)) + DATA[: len(DATA) // 2])
    await writer.drain()
    await hang()


async def drip(_, writer, __):
    writer.write(ok(len(DATA)))
    for n in range(len(DATA)):
        writer.write(DATA[n : n + 1])
        await writer.drain()
        await asyncio.sleep(0.05)


async def ten_gigabytes(self, writer, _):
    """Chunked, so that no length gives it away."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
    for _ in range(10 * 2**30 // 65536):
        writer.write(chunk)
        await writer.drain()
        self.sent += 65536


def flipped(data):
    return data[:-1] + bytes([data[-1] ^ 1])


BEHAVIOURS = {
    "accepts and says nothing": (hang, "HolderSilentError"),
    "stalls half-way": (half_then_hang, "HolderSilentError"),
    "drips a byte now and then": (drip, "HolderSilentError"),
    "closes at once": (says(), "HolderUnreachableError"),
    "closes half-way": (says(ok(len(DATA)), DATA[:5000]), "HolderTruncatedError"),
    "flips a bit": (says(ok(len(DATA)), flipped(DATA)), "HolderLiedError"),
    "announces 10 GB": (says(ok(10 * 2**30), DATA), "HolderLiedError"),
    "announces too little": (says(ok(10), DATA[:10]), "HolderLiedError"),
    "sends 10 GB unannounced": (ten_gigabytes, "HolderLiedError"),
    "answers 500": (says(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "HolderLiedError"),
    "is not HTTP": (says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "HolderLiedError"),
    "has endless headers": (says(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000), "HolderLiedError"),
    "sends a gzip bomb": (
        says(ok(len(gzip.compress(bytes(10**7))), "Content-Encoding: gzip\r\n")),
        "HolderLiedError",
    ),
    "sends a range nobody asked for": (
        says(b"HTTP/1.1 206 P\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/5\r\n\r\nabcde"),
        "HolderLiedError",
    ),
}


@pytest.mark.parametrize("what", BEHAVIOURS)
async def test_a_hostile_holder_costs_a_try_and_is_named(what):
    behave, error = BEHAVIOURS[what]
    async with Hostile(behave) as bad, http_transport("127.0.0.1", 0, patience=QUICK) as taker:
        with pytest.raises(FetchError) as found:
            await taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes)
        assert blobs.reasons(found.value) == {bad.endpoint: error}
        assert taker.scores.faults(bad.endpoint) > 0


@pytest.mark.parametrize("what", BEHAVIOURS)
async def test_an_honest_holder_behind_a_hostile_one_is_enough(what):
    behave, _ = BEHAVIOURS[what]
    async with (
        Hostile(behave) as bad,
        http_transport("127.0.0.1", 0) as honest,
        http_transport("127.0.0.1", 0, patience=QUICK) as taker,
    ):
        honest.hold(BLOB, DATA)
        honest.release(5)
        holders = [bad.endpoint, honest.endpoint]
        async with asyncio.timeout(30):
            assert await taker.fetch(BLOB, holders, len(DATA), bytes) == DATA


async def test_ten_gigabytes_are_cut_off_at_the_size_of_the_payload():
    async with (
        Hostile(ten_gigabytes) as bad,
        http_transport("127.0.0.1", 0, patience=QUICK) as taker,
    ):
        tracemalloc.start()
        with pytest.raises(FetchError):
            await taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert bad.sent < 64 * 2**20  # as much as the socket buffers of both sides hold
    assert peak < 32 * 2**20


async def test_an_encoding_is_never_undone():
    """Decompressing a stranger's bytes would let the stranger choose our memory."""
    async with (
        Hostile(says(ok(len(DATA), "Content-Encoding: gzip\r\n"), DATA)) as odd,
        http_transport("127.0.0.1", 0, patience=QUICK) as taker,
    ):
        assert await taker.fetch(BLOB, [odd.endpoint], len(DATA), bytes) == DATA


async def test_two_holders_that_fail_side_by_side_are_both_named():
    async with (
        Hostile(hang) as slow,
        Hostile(says(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")) as broken,
        http_transport("127.0.0.1", 0, patience=QUICK) as taker,
    ):
        with pytest.raises(FetchError) as found:
            await taker.fetch(BLOB, [slow.endpoint, broken.endpoint], len(DATA), bytes)
    assert set(blobs.reasons(found.value).values()) == {
        "HolderSilentError",
        "HolderLiedError",
    }


async def test_a_stall_ends_long_before_the_time_for_the_whole_blob():
    patient = Patience(grace_seconds=0.3, floor_bytes_per_second=1000)
    async with (
        Hostile(half_then_hang) as bad,
        http_transport("127.0.0.1", 0, patience=patient) as taker,
    ):
        async with asyncio.timeout(30):
            with pytest.raises(FetchError) as found:
                await taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes)
    assert blobs.reasons(found.value) == {bad.endpoint: "HolderSilentError"}


async def test_a_dripping_holder_is_cut_off_long_before_the_time_for_the_whole_blob():
    """It sends on and on, so it is never silent; each byte gives it hardly more time."""
    patient = Patience(grace_seconds=0.3, floor_bytes_per_second=1000)
    async with (
        Hostile(drip) as bad,
        http_transport("127.0.0.1", 0, patience=patient) as taker,
    ):
        async with asyncio.timeout(patient.attempt_seconds(len(DATA)) / 4):
            with pytest.raises(FetchError) as found:
                await taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes)
    assert blobs.reasons(found.value) == {bad.endpoint: "HolderSilentError"}


async def test_bytes_that_are_pushed_meanwhile_end_the_wait_for_a_dripping_holder():
    patient = Patience(grace_seconds=600, hedge_seconds=0.1)
    async with (
        Hostile(drip) as bad,
        http_transport("127.0.0.1", 0) as maker,
        http_transport("127.0.0.1", 0, patience=patient) as taker,
    ):
        taker.expect(BLOB, len(DATA), bytes)
        fetching = asyncio.create_task(taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes))
        async with asyncio.timeout(60):
            while not bad.heads:
                await asyncio.sleep(0.01)
            maker.hold(BLOB, DATA)
            maker.release(BLOB.round)
            (pushed,) = await maker.push(BLOB.round, [taker.endpoint])
            assert pushed.error is None
            assert await fetching == DATA


async def test_large_payloads_are_hashed_beside_the_event_loop():
    blob, data = blobs.payload(leaves=2048)
    async with (
        http_transport("127.0.0.1", 0) as honest,
        Hostile(says(ok(len(data)), flipped(data))) as bad,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        honest.hold(blob, data)
        honest.release(5)
        assert await taker.fetch(blob, [bad.endpoint, honest.endpoint], len(data), bytes) == data
        assert taker.scores.faults(bad.endpoint) > 0


async def test_a_redirect_is_not_followed():
    async with Hostile(says(ok(len(DATA)), DATA)) as inside:
        location = f"HTTP/1.1 302 F\r\nLocation: {inside.endpoint}/\r\nContent-Length: 0\r\n\r\n"
        async with (
            Hostile(says(location.encode())) as bad,
            http_transport("127.0.0.1", 0, patience=QUICK) as taker,
        ):
            with pytest.raises(FetchError, match="302"):
                await taker.fetch(BLOB, [bad.endpoint], len(DATA), bytes)
    assert inside.heads == []


@pytest.mark.parametrize("dies", [half_then_hang, says(ok(len(DATA)), DATA[: len(DATA) // 2])])
async def test_a_download_goes_on_at_another_holder_where_the_first_one_died(dies):
    asked = []

    async def rest(_, writer, head):
        start = int(re.search(r"Range: bytes=(\d+)-", head)[1])
        asked.append(start)
        part = DATA[start:]
        span = f"Content-Range: bytes {start}-{len(DATA) - 1}/{len(DATA)}"
        head = f"HTTP/1.1 206 P\r\nContent-Length: {len(part)}\r\n{span}\r\n\r\n"
        writer.write(head.encode() + part)

    async with (
        Hostile(dies) as first,
        Hostile(rest) as second,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        holders = [first.endpoint, second.endpoint]
        assert await taker.fetch(BLOB, holders, len(DATA), bytes) == DATA
    assert asked == [len(DATA) // 2]


async def test_our_own_server_answers_the_rest_of_a_download():
    half = says(ok(len(DATA)), DATA[: len(DATA) // 2])
    async with (
        Hostile(half) as first,
        http_transport("127.0.0.1", 0) as second,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        second.hold(BLOB, DATA)
        second.release(5)
        holders = [first.endpoint, second.endpoint]
        assert await taker.fetch(BLOB, holders, len(DATA), bytes) == DATA


async def test_a_liar_that_stops_early_cannot_spoil_the_honest_rest():
    """It sends garbage and dies, so that the honest holder's bytes do not fit to it."""
    spoil = says(ok(len(DATA)), bytes(5000))
    async with (
        Hostile(spoil) as liar,
        http_transport("127.0.0.1", 0) as honest,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        honest.hold(BLOB, DATA)
        honest.release(5)
        holders = [liar.endpoint, honest.endpoint]
        assert await taker.fetch(BLOB, holders, len(DATA), bytes) == DATA
        assert taker.scores.faults(honest.endpoint) == 0
        assert taker.scores.faults(liar.endpoint) > 0


@pytest.mark.parametrize("span", ["bytes 0-9/10", "bytes 1-2/3", "", "bytes */5"])
async def test_a_false_content_range_is_a_lie(span):
    half = says(ok(len(DATA)), DATA[: len(DATA) // 2])
    rest = len(DATA) - len(DATA) // 2
    head = f"HTTP/1.1 206 P\r\nContent-Length: {rest}\r\nContent-Range: {span}\r\n\r\n".encode()
    async with (
        Hostile(half) as first,
        Hostile(says(head, DATA[-rest:])) as second,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        with pytest.raises(FetchError) as found:
            await taker.fetch(BLOB, [first.endpoint, second.endpoint], len(DATA), bytes)
    holder, reason = list(blobs.reasons(found.value).items())[-1]
    assert holder == second.endpoint
    assert reason == "HolderLiedError"


async def test_a_slow_holder_is_overtaken_without_waiting_for_its_timeout():
    slow = Patience(grace_seconds=30, hedge_seconds=0.1)
    async with (
        Hostile(hang) as bad,
        http_transport("127.0.0.1", 0) as honest,
        http_transport("127.0.0.1", 0, patience=slow) as taker,
    ):
        honest.hold(BLOB, DATA)
        honest.release(5)
        async with asyncio.timeout(30):
            await taker.fetch(BLOB, [bad.endpoint, honest.endpoint], len(DATA), bytes)


@pytest.mark.long(reason="sixty-four servers, a third of which hang")
async def test_sixty_four_payloads_arrive_although_a_third_of_the_holders_hang():
    async with contextlib.AsyncExitStack() as stack:
        hanging = [await stack.enter_async_context(Hostile(hang)) for _ in range(3)]
        honest = [await stack.enter_async_context(http_transport("127.0.0.1", 0)) for _ in range(6)]
        taker = await stack.enter_async_context(http_transport("127.0.0.1", 0, patience=BUSY))
        many = [blobs.payload(leaves=20, seed=n) for n in range(64)]
        for n, (blob, data) in enumerate(many):
            honest[n % 6].hold(blob, data)
        for one in honest:
            one.release(5)
        every = [one.endpoint for one in (*hanging, *honest)]
        async with asyncio.timeout(60):
            found = await asyncio.gather(
                *(
                    taker.fetch(blob, [every[n % 3], *every], len(data), bytes)
                    for n, (blob, data) in enumerate(many)
                )
            )
    assert found == [data for _, data in many]


async def test_a_push_to_a_holder_that_hangs_ends_in_time():
    async with Hostile(hang) as bad, http_transport("127.0.0.1", 0, patience=QUICK) as giver:
        giver.hold(BLOB, DATA)
        giver.release(5)
        async with asyncio.timeout(30):
            (result,) = await giver.push(5, [bad.endpoint])
    assert type(result.error).__name__ == "HolderSilentError"
    assert result.num_accepted == 0
