"""A whole state over real sockets: from holders that die, lie, stay silent or cut off.

Every holder has a real store folder. The hostile ones are bare TCP servers that say what they like.
"""

import asyncio
import contextlib
import itertools
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET

import aiohttp
import numpy as np
import pytest
from support import showing, states
from support.disks import no_file_beyond
from support.holders import Hostile, hang, ok

from troth_client.checkpoint.fetch import fetch_draft, fetch_list
from troth_client.checkpoint.folder import CheckpointFolder, Draft
from troth_client.runtime.base import ProcessRuntime
from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.http import http_transport
from troth_client.transport.parallel import Source

BIG = states.CONFIG.model_copy(
    update={
        "model": states.MODEL.model_copy(update={"vocab_size": 40_000, "intermediate_size": 8_192})
    }
)
STATE = states.state(config=BIG)
TOTAL = STATE.pieces.num_bytes
DATA = STATE.piece_bytes()
NUM_PIECES = len(DATA)
FIRST = next(STATE.pieces.pieces())
PIECE = BlobId(20, BlobKind.PIECE, FIRST.hash)
BYTES = DATA[FIRST.hash]

QUICK = Patience(grace_seconds=2, floor_bytes_per_second=1e9, hedge_seconds=0.15)
NO_HEDGE = Patience(grace_seconds=60, floor_bytes_per_second=1e9, hedge_seconds=30)


@dataclass
class Holder:
    """A participant that shows a state over HTTP, and the count of what it served."""

    transport: Exchange
    count: showing.Counted
    stack: contextlib.AsyncExitStack = field(repr=False)

    @property
    def endpoint(self):
        return self.transport.endpoint

    async def stop(self):
        await self.stack.aclose()


@dataclass
class World:
    """The holders and the one who fetches."""

    folder: object
    stack: contextlib.AsyncExitStack
    holders: list[Holder] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def add(self, port=None):
        own = await self.stack.enter_async_context(contextlib.AsyncExitStack())
        folder = self.folder / f"holder-{next(self.numbers)}"
        _, shown = own.enter_context(showing.state_store(folder))
        showing.show_checkpoint(shown, STATE)
        transport = http_transport("127.0.0.1", 0)
        count = showing.shows(transport, shown if port is None else port(shown))
        await own.enter_async_context(transport)
        self.holders.append(Holder(transport, count, own))
        return self.holders[-1]

    async def source(self):
        transport = http_transport("127.0.0.1", 0, patience=QUICK)
        await self.stack.enter_async_context(transport)

        async def holders():
            return [holder.endpoint for holder in self.holders]

        return Source(transport, ProcessRuntime(0.01), EventList(), holders, lambda: False)

    @property
    def served(self):
        return sorted(hash_ for holder in self.holders for hash_ in holder.count.pieces)


@pytest.fixture
async def world(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        yield World(tmp_path, stack)


async def fetched(source, path):
    """Fetch a state into a folder; returns the bytes that travelled."""
    pieces = await fetch_list(source, STATE.committed, STATE.shapes)
    with Draft(path, pieces) as draft:
        num_bytes = await fetch_draft(source, draft)
        draft.finish(STATE.manifest)
    return num_bytes


def is_whole(path):
    found = CheckpointFolder.open(path).weights()
    assert found.keys() == STATE.weights.keys()
    for name, value in STATE.weights.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)
    return True


def after(count, holder):
    """An event that is set when a holder has served so many pieces."""
    reached, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_piece():
        if len(holder.count.pieces) == count:
            loop.call_soon_threadsafe(reached.set)

    holder.count.on_piece = on_piece
    return reached


async def test_three_holders_share_the_work(world):
    for _ in range(3):
        await world.add()
    assert TOTAL > 25 * 10**6
    assert await fetched(await world.source(), world.folder / "20") == TOTAL
    assert is_whole(world.folder / "20")
    assert min(len(holder.count.pieces) for holder in world.holders) >= 2


async def test_one_holder_dies_and_one_lies_about_everything(world):
    """The third one is enough, and what the dead one had sent before counts."""
    dying, _, _ = await world.add(), await world.add(port=showing.Spoiled), await world.add()
    reached = after(3, dying)
    source = await world.source()
    fetching = asyncio.create_task(fetched(source, world.folder / "20"))
    await reached.wait()
    await dying.stop()
    assert await fetching == TOTAL
    assert is_whole(world.folder / "20")
    assert len(dying.count.pieces) >= 3
    faults = {
        name: source.transport.scores.faults(one.endpoint)
        for name, one in zip(("dying", "lying", "honest"), world.holders, strict=True)
    }
    assert faults["lying"] > faults["honest"]


