"""Instructions to a signed transaction: compute-unit limit, priority fee, size, signatures.

Owns: the limit from the committed table of measured units, assembly of legacy transactions.
Never: talks to a node.
Next: sender.py, which sends what is made here until it lands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.hash import Hash
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import ID as SYSTEM_PROGRAM
from solders.transaction import Transaction

from troth_coordinator import artifacts
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, ProgramCodec
from troth_coordinator.chain.errors import (
    ArtifactError,
    MissingSignerError,
    TransactionTooLargeError,
)

MAX_TRANSACTION_BYTES: Final = 1232
FEE_PER_SIGNATURE_LAMPORTS: Final = 5_000
MAX_COMPUTE_UNITS: Final = 1_400_000
MAX_SPARE_UNITS: Final = 255
UNMEASURED_UNITS: Final = 200_000
"""The network's own default for an instruction of a program."""
BUILTIN_UNITS: Final = 3_000
"""The network's charge for an instruction of a built-in program, such as a transfer."""
MARGIN_PERCENT: Final = 100
"""Above the measured worst case. A step that needs more than its limit lands for nobody."""


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """Wire bytes, their id, and the last block height at which they can still land.

    num_added: instructions in front of the caller's, for the compute budget. num_units: the limit
    of compute units, on which a priority fee is charged.
    """

    raw: bytes
    signature: Signature
    last_valid_height: int
    num_signatures: int
    num_added: int
    num_units: int


@dataclass(frozen=True, slots=True)
class ComputeBudget:
    """Limit per instruction of our program, from the measured worst case, and the price per unit.

    micro_lamports_per_unit: the priority fee; 0 adds no instruction for it. It is charged on the
    limit, not on what is used, which is why the limit is close to the measured units.
    """

    program: Pubkey
    units: Mapping[bytes, int]
    micro_lamports_per_unit: int = 0

    @staticmethod
    def packaged(codec: ProgramCodec) -> ComputeBudget:
        """Read the committed table; without one every instruction gets the network's default."""
        table: dict[bytes, int] = {}
        if artifacts.exists(artifacts.COMPUTE_UNITS):
            rows = artifacts.read_json(artifacts.COMPUTE_UNITS).get("instructions")
            table = _units(codec, rows)
        return ComputeBudget(codec.program_id, table)

    def limit(self, instructions: Sequence[Instruction]) -> int:
        """Return the compute-unit limit of a transaction with these instructions."""
        total = 2 * BUILTIN_UNITS + sum(self._units_of(one) for one in instructions)
        return min(total, MAX_COMPUTE_UNITS - MAX_SPARE_UNITS)

    def _units_of(self, instruction: Instruction) -> int:
        if instruction.program_id == SYSTEM_PROGRAM:
            return BUILTIN_UNITS
        if instruction.program_id != self.program:
            return UNMEASURED_UNITS
        return self.units.get(bytes(instruction.data[:DISCRIMINATOR_BYTES]), UNMEASURED_UNITS)


def assemble(
    instructions: Sequence[Instruction],
    signers: Sequence[Keypair],
    blockhash: tuple[Hash, int],
    budget: ComputeBudget,
    spare_units: int = 0,
) -> SignedTransaction:
    """Build and sign a legacy transaction; the first signer pays the fee.

    blockhash comes with the last block height at which it is good, as Rpc.latest_blockhash says.
    spare_units are added to the limit, which makes otherwise equal transactions differ.

    Raises MissingSignerError when an instruction needs a key that is not among the signers, and
    TransactionTooLargeError above 1232 bytes.
    """
    if not signers:
        raise MissingSignerError(["the fee payer"])
    num_units = budget.limit(instructions) + spare_units
    prefix = [set_compute_unit_limit(num_units)]
    if budget.micro_lamports_per_unit:
        prefix.append(set_compute_unit_price(budget.micro_lamports_per_unit))
    keys = {signer.pubkey(): signer for signer in signers}  # solders derives a public key anew
    payer = next(iter(keys))
    message = Message.new_with_blockhash([*prefix, *instructions], payer, blockhash[0])
    needed = message.account_keys[: message.header.num_required_signatures]
    missing = [str(key) for key in needed if key not in keys]
    if missing:
        raise MissingSignerError(missing)
    signed_bytes = bytes(message)
    size_bytes = 1 + 64 * len(needed) + len(signed_bytes)
    if size_bytes > MAX_TRANSACTION_BYTES:
        raise TransactionTooLargeError(size_bytes, MAX_TRANSACTION_BYTES)
    signatures = [keys[key].sign_message(signed_bytes) for key in needed]
    return SignedTransaction(
        bytes(Transaction.populate(message, signatures)),
        signatures[0],
        blockhash[1],
        len(needed),
        len(prefix),
        num_units,
    )


def _units(codec: ProgramCodec, rows: object) -> dict[bytes, int]:
    """Turn the table's rows into limits. Room for unlucky address searches is in its numbers."""
    table: dict[bytes, int] = {}
    for name, row in rows.items() if isinstance(rows, dict) else ():
        spec = codec.instructions.get(name)
        units = row.get("compute_units") if isinstance(row, dict) else None
        if spec is None or not isinstance(units, int):
            raise ArtifactError(
                artifacts.COMPUTE_UNITS,
                "compute units of known instructions",
                f"{name}: {row!r}",
                "regenerate it with scripts/gen/compute_units.py",
            )
        table[spec.discriminator] = units * (100 + MARGIN_PERCENT) // 100
    return table
