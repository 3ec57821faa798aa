"""The server against hostile bodies, foreign web pages and taken ports."""

import asyncio
import json
import socket

import httpx
import pytest
from support.reader import free_port

from troth_localnet.errors import BindRefusedError, PortInUseError
from troth_localnet.ports import bind_pair
from troth_localnet.rpc import MAX_BODY_BYTES, RpcServer, ServerConfig
from troth_localnet.svm import Chain

HEALTH = {"jsonrpc": "2.0", "id": 1, "method": "getHealth"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def server():
    one = RpcServer(Chain(), ServerConfig(slot_milliseconds=None))
    await one.start()
    yield one
    await one.stop()


@pytest.fixture
async def http(server):
    async with httpx.AsyncClient(base_url=server.rpc_url, timeout=20) as one:
        yield one


async def assert_alive(http):
    assert (await http.post("/", json=HEALTH)).json()["result"] == "ok"


async def test_a_hundred_megabytes_are_refused_by_their_header(http, server):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 104857600\r\n\r\n"
    )
    answer = await asyncio.wait_for(reader.readuntil(b'"code":-32600'), 5)
    assert answer.startswith(b"HTTP/1.1 413")
    writer.close()
    await assert_alive(http)


async def test_a_hundred_megabytes_without_a_length_are_cut_off(http):
    async def endless():
        for _ in range(100):
            yield b"x" * 2**20

    try:
        reply = await http.post("/", content=endless(), headers=JSON)
        assert reply.status_code == 413
    except httpx.TransportError:
        pass  # the server may close before everything was sent
    await assert_alive(http)


async def test_a_body_at_the_limit_is_read(http):
    padding = " " * (MAX_BODY_BYTES - len(json.dumps(HEALTH)))
    reply = await http.post("/", content=json.dumps(HEALTH) + padding, headers=JSON)
    assert reply.json()["result"] == "ok"
    over = await http.post("/", content=json.dumps(HEALTH) + padding + " ", headers=JSON)
    assert over.status_code == 413


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"null", b"{", b"[" * 50_000, b"\0" * 1_000])
async def test_garbage_is_answered_with_an_error(http, body):
    reply = await http.post("/", content=body, headers=JSON)
    assert reply.status_code == 200
    assert reply.json()["error"]["code"] in (-32_700, -32_600)
    await assert_alive(http)


async def test_garbage_that_is_not_http_harms_nobody(http, server):
    for garbage in (b"\0" * 1_000, b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\n" * 50):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(garbage)
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 5)
        writer.close()
    await assert_alive(http)


async def test_web_pages_cannot_use_it(http):
    plain = await http.post("/", content=json.dumps(HEALTH), headers={"Content-Type": "text/plain"})
    assert plain.status_code == 415
    rebound = await http.post("/", json=HEALTH, headers={"Host": "evil.example"})
    assert rebound.status_code == 403
    asked = await http.options("/", headers={"Origin": "http://evil.example"})
    assert asked.status_code == 405
    assert "access-control-allow-origin" not in asked.headers
    assert (await http.get("/")).status_code == 405
    await assert_alive(http)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "127.1.2.3"])
async def test_loopback_names_are_welcome(http, host):
    assert (await http.post("/", json=HEALTH, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", "", "127.0.0.1 "])
async def test_only_loopback_can_be_listened_on(host):
    with pytest.raises(BindRefusedError, match="loopback"):
        await RpcServer(Chain(), ServerConfig(host=host)).start()


async def test_a_taken_port_is_named_with_what_to_do(server):
    for port in (server.port, server.port + 1):
        with pytest.raises(PortInUseError, match=rf"port {port} .*--port") as caught:
            await RpcServer(Chain(), ServerConfig(port=port)).start()
        assert caught.value.port == port


async def test_a_taken_websocket_port_frees_the_other(server):
    port = free_port()
    with socket.socket() as blocker:
        blocker.bind(("127.0.0.1", port + 1))
        blocker.listen()
        with pytest.raises(PortInUseError, match="websocket"):
            await RpcServer(Chain(), ServerConfig(port=port)).start()
        with socket.socket() as again:
            again.bind(("127.0.0.1", port))


async def test_stop_frees_the_ports_and_start_can_follow_at_once():
    port = 0
    for _ in range(3):
        one = RpcServer(Chain(), ServerConfig(port=port, slot_milliseconds=20))
        await one.start()
        port = one.port
        await one.stop()
        await one.stop()


@pytest.mark.parametrize("milliseconds", [0, 19, 401, -5])
def test_slots_have_a_sensible_length(milliseconds):
    with pytest.raises(ValueError, match="20 to 400"):
        ServerConfig(slot_milliseconds=milliseconds)


@pytest.mark.parametrize("port", [-1, 65_535, 70_000])
def test_impossible_ports_are_refused(port):
    with pytest.raises(ValueError, match="websocket needs the next port"):
        bind_pair("127.0.0.1", port)


async def test_the_clock_runs_by_itself():
    one = RpcServer(Chain(), ServerConfig(slot_milliseconds=20))
    await one.start()
    try:
        async with asyncio.timeout(10):
            while one.chain.slot < 10:
                await asyncio.sleep(0.01)
    finally:
        await one.stop()
    stopped_at = one.chain.slot
    await asyncio.sleep(0.06)
    assert one.chain.slot == stopped_at