async def test_a_restart_in_the_middle_fetches_only_what_is_missing(world):
    """The process ends; the next one opens the draft again and asks for the rest."""
    holder = await world.add()
    reached = after(10, holder)
    source = await world.source()
    fetching = asyncio.create_task(fetched(source, world.folder / "20"))
    await reached.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    with Draft(world.folder / "20", STATE.pieces) as draft:
        missing = draft.missing()
    assert 0 < len(missing) < NUM_PIECES
    await holder.stop()
    world.holders.clear()
    holder = await world.add()
    num_bytes = await fetched(await world.source(), world.folder / "20")
    assert num_bytes == sum(piece.num_bytes for piece in missing)
    assert world.served == sorted(piece.hash for piece in missing)
    assert holder.count.num_bytes == num_bytes + len(STATE.pieces.encode())
    assert is_whole(world.folder / "20")


async def test_a_disk_that_fills_up_keeps_the_draft(world, monkeypatch):
    """Sparse files promise no room. With room again, the fetch goes on."""
    await world.add()
    source = await world.source()
    with monkeypatch.context() as patch, no_file_beyond(10**7):
        patch.setattr("os.ftruncate", lambda *_: None)
        with pytest.raises(DiskFullError, match="Nothing that was stored is lost"):
            await fetched(source, world.folder / "20")
    assert not (world.folder / "20").exists()
    num_bytes = await fetched(source, world.folder / "20")
    assert num_bytes <= TOTAL - 2 * 2**20
    assert is_whole(world.folder / "20")


def reset(writer):
    """End a connection so that the other side sees a reset and no orderly end."""
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def half_then_reset(_, writer, __):
    writer.write(ok(len(BYTES)) + BYTES[: len(BYTES) // 2])
    await writer.drain()
    # The caller must have read some of it, or the reset would take all of it away.
    while writer.transport.get_write_buffer_size():
        await asyncio.sleep(0)
    reset(writer)


async def the_rest(_, writer, head):
    """A holder that answers ranges."""
    asked = re.search(r"Range: bytes=(\d+)-", head)
    first = int(asked[1]) if asked else 0
    rest = BYTES[first:]
    line = f"Content-Range: bytes {first}-{len(BYTES) - 1}/{len(BYTES)}\r\n"
    status = ok(len(rest), line)
    writer.write((status.replace(b"200 OK", b"206 Partial") if first else status) + rest)


async def test_a_reset_connection_costs_a_try():
    """How much of the first half arrives before a reset is up to the system."""
    async with (
        Hostile(half_then_reset) as dying,
        Hostile(the_rest) as other,
        http_transport("127.0.0.1", 0, patience=NO_HEDGE) as taker,
    ):
        holders = [dying.endpoint, other.endpoint]
        assert await taker.fetch(PIECE, holders, len(BYTES), bytes) == BYTES
        assert len(other.heads) == 1
        assert taker.scores.faults(dying.endpoint) > 0


async def test_a_silent_holder_is_passed_over_and_asked_last_from_then_on(world):
    holder = await world.add()
    async with (
        Hostile(hang) as silent,
        http_transport("127.0.0.1", 0, patience=QUICK) as taker,
    ):
        endpoints = [silent.endpoint, holder.endpoint]
        for number, piece in enumerate(list(STATE.pieces.pieces())[:4]):
            blob = BlobId(20, BlobKind.PIECE, piece.hash)
            found = await taker.fetch(blob, endpoints, piece.num_bytes, bytes)
            assert found == DATA[piece.hash]
            assert len(silent.heads) == 1, f"asked again for piece {number}"
        assert taker.scores.ranked(endpoints) == [holder.endpoint, silent.endpoint]
        assert taker.scores.faults(holder.endpoint) == 0


@pytest.mark.parametrize("kind", [BlobKind.PIECES, BlobKind.PIECE])
@pytest.mark.parametrize("key", [STATE.root, FIRST.hash, bytes(32)])
async def test_a_post_of_a_state_is_not_expected_and_reads_nothing(world, kind, key):
    """Not even of one that is shown: a caller must not make the holder read and hash it."""
    holder = await world.add()
    url = f"{holder.endpoint}/v1/{BlobId(20, kind, key).address}"
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=BYTES) as answer:
            assert answer.status == 409
        async with session.put(url, data=BYTES) as answer:
            assert answer.status == 405
    assert holder.count.served == []
