"""Writes sBPF V3 images (SIMD-0178, 0189, 0377): two segments, nothing left to relocate.

Owns: the V3 file layout; V0 and V3 differ only in this last step. Shipped for clusters that deploy
nothing older. Next: `image_v0.py` is the format that every runtime loads.
"""

import struct

from troth_toolchain.elf.opcodes import check
from troth_toolchain.elf.program import Place, Program
from troth_toolchain.elf.syscalls import murmur3_32

_MACHINE_BPF = 247
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
_RODATA_BASE = 0
_TEXT_BASE = 1 << 32
_READ = 4
_EXECUTE = 1


def write(program: Program) -> bytes:
    """Return the V3 image of `program`; raises `LinkError` for a forbidden opcode."""
    check(program, 3)
    text = bytearray(program.text)
    rodata = bytearray(program.rodata)
    for load in program.loads:
        address = _address(load.target)
        struct.pack_into("<I4xI", text, load.at + 4, address & 0xFFFFFFFF, address >> 32)
    for pointer in program.pointers:
        struct.pack_into("<Q", rodata, pointer.at, _address(pointer.target))
    for syscall in program.syscalls:
        text[syscall.at + 1] &= 0x0F
        struct.pack_into("<I", text, syscall.at + 4, murmur3_32(syscall.name.encode()))
    rodata.extend(bytes(-len(rodata) % 8))
    rodata_at = _HEADER.size + 2 * _SEGMENT.size
    text_at = rodata_at + len(rodata)
    header = _HEADER.pack(
        _IDENT, 3, _MACHINE_BPF, 1, _TEXT_BASE + program.entry, 64, 0, 3, 64, 56, 2, 64, 0, 0
    )
    segments = _segment(_READ, rodata_at, _RODATA_BASE, len(rodata)) + _segment(
        _EXECUTE, text_at, _TEXT_BASE, len(text)
    )
    return bytes(header + segments + rodata + text)


def _address(place: Place) -> int:
    return (_TEXT_BASE if place.block == "text" else _RODATA_BASE) + place.offset


def _segment(flags: int, at: int, address: int, size: int) -> bytes:
    return _SEGMENT.pack(1, flags, at, address, address, size, size, 8)
