"""The program loaders of Solana: what their accounts hold, and how the upgradeable one is called.

Owns: byte layouts, and the derived addresses of program data and of a deploy's buffer.
Never: sends anything. Next: program_image.py for the code.
Source: `UpgradeableLoaderState` and `UpgradeableLoaderInstruction` of the crate
solana-loader-v3-interface 6.1.1, in bincode: a u32 for the variant, then its fields.

    program (36 bytes) ──> program data (45 bytes, then code)     buffer (37 bytes, then code)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey
from solders.system_program import (
    ID as SYSTEM_PROGRAM,
)
from solders.system_program import (
    AllocateParams,
    AllocateWithSeedParams,
    AssignParams,
    AssignWithSeedParams,
    TransferParams,
    allocate,
    allocate_with_seed,
    assign,
    assign_with_seed,
    transfer,
)

from troth_coordinator.chain.rpc import Account

UPGRADEABLE: Final = Pubkey.from_string("BPFLoaderUpgradeab1e11111111111111111111111")
FIXED: Final = Pubkey.from_string("BPFLoader2111111111111111111111111111111111")
"""The loader before: the account of a program is its code, for ever."""
FEATURES: Final = Pubkey.from_string("Feature111111111111111111111111111111111111")

BUFFER_HEADER_BYTES: Final = 37
PROGRAM_BYTES: Final = 36
DATA_HEADER_BYTES: Final = 45
MIN_EXTENSION_BYTES: Final = 10_240
"""Clusters with SIMD-0431 refuse to extend a program by less."""
MAX_CODE_BYTES: Final = 10 * 2**20 - DATA_HEADER_BYTES
CHUNK_BYTES: Final = 972
"""The most that one transaction of 1232 bytes writes, signed by one key, with a limit of units."""

_RENT = Pubkey.from_string("SysvarRent111111111111111111111111111111111")
_CLOCK = Pubkey.from_string("SysvarC1ock11111111111111111111111111111111")
_BUFFER, _PROGRAM, _DATA = 1, 2, 3
_INITIALIZE, _WRITE, _DEPLOY, _UPGRADE, _SET_AUTHORITY, _CLOSE, _EXTEND = range(7)
_TAG = struct.Struct("<I")
_DATA_HEADER = struct.Struct("<IQB32s")
_BUFFER_HEADER = struct.Struct("<IB32s")


@dataclass(frozen=True, slots=True)
class Buffer:
    """Code on its way into a program. authority: None where nobody may change it."""

    authority: Pubkey | None
    code: bytes


@dataclass(frozen=True, slots=True)
class ProgramData:
    """Code of a program with the zeros behind it; slot: of the last deploy."""

    slot: int
    authority: Pubkey | None
    code: bytes


def data_address(program: Pubkey) -> Pubkey:
    """Return the account that holds the code of a program of the upgradeable loader."""
    return Pubkey.find_program_address([bytes(program)], UPGRADEABLE)[0]


def buffer_seed(program: Pubkey) -> str:
    """Return the seed of the buffer from which a program is deployed."""
    return sha256(b"troth:buffer" + bytes(program)).hexdigest()[:32]


def buffer_address(authority: Pubkey, program: Pubkey) -> Pubkey:
    """Return the buffer of an authority for a program: the same after each interruption."""
    return Pubkey.create_with_seed(authority, buffer_seed(program), UPGRADEABLE)


def read_buffer(account: Account) -> Buffer | None:
    """Return what a buffer holds; None for an account that is none."""
    if account.owner != UPGRADEABLE or len(account.data) < BUFFER_HEADER_BYTES:
        return None
    kind, has_authority, key = _BUFFER_HEADER.unpack_from(account.data)
    if kind != _BUFFER:
        return None
    authority = Pubkey.from_bytes(key) if has_authority else None
    return Buffer(authority, account.data[BUFFER_HEADER_BYTES:])


def read_data_address(account: Account) -> Pubkey | None:
    """Return where a program's code is; None for an account that is no such program."""
    if account.owner != UPGRADEABLE or len(account.data) < PROGRAM_BYTES:
        return None
    if _TAG.unpack_from(account.data)[0] != _PROGRAM:
        return None
    return Pubkey.from_bytes(account.data[4:PROGRAM_BYTES])


def read_program_data(account: Account) -> ProgramData | None:
    """Return what an account with a program's code holds; None for an account that is none."""
    if account.owner != UPGRADEABLE or len(account.data) < DATA_HEADER_BYTES:
        return None
    kind, slot, has_authority, key = _DATA_HEADER.unpack_from(account.data)
    if kind != _DATA:
        return None
    authority = Pubkey.from_bytes(key) if has_authority else None
    return ProgramData(slot, authority, account.data[DATA_HEADER_BYTES:])


