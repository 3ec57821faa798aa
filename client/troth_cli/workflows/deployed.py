"""A program as it lies on a chain: its code, and who may change it.

Owns: following a program id to its code, for both loaders. Never: judges the code.
Next: `deploy_plan.py`; `../view/program.py`.
"""

from dataclasses import dataclass

from solders.pubkey import Pubkey

from troth_coordinator.chain import loader
from troth_coordinator.chain.errors import ForeignProgramError, ProgramMissingError
from troth_coordinator.chain.rpc import Account, Rpc


@dataclass(frozen=True, slots=True)
class DeployedProgram:
    """A program on chain. `code` ends with the zeros behind it.

    data_address, slot: only with the upgradeable loader. authority: None for code that nobody can
    change. lamports: what its accounts hold; data_lamports: the part that closing gives back.
    """

    address: Pubkey
    loader: Pubkey
    data_address: Pubkey | None
    authority: Pubkey | None
    slot: int | None
    code: bytes
    lamports: int
    data_lamports: int

    @property
    def num_code_bytes(self) -> int:
        """The length of the code without the zeros behind it."""
        return len(self.code.rstrip(b"\0"))


async def read_deployed(rpc: Rpc, address: Pubkey) -> DeployedProgram:
    """Read a program and its code.

    Raises ProgramMissingError (no account), ForeignProgramError (no program, a closed one, one that
    was never finished, or one of a loader that is not known here) and RpcError.
    """
    _slot, (account,) = await rpc.get_accounts([address])
    if account is None:
        raise ProgramMissingError(str(address))
    data_address = loader.read_data_address(account)
    if data_address is None:
        return _fixed(address, account)
    _slot, (data_account,) = await rpc.get_accounts([data_address])
    found = None if data_account is None else loader.read_program_data(data_account)
    if data_account is None or found is None:
        raise ForeignProgramError(str(address), "a program that was closed, for ever")
    return DeployedProgram(
        address=address,
        loader=account.owner,
        data_address=data_address,
        authority=found.authority,
        slot=found.slot,
        code=found.code,
        lamports=account.lamports + data_account.lamports,
        data_lamports=data_account.lamports,
    )


def _fixed(address: Pubkey, account: Account) -> DeployedProgram:
    if account.owner != loader.FIXED:
        kind = "a buffer of code" if loader.read_buffer(account) else "an account"
        raise ForeignProgramError(str(address), f"{kind} of {account.owner}, which is no program")
    if not account.executable:
        found = "an account of the old loader that is not executable: nothing can run there"
        raise ForeignProgramError(str(address), found)
    return DeployedProgram(
        address=address,
        loader=account.owner,
        data_address=None,
        authority=None,
        slot=None,
        code=account.data,
        lamports=account.lamports,
        data_lamports=0,
    )
