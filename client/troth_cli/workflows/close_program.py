"""Closing a buffer, or a program for ever.

Owns: what an address is, and who may close it. Never: asks a user.
Next: `deployed.py`; `troth_coordinator.chain.loader` for the instructions.
"""

from dataclasses import dataclass

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import DeployError
from troth_cli.workflows.deployed import read_deployed
from troth_coordinator.chain import loader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.chain.sender import ConfirmedTransaction, Sender


@dataclass(frozen=True, slots=True)
class Closable:
    """A buffer or a program that a key may close, and the lamports that come back."""

    address: Pubkey
    is_program: bool
    lamports: int


async def look(rpc: Rpc, address: Pubkey, key: Keypair) -> Closable:
    """Return what is at the address.

    Raises DeployError where the key may not close it, ProgramIdError for anything else.
    """
    _slot, (account,) = await rpc.get_accounts([address])
    buffer = None if account is None else loader.read_buffer(account)
    if account is not None and buffer is not None:
        _check(address, buffer.authority, key)
        return Closable(address, is_program=False, lamports=account.lamports)
    found = await read_deployed(rpc, address)
    _check(address, found.authority, key)
    return Closable(address, is_program=True, lamports=found.data_lamports)


async def close_program(rpc: Rpc, found: Closable, key: Keypair) -> ConfirmedTransaction:
    """Close it; the lamports go to the key. ChainError."""
    close = loader.close_program if found.is_program else loader.close_buffer
    return await Sender(rpc, program_codec()).send([close(found.address, key.pubkey())], [key])


def _check(address: Pubkey, authority: Pubkey | None, key: Keypair) -> None:
    if authority != key.pubkey():
        expected = "an authority" if authority is None else f"the authority {authority}"
        found = "none: nobody can close it" if authority is None else f"--key {key.pubkey()}"
        raise DeployError(
            expected, found, "Name the key file of the authority.", f"address {address}"
        )
