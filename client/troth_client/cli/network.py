"""From an address of an RPC to a client of the program there.

Owns: the one place where commands open a connection, and their event loop.
Never: keeps a connection beyond a command.
Next: `troth_coordinator.chain.client`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.http_rpc import HttpRpc

Result = TypeVar("Result")


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[CoordinatorClient]:
    """Yield a client whose network has the program.

    Raises RpcError (no node, or no Solana node at the address) and ProgramIdError.
    """
    async with HttpRpc(url) as rpc:
        client = CoordinatorClient(rpc)
        await client.check_program()
        yield client


def run_async(work: Coroutine[object, object, Result]) -> Result:
    """Run a command's coroutine to its end."""
    return asyncio.run(work)
