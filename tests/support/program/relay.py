"""Programs of strangers, made by hand for one transaction: they call other programs as told.

Owns: the bytes of such a program. It knows the size of every account that it is given, so it finds
them in its input without reading it; a real wrapper would parse, and call in the same way.
Next: tests/program/test_events.py.
"""

import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

from troth_localnet.svm import Chain

sys.path.insert(0, str(Path(__file__).parents[3] / "programs/toolchain"))

from troth_toolchain.elf import image_v0
from troth_toolchain.elf.program import (
    LoadAddress,
    Place,
    Pointer,
    Program,
    Syscall,
)

INPUT = 0x4_0000_0000
"""Address at which a program finds its accounts."""
GROWTH_BYTES = 10_240
CALL, EXIT, LDDW, MOVE = 0x85, 0x95, 0x18, 0xB7


def deploy(chain: Chain, program: Pubkey, calls: Sequence[Instruction]) -> Instruction:
    """Put a program on the chain that makes these calls in order; return what starts it.

    All calls take the same accounts, which the transaction passes on. Without calls the program
    accepts anything.
    """
    metas = _with_programs(calls)
    accounts = [chain.accounts.get(meta.pubkey) or _nobody() for meta in metas]
    chain.add_program(program, image_v0.write(_program(calls, metas, accounts)))
    return Instruction(program, b"", metas)


def _with_programs(calls: Sequence[Instruction]) -> list[AccountMeta]:
    """The accounts of the calls, and the called programs where those are not among them."""
    metas = list(calls[0].accounts) if calls else []
    assert all(list(call.accounts) == metas for call in calls)
    for called in dict.fromkeys(call.program_id for call in calls):
        if called not in [meta.pubkey for meta in metas]:
            metas.append(AccountMeta(called, is_signer=False, is_writable=False))
    return metas


def _nobody() -> Account:
    return Account(0, b"", Pubkey.default())


def _program(
    calls: Sequence[Instruction], metas: Sequence[AccountMeta], accounts: Sequence[Account]
) -> Program:
    made = Program(functions={0: "entrypoint"})
    infos = _account_infos(made.rodata, metas, accounts)
    for call in calls:
        place = _instruction(made, call)
        for register, target in ((1, place), (2, infos)):
            made.loads.append(LoadAddress(len(made.text), Place("rodata", target)))
            made.text += _step(LDDW, register) + _step(0)
        made.text += _step(MOVE, 3, len(metas)) + _step(MOVE, 4) + _step(MOVE, 5)
        made.syscalls.append(Syscall(len(made.text), "sol_invoke_signed_c"))
        made.text += _step(CALL, value=-1)
    made.text += _step(MOVE, 0) + _step(EXIT)
    return made


def _step(code: int, target: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, target, 0, value)


def _account_infos(
    rodata: bytearray, metas: Sequence[AccountMeta], accounts: Sequence[Account]
) -> int:
    """Write what a call says of each account, with its places in the input; return where."""
    start, at = len(rodata), INPUT + 8
    for meta, account in zip(metas, accounts, strict=True):
        key, size = at + 8, len(account.data)
        owner, lamports, data = key + 32, key + 64, key + 80
        flags = (meta.is_signer, meta.is_writable, account.executable)
        epoch = 2**64 - 1
        rodata += struct.pack("<6Q3?5x", key, lamports, size, data, owner, epoch, *flags)
        end = data + size + GROWTH_BYTES
        at = end + -end % 8 + 8
    return start


def _instruction(made: Program, call: Instruction) -> int:
    """Write one call; return where it begins."""
    rodata, data = made.rodata, bytes(call.data)
    start = len(rodata)
    rodata += struct.pack("<5Q", 0, 0, len(call.accounts), 0, len(data))
    made.pointers.append(Pointer(start, _written(rodata, bytes(call.program_id))))
    keys = [_written(rodata, bytes(meta.pubkey)) for meta in call.accounts]
    made.pointers.append(Pointer(start + 8, Place("rodata", len(rodata))))
    for key, meta in zip(keys, call.accounts, strict=True):
        made.pointers.append(Pointer(len(rodata), key))
        rodata += struct.pack("<Q2?6x", 0, meta.is_writable, meta.is_signer)
    made.pointers.append(Pointer(start + 24, _written(rodata, data)))
    return start


def _written(rodata: bytearray, data: bytes) -> Place:
    place = Place("rodata", len(rodata))
    rodata += data + bytes(-len(data) % 8)
    return place
