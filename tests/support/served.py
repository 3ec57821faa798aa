"""Fixtures around a served chain stepped by hand; test modules take them by FIXTURES."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from solana.rpc.async_api import AsyncClient
from solana.rpc.commitment import Confirmed
from solana.rpc.core import RPCException

from support.localnet import Wallet
from support.waiting import ANSWER_SECONDS
from troth_localnet.blocks import skip_every
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_localnet.svm import Chain, ChainConfig

Call = Callable[..., Awaitable[dict[str, Any]]]
"""`await call(method, *params)` -> the whole reply."""


@pytest.fixture
async def server() -> AsyncIterator[RpcServer]:
    one = RpcServer(Chain(ChainConfig(skip=skip_every(10))), ServerConfig(slot_milliseconds=None))
    await one.start()
    yield one
    await one.stop()


@pytest.fixture
async def client(server: RpcServer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(server.rpc_url, commitment=Confirmed) as one:
        yield one


@pytest.fixture
def chain(server: RpcServer) -> Chain:
    return server.chain


@pytest.fixture
def wallet(chain: Chain) -> Wallet:
    return Wallet(chain)


@pytest.fixture
async def call(server: RpcServer) -> AsyncIterator[Call]:
    """Calls a method without any client library; returns the whole reply."""
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:

        async def post(method: str, *params: object) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
            reply: dict[str, Any] = (await http.post(server.rpc_url, json=body)).json()
            return reply

        yield post


async def refused(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(RPCException) as caught:
        await call
    error = caught.value.args[0]
    return type(error).__name__, str(error)


FIXTURES = server, client, chain, wallet, call
