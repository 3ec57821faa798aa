"""Pushes of a run by the embedded chain, and by nodes that are silent, lying or without any."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest
import zstandard
from aiohttp import web
from solders.pubkey import Pubkey
from support.chain import GENESIS_ROOT, Running, World

from troth_client.runtime.base import end
from troth_coordinator.chain import subscription
from troth_coordinator.chain.account_json import ENCODING
from troth_coordinator.chain.subscription import RunPushes, mark_of, websocket_url
from troth_coordinator.rules.phase import Phase
from troth_localnet.rpc import RpcServer, ServerConfig

SECONDS = 20.0
NOBODY = "ws://127.0.0.1:9"
ADDRESS = Pubkey.default()


@asynccontextmanager
async def followed(*urls: str, run: Pubkey = ADDRESS) -> AsyncIterator[RunPushes]:
    pushes = RunPushes(urls, run, Random(0))
    following = asyncio.create_task(pushes.follow())
    try:
        yield pushes
        assert not following.done()
    finally:
        await end(following)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def node(*pushed: str) -> AsyncIterator[str]:
    """A node that takes every subscription, pushes these texts and then is silent."""

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            call = json.loads(message.data)
            await socket.send_str(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": 1}))
            for text in pushed:
                await socket.send_str(text)
        return socket

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def push(slot: object, data: bytes, encoding: str = "base64") -> str:
    value = {"data": [base64.b64encode(data).decode(), encoding]}
    result = {"context": {"slot": slot}, "value": value}
    return json.dumps({"method": "accountNotification", "params": {"result": result}})


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Running, RpcServer]]:
    """A run of three in its first Commit phase, on a chain with sockets."""
    world = World()
    server = RpcServer(world.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    try:
        yield await world.start(3), server
    finally:
        await server.stop()


async def commit(running: Running, number: int) -> None:
    _owner, session = running.peers[number]
    vote = running.vote(number, 0, GENESIS_ROOT)
    await session.commit_payload(0, bytes([number + 1]) * 32, vote)


async def test_every_event_of_a_run_is_pushed_as_the_mark_that_a_look_shows():
    async with (
        served() as (running, server),
        followed(server.ws_url, run=running.at.run) as pushes,
    ):
        await until(lambda: pushes.is_live)
        for step in (lambda: commit(running, 0), lambda: commit(running, 1)):
            await step()
        await commit(running, 2)  # the quorum, which is part of the mark
        client = running.world.client
        shown = await client.read_run(running.at.run)
        await until(lambda: pushes.newest and pushes.newest.edge == mark_of(shown, 0).edge)
        await running.crank.advance_phase(0)
        shown = await client.read_run(running.at.run)
        assert shown.phase == Phase.ATTEST
        await until(lambda: pushes.newest and pushes.newest.edge == mark_of(shown, 0).edge)
        assert pushes.newest.event_sequence == shown.event_sequence
        assert pushes.newest.slot <= running.world.chain.slot


async def test_commits_are_read_again_without_the_roster_and_other_steps_are_not():
    async with served() as (running, _server):
        client = running.world.client
        known = await client.snapshot(running.at.run)
        for number in range(3):
            await commit(running, number)
            again, whole = await client.reread(known), await client.snapshot(running.at.run)
            assert again.run == whole.run
            assert again.round == whole.round
            assert again.previous_round == whole.previous_round
            assert again.slot == whole.slot
        await running.crank.advance_phase(0)
        assert await client.reread(known) is None


async def test_an_account_that_is_pushed_whole_is_cut_here():
    async with served() as (running, _server):
        _slot, (account,) = await running.world.rpc.get_accounts([running.at.run])
        shown = await running.world.client.read_run(running.at.run)
    async with node(push(77, account.data)) as url, followed(url) as pushes:
        await until(lambda: pushes.newest)
        assert pushes.newest == mark_of(shown, 77)


async def test_a_node_without_websockets_is_passed_over_and_ends_nobody():
    async with node() as url, followed(NOBODY, url) as pushes:
        assert not pushes.is_live
        await until(lambda: pushes.is_live)


async def test_one_that_is_distrusted_is_left_for_the_next():
    async with node() as silent, node(push(5, bytes(160))) as other:
        assert subscription._Part().length == 160
        async with followed(silent, other) as pushes:
            await until(lambda: pushes.is_live)
            assert pushes.newest is None
            pushes.distrust()
            await until(lambda: pushes.newest)
            assert pushes.newest.slot == 5


def bomb() -> str:
    compressor = zstandard.ZstdCompressor().compressobj()
    parts = [compressor.compress(bytes(1 << 20)) for _ in range(256)] + [compressor.flush()]
    return push(5, b"".join(parts), ENCODING)


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "[]",
        "{}",
        "[" * 20_000,
        push("5", bytes(160)),
        push(5, bytes(159)),
        push(5, b"\xff" * 160, ENCODING),
        push(5, bytes(160), "base58"),
        bomb(),
        " " * subscription.MAX_MESSAGE_BYTES + push(5, bytes(160)),
    ],
    ids=["text", "list", "object", "deep", "slot", "short", "frame", "encoding", "bomb", "long"],
)
async def test_a_push_that_cannot_be_read_ends_the_connection(text):
    async with (
        node(text) as lying,
        node(push(6, bytes(160))) as honest,
        followed(lying, honest) as pushes,
    ):
        await until(lambda: pushes.newest)
        assert pushes.newest.slot == 6


async def test_a_flood_of_pushes_ends_the_connection():
    """Each costs a moment of the loop that the sends and the rounds wait for."""
    texts = [push(5, bytes(160))] * (5 * subscription.MAX_PUSHES_PER_SECOND)
    async with (
        node(*texts) as flooding,
        node(push(6, bytes(160))) as honest,
        followed(flooding, honest) as pushes,
    ):
        await until(lambda: pushes.newest and pushes.newest.slot == 6)


async def test_a_push_older_than_the_last_changes_nothing():
    texts = push(9, bytes(160)), push(7, b"\1" * 160), push(10, bytes(160))
    async with node(*texts) as url, followed(url) as pushes:
        await until(lambda: pushes.newest and pushes.newest.slot == 10)
        assert pushes.newest.event_sequence == 0


@pytest.mark.parametrize(
    ("rpc", "expected"),
    [
        ("http://127.0.0.1:8899", "ws://127.0.0.1:8900"),
        ("http://[::1]:8899/", "ws://[::1]:8900/"),
        ("https://node.example/?api-key=k", "wss://node.example/?api-key=k"),
        ("https://user:pass@node.example:443/x", "wss://user:pass@node.example:444/x"),
    ],
)
def test_where_a_node_has_its_websocket(rpc, expected):
    assert websocket_url(rpc) == expected
