"""Addresses of other things than JSON-RPC: other schemes, and web servers, which keep their status.

Real websockets are asked in tests/integration: test_cli_localnet.py and test_chain_validator.py.
"""

import pytest
from support.hostile_rpc import HostileServer, http

from troth_coordinator.chain.errors import RpcAddressError, RpcUnreachableError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.rpc_health import UNREADABLE


@pytest.mark.parametrize("status", ["400 Bad", "405 Not Allowed", "426 Upgrade"])
async def test_a_web_server_is_not_taken_for_a_websocket(status):
    answer = http(b"<html>", status)
    async with HostileServer(lambda _: answer) as server, HttpRpc(server.url) as rpc:
        with pytest.raises(RpcUnreachableError, match=f"HTTP status {status[:3]}") as caught:
            await rpc.get_slot()
    assert "websocket" not in str(caught.value)


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
