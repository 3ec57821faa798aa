"""From an address of an RPC to a client of the program there.

Owns: the one place where commands open a connection, their event loop, and the check of a program
whose answers cannot be ours.
Never: keeps a connection beyond a command.
Next: `troth_coordinator.chain.client`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from solders.pubkey import Pubkey

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import (
    ForeignProgramError,
    RpcError,
    TransactionFailedError,
    TransactionRejectedError,
)
from troth_coordinator.chain.program_image import is_ours
from troth_coordinator.chain.unhurried import UnhurriedRpc

Result = TypeVar("Result")

_UPGRADEABLE_BYTES: Final = 36
"""A program of the upgradeable loader: u32 2, then the address of the account with the code."""


@asynccontextmanager
async def connect(
    urls: str | Sequence[str], program: Pubkey | None
) -> AsyncIterator[CoordinatorClient]:
    """Yield a client whose network has the program, over one address or several.

    `program` is the program's address, None for the packaged one's.

    A node that asks to wait is waited for. Raises RpcError (no node, or no Solana node at the
    address) and ProgramIdError. If a transaction fails in a way that our program never does, and
    the code is another's, raises ForeignProgramError.
    """
    async with UnhurriedRpc.over([urls] if isinstance(urls, str) else urls) as rpc:
        client = CoordinatorClient(rpc, program)
        await client.check_program()
        try:
            yield client
        except (TransactionRejectedError, TransactionFailedError) as error:
            if await is_foreign(client):
                raise ForeignProgramError(
                    str(client.program_id), f"another program, which answered: {error.found}"
                ) from error
            raise


async def is_foreign(client: CoordinatorClient) -> bool:
    """Return whether the code at the program id holds none of the names of our errors.

    Reads the whole program (half a megabyte): call it only after a failure.
    """
    code = b""
    with contextlib.suppress(RpcError):
        code = await _code(client, client.program_id)
    return bool(code) and not is_ours(code)


async def _code(client: CoordinatorClient, address: Pubkey) -> bytes:
    _slot, (account,) = await client.rpc.get_accounts([address])
    if account is None:
        return b""
    if len(account.data) == _UPGRADEABLE_BYTES and account.data[:4] == b"\x02\0\0\0":
        return await _code(client, Pubkey.from_bytes(account.data[4:]))
    return account.data


def run_async(work: Coroutine[object, object, Result]) -> Result:
    """Run a command's coroutine to its end."""
    return asyncio.run(work)
