"""The opcode allow-list: the last check before an image is written.

Owns: which instructions each sBPF version has. Next: `image_v0.py`, `image_v3.py`.
"""

import struct
from typing import Literal

from troth_toolchain.elf.program import INSTRUCTION_BYTES, Program
from troth_toolchain.errors import LinkError

Version = Literal[0, 3]

LDDW = 0x18
CALL = 0x85
CALLX = 0x8D
_MEMORY = {0x61, 0x69, 0x71, 0x79, 0x62, 0x6A, 0x72, 0x7A, 0x63, 0x6B, 0x73, 0x7B}
# add sub mul div or and lsh rsh mod xor mov arsh, each with an immediate and a register form.
_ARITHMETIC = (0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xA0, 0xB0, 0xC0)
# jeq jgt jge jset jne jsgt jsge jlt jle jslt jsle
_CONDITIONS = (0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xD0)
_NEGATE = {0x84, 0x87}
_BYTE_ORDER = {0xD4, 0xDC}
_CONTROL = {0x05, CALL, CALLX, 0x95}


def _forms(codes: tuple[int, ...], instruction_class: int) -> set[int]:
    return {code | source | instruction_class for code in codes for source in (0x00, 0x08)}


_V0 = frozenset(
    {LDDW}
    | _MEMORY
    | _forms(_ARITHMETIC, 0x04)
    | _forms(_ARITHMETIC, 0x07)
    | _forms(_CONDITIONS, 0x05)
    | _NEGATE
    | _BYTE_ORDER
    | _CONTROL
)
ALLOWED: dict[Version, frozenset[int]] = {0: _V0, 3: _V0 | _forms(_CONDITIONS, 0x06)}
# A non-zero offset field turns div/mod into signed division and mov into a sign-extending move
# on newer BPF machines; sBPF would silently execute the plain form.
_NEEDS_ZERO_OFFSET = {
    code | source | instruction_class
    for code in (0x30, 0x90, 0xB0)
    for source in (0x00, 0x08)
    for instruction_class in (0x04, 0x07)
}


def check(program: Program, version: Version) -> None:
    """Raise `LinkError` naming the function of the first instruction that is not allowed."""
    allowed = ALLOWED[version]
    at = 0
    while at < len(program.text):
        code = program.text[at]
        (offset,) = struct.unpack_from("<h", program.text, at + 2)
        if code not in allowed:
            _refuse(program, at, f"opcode {code:#04x} is not in sBPF V{version}")
        if code in _NEEDS_ZERO_OFFSET and offset:
            _refuse(program, at, f"opcode {code:#04x} with offset {offset} (signed form)")
        at += 2 * INSTRUCTION_BYTES if code == LDDW else INSTRUCTION_BYTES


def _refuse(program: Program, at: int, what: str) -> None:
    raise LinkError(f"{what}, at text offset {at:#x} in {program.function_at(at)}")
