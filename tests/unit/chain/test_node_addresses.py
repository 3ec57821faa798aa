"""Addresses of other things than JSON-RPC: other schemes, web servers, and tricks of HTTP.

Real websockets are asked in tests/integration: test_cli_localnet.py and test_chain_validator.py.
"""

import asyncio
import gzip
import socket
import struct

import pytest
from support.hostile_rpc import HostileServer, http, reply

from troth_coordinator.chain.errors import (
    MalformedReplyError,
    RpcAddressError,
    RpcUnreachableError,
)
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.rpc_health import UNREADABLE


@pytest.mark.parametrize("status", ["400 Bad", "405 Not Allowed", "426 Upgrade"])
async def test_a_web_server_is_not_taken_for_a_websocket(status):
    answer = http(b"<html>", status)
    async with HostileServer(lambda _: answer) as server, HttpRpc(server.url) as rpc:
        with pytest.raises(RpcUnreachableError, match=f"HTTP status {status[:3]}") as caught:
            await rpc.get_slot()
    assert "websocket" not in str(caught.value)


@pytest.mark.parametrize("status", ["302 Found", "307 Temporary Redirect"])
async def test_nobody_is_sent_on_to_another_address(status):
    """A node could lead a participant to a service that only its own machine reaches."""
    async with HostileServer(lambda request: http(reply(7, request))) as inside:
        place = f"\r\nLocation: {inside.url}/\r\n".encode()
        answer = http(b"", status).replace(b"\r\n", place, 1)
        async with HostileServer(lambda _: answer) as server, HttpRpc(server.url) as rpc:
            with pytest.raises(RpcUnreachableError, match=f"HTTP status {status[:3]}"):
                await rpc.get_slot()
    assert inside.requests == []


async def test_a_compressed_answer_is_not_unfolded():
    """A few bytes could become more than the memory holds."""
    body = gzip.compress(reply(7, {}))
    answer = http(body).replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
    async with HostileServer(lambda _: answer) as server, HttpRpc(server.url) as rpc:
        with pytest.raises(MalformedReplyError, match="getSlot"):
            await rpc.get_slot()


async def resets_requests(reader, writer):
    """A websocket that resets whoever does not shake hands, as a validator's at times."""
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"GET"):
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    else:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()


async def test_a_websocket_that_resets_requests_is_recognised():
    async with await asyncio.start_server(resets_requests, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HttpRpc(f"http://127.0.0.1:{port}") as rpc:
            with pytest.raises(RpcUnreachableError, match="a websocket") as caught:
                await rpc.get_slot()
    assert f"--rpc http://127.0.0.1:{port - 1}" in caught.value.next_step


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("7", "7"),
        ("127.0.0.1:8899", "127.0.0.1:8899"),
        ("node.example/?key=secret", "node.example"),
        ("node.example\\secret", "node.example"),
        ("user:secret@node.example", "node.example"),
        ("user:sec/secret@node.example", UNREADABLE),
        ("node.example\nsecret", UNREADABLE),
        ("ftp://user:secret@node.example/secret", "ftp://node.example"),
        ("://secret", UNREADABLE),
        ("", UNREADABLE),
    ],
)
def test_an_address_without_http_is_refused_and_its_key_not_repeated(address, found):
    with pytest.raises(RpcAddressError) as caught:
        HttpRpc(address)
    assert caught.value.found == found
    assert "secret" not in str(caught.value)