def is_active(feature: Account | None) -> bool:
    """Tell whether a cluster has switched a feature on: a byte 1, then the slot."""
    return feature is not None and feature.owner == FEATURES and feature.data[:1] == b"\x01"


def create_buffer(
    authority: Pubkey, program: Pubkey, num_code_bytes: int, lamports: int
) -> list[Instruction]:
    """Make the buffer of `buffer_address`. lamports: what its account lacks to be kept.

    In parts, because a stranger's lamport at the address would stop the one instruction for all.
    """
    buffer, seed = buffer_address(authority, program), buffer_seed(program)
    space = BUFFER_HEADER_BYTES + num_code_bytes
    return [
        *_pay(authority, buffer, lamports),
        allocate_with_seed(
            AllocateWithSeedParams(
                address=buffer, base=authority, seed=seed, space=space, owner=UPGRADEABLE
            )
        ),
        assign_with_seed(
            AssignWithSeedParams(address=buffer, base=authority, seed=seed, owner=UPGRADEABLE)
        ),
        _call(_TAG.pack(_INITIALIZE), [_changed(buffer), _read(authority)]),
    ]


def write(buffer: Pubkey, authority: Pubkey, offset: int, code: bytes) -> Instruction:
    """Write a part of the code."""
    data = struct.pack("<IIQ", _WRITE, offset, len(code)) + code
    return _call(data, [_changed(buffer), _signer(authority)])


def deploy(
    authority: Pubkey, program: Pubkey, max_code_bytes: int, lamports: int
) -> list[Instruction]:
    """Make the program out of its buffer; the program's key signs. lamports: what it lacks."""
    accounts = [
        AccountMeta(authority, is_signer=True, is_writable=True),
        _changed(data_address(program)),
        _changed(program),
        _changed(buffer_address(authority, program)),
        *(_read(one) for one in (_RENT, _CLOCK, SYSTEM_PROGRAM)),
        _signer(authority),
    ]
    return [
        *_pay(authority, program, lamports),
        allocate(AllocateParams(pubkey=program, space=PROGRAM_BYTES)),
        assign(AssignParams(pubkey=program, owner=UPGRADEABLE)),
        _call(struct.pack("<IQ", _DEPLOY, max_code_bytes), accounts),
    ]


def upgrade(authority: Pubkey, program: Pubkey) -> Instruction:
    """Put the code of the buffer into the program; the buffer's lamports go to the authority."""
    accounts = [
        _changed(data_address(program)),
        _changed(program),
        _changed(buffer_address(authority, program)),
        _changed(authority),
        *(_read(one) for one in (_RENT, _CLOCK)),
        _signer(authority),
    ]
    return _call(_TAG.pack(_UPGRADE), accounts)


def extend(payer: Pubkey, program: Pubkey, num_bytes: int) -> Instruction:
    """Make room for longer code; the payer pays the rent of it."""
    accounts = [
        _changed(data_address(program)),
        _changed(program),
        _read(SYSTEM_PROGRAM),
        AccountMeta(payer, is_signer=True, is_writable=True),
    ]
    return _call(struct.pack("<II", _EXTEND, num_bytes), accounts)


def make_final(authority: Pubkey, program: Pubkey) -> Instruction:
    """Take the authority away for ever."""
    accounts = [_changed(data_address(program)), _signer(authority)]
    return _call(_TAG.pack(_SET_AUTHORITY), accounts)


def close_buffer(buffer: Pubkey, authority: Pubkey) -> Instruction:
    """Give up a buffer; its lamports go to its authority."""
    return _call(_TAG.pack(_CLOSE), [_changed(buffer), _changed(authority), _signer(authority)])


def close_program(program: Pubkey, authority: Pubkey) -> Instruction:
    """End a program for ever; the lamports of its code go to its authority."""
    closed = [_changed(data_address(program)), _changed(authority), _signer(authority)]
    return _call(_TAG.pack(_CLOSE), [*closed, _changed(program)])


def _pay(payer: Pubkey, to: Pubkey, lamports: int) -> list[Instruction]:
    if lamports <= 0:
        return []
    return [transfer(TransferParams(from_pubkey=payer, to_pubkey=to, lamports=lamports))]


def _call(data: bytes, accounts: Sequence[AccountMeta]) -> Instruction:
    return Instruction(UPGRADEABLE, data, list(accounts))


def _changed(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=False, is_writable=True)


def _read(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=False, is_writable=False)


def _signer(key: Pubkey) -> AccountMeta:
    return AccountMeta(key, is_signer=True, is_writable=False)
