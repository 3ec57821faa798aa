"""The keys of a run, where the program refused the one that was given.

Owns: naming both keys. Never: reads a key file. Next: `../commands/run.py`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from solders.pubkey import Pubkey

from troth_cli.errors import OtherKeyError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ProgramRefusedError

_ROLES: Final = {"WrongAuthority": "authority", "WrongFunder": "funder", "WrongCouncil": "council"}


@asynccontextmanager
async def naming_keys(client: CoordinatorClient, run: Pubkey, given: Pubkey) -> AsyncIterator[None]:
    """Raise OtherKeyError, with the address of both keys, where the block used the wrong one."""
    try:
        yield
    except ProgramRefusedError as error:
        role = _ROLES.get(error.name)
        if role is None:
            raise
        wanted = Pubkey(getattr(await client.read_run(run), role))
        raise OtherKeyError(
            f"the key of the run's {role}, {wanted}",
            f"the key of {given}",
            "Name the key file of that address with --key.",
            f"run {run}",
            error.name,
        ) from error
