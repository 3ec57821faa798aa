"""How long an honest fetch waits while one address holds many connections to the same server.

Owns: the measurement behind "400 silent connections delay nobody by more than a second".
Never: a chain, or another machine. Next: client/troth_client/transport/places.py.

    python scripts/bench/silent_connections.py [--num 400] [--fetches 20] [--seed 0]

The server has the shipped limits. The flood comes from 127.0.0.1, the honest caller from 127.0.0.2.
`silent` says nothing; `asking` asks for a large payload and never reads the answer. Both come again
when they were cut off. "unfair" is the same server where nobody gives a place up, and who waits
longest comes first.
"""

import argparse
import asyncio
import contextlib
import json
import random
import socket
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from unittest.mock import patch

from troth_client.compression.codec import payload_root
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.http import http_transport
from troth_client.transport.places import Places

FLOOD, HONEST = "127.0.0.1", "127.0.0.2"
SMALL_BYTES, LARGE_BYTES = 2**20, 2**25
LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.25


def wake_the_oldest(places: Places) -> None:
    """Stand in for `Places._wake`: without a look at who has how much."""
    waiter = next((one for one in places._waiting if not one.free.done()), None)
    if waiter is not None:
        del places._waiting[waiter]
        waiter.free.set_result(None)


@contextlib.contextmanager
def rules(*, is_fair: bool) -> Iterator[None]:
    """Take the fairness out of the places inside the block, unless `is_fair`."""
    with contextlib.ExitStack() as stack:
        if not is_fair:
            stack.enter_context(patch.object(Places, "_displace", lambda *_: False))
            stack.enter_context(patch.object(Places, "_wake", wake_the_oldest))
        yield


def blob(num_bytes: int, seed: int) -> tuple[BlobId, bytes]:
    """Return a payload of random bytes."""
    data = random.Random(seed).randbytes(num_bytes)
    return BlobId(1, BlobKind.PAYLOAD, payload_root(data)), data


def request(asked: BlobId) -> bytes:
    """Return the request for a blob."""
    return f"GET /v1/{asked.address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


async def opened(port: int, said: bytes) -> socket.socket:
    """Return a connection of the flood, which has said something and reads nothing."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(one, (FLOOD, port))
    with contextlib.suppress(OSError):
        await loop.sock_sendall(one, said)
    return one


def is_cut_off(one: socket.socket) -> bool:
    """Tell whether the server has ended a connection; what it sent is left unread."""
    try:
        return one.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextlib.asynccontextmanager
async def flood(port: int, num: int, said: bytes) -> AsyncIterator[None]:
    """Hold so many connections inside the block."""
    held = [await opened(port, said) for _ in range(num)]

    async def keep() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for at, one in enumerate(held):
                if is_cut_off(one):
                    one.close()
                    held[at] = await opened(port, said)

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        for one in held:
            one.close()


async def fetch(port: int, asked: BlobId, num_bytes: int) -> None:
    """Fetch a blob as an honest caller."""
    reader, writer = await asyncio.open_connection(FLOOD, port, local_addr=(HONEST, 0))
    try:
        writer.write(request(asked))
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(num_bytes)
    finally:
        writer.close()


async def fetched(port: int, asked: BlobId, num_bytes: int) -> float:
    """Return the seconds of an honest fetch, which tries again when it is turned away."""
    began = time.perf_counter()
    while (left := began + LIMIT_SECONDS - time.perf_counter()) > 0:
        try:
            await asyncio.wait_for(fetch(port, asked, num_bytes), left)
            return time.perf_counter() - began
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            await asyncio.sleep(0.05)
    return LIMIT_SECONDS


async def measured(options: argparse.Namespace, said: str, *, is_fair: bool) -> dict[str, object]:
    """Return the times of the fetches of one kind of flood."""
    small, data = blob(SMALL_BYTES, options.seed)
    large, more = blob(LARGE_BYTES, options.seed + 1)
    num, times = 0 if said == "none" else options.num, list[float]()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(rules(is_fair=is_fair))
        holder = await stack.enter_async_context(http_transport(FLOOD, 0))
        holder.hold(small, data)
        holder.hold(large, more)
        holder.release(1)
        port = int(holder.endpoint.rsplit(":", 1)[1])
        says = request(large) if said == "asking" else b""
        await stack.enter_async_context(flood(port, num, says))
        while len(times) < options.fetches and sum(times) < LIMIT_SECONDS:
            times.append(await fetched(port, small, SMALL_BYTES))
    return {
        "flood": said,
        "connections": num,
        "is_fair": is_fair,
        "fetches": len(times),
        "median_ms": round(1e3 * statistics.median(times), 1),
        "longest_ms": round(1e3 * max(times), 1),
    }


def main() -> None:
    """Measure and print one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num", type=int, default=400)
    parser.add_argument("--fetches", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measured(options, "none", is_fair=True))))
    for said in ("silent", "asking"):
        for is_fair in (True, False):
            print(json.dumps(asyncio.run(measured(options, said, is_fair=is_fair))), flush=True)


if __name__ == "__main__":
    main()
