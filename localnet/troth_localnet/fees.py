"""Fees of a transaction: for signatures, and for priority, which LiteSVM 0.26 does not take.

Owns: reading compute-budget instructions; fees in lamports.
Never: moves lamports. Next: `execution.py`, which does.
"""

from __future__ import annotations

from typing import Final

from solders.compute_budget import ID as COMPUTE_BUDGET_PROGRAM
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey

LAMPORTS_PER_SIGNATURE: Final = 5_000
MAX_COMPUTE_UNITS: Final = 1_400_000
_UNITS_PER_INSTRUCTION: Final = 200_000
_UNITS_PER_BUILTIN_INSTRUCTION: Final = 3_000
_MICRO_PER_LAMPORT: Final = 1_000_000
_SET_LIMIT, _SET_PRICE = 2, 3

_BUILTINS: Final = frozenset(
    Pubkey.from_string(text)
    for text in (
        "11111111111111111111111111111111",
        "AddressLookupTab1e1111111111111111111111111",
        "BPFLoader1111111111111111111111111111111111",
        "BPFLoader2111111111111111111111111111111111",
        "BPFLoaderUpgradeab1e11111111111111111111111",
        "ComputeBudget111111111111111111111111111111",
        "Ed25519SigVerify111111111111111111111111111",
        "KeccakSecp256k11111111111111111111111111111",
        "LoaderV411111111111111111111111111111111111",
        "Vote111111111111111111111111111111111111111",
    )
)
_SIGNATURE_PROGRAMS: Final = frozenset(
    Pubkey.from_string(text)
    for text in (
        "Ed25519SigVerify111111111111111111111111111",
        "KeccakSecp256k11111111111111111111111111111",
        "Secp256r1SigVerify1111111111111111111111111",
    )
)


def signature_fee(message: Message | MessageV0) -> int:
    """Return lamports for the signatures, those checked by signature programs included."""
    num_checked = sum(
        instruction.data[0] if instruction.data else 0
        for instruction in message.instructions
        if message.account_keys[instruction.program_id_index] in _SIGNATURE_PROGRAMS
    )
    num_signatures = int(message.header.num_required_signatures)
    return LAMPORTS_PER_SIGNATURE * (num_signatures + num_checked)


def unit_price(message: Message | MessageV0) -> int:
    """Return the offered price of a compute unit, in micro-lamports."""
    return _compute_budget(message)[1]


def priority_fee(message: Message | MessageV0) -> int:
    """Return the lamports of the priority fee: unit limit times price, rounded up."""
    limit, price = _compute_budget(message)
    return -(-limit * price // _MICRO_PER_LAMPORT)


def _compute_budget(message: Message | MessageV0) -> tuple[int, int]:
    """Read unit limit (requested or default) and price; malformed requests fail in the VM."""
    requested: int | None = None
    price = default = 0
    for instruction in message.instructions:
        program = message.account_keys[instruction.program_id_index]
        builtin = program in _BUILTINS
        default += _UNITS_PER_BUILTIN_INSTRUCTION if builtin else _UNITS_PER_INSTRUCTION
        data = bytes(instruction.data)
        if program != COMPUTE_BUDGET_PROGRAM or not data:
            continue
        if data[0] == _SET_LIMIT and len(data) == 5:
            requested = int.from_bytes(data[1:], "little")
        elif data[0] == _SET_PRICE and len(data) == 9:
            price = int.from_bytes(data[1:], "little")
    return min(default if requested is None else requested, MAX_COMPUTE_UNITS), price
