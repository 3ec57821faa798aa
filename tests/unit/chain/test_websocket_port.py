"""Servers that are no JSON-RPC and no websocket either keep their status as the message.

Real websockets are asked in tests/integration: test_cli_localnet.py and test_chain_validator.py.
"""

import pytest
from support.hostile_rpc import HostileServer, http

from troth_coordinator.chain.errors import RpcUnreachableError
from troth_coordinator.chain.http_rpc import HttpRpc


@pytest.mark.parametrize("status", ["400 Bad", "405 Not Allowed", "426 Upgrade"])
async def test_a_web_server_is_not_taken_for_a_websocket(status):
    answer = http(b"<html>", status)
    async with HostileServer(lambda _: answer) as server, HttpRpc(server.url) as rpc:
        with pytest.raises(RpcUnreachableError, match=f"HTTP status {status[:3]}") as caught:
            await rpc.get_slot()
    assert "websocket" not in str(caught.value)
