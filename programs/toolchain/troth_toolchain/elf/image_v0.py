"""Writes sBPF V0 images, which every Solana runtime loads.

Owns: the V0 file layout, that of a shared object. Text and read-only data lie at their file
offsets; the loader maps them at 2^32. Besides there are a dynamic section, symbols for the syscalls
and one kind of relocation (10: look up a syscall by name). Addresses are written as the machine
sees them: the loader would add 2^32 only where a relocation of 16 bytes asks for it.
Next: `image_v3.py`.
"""

import struct
from dataclasses import dataclass, field

from troth_toolchain.elf.opcodes import CALLX, LDDW, check
from troth_toolchain.elf.program import INSTRUCTION_BYTES, Place, Program

_MACHINE_BPF = 247
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_PAIR = struct.Struct("<QQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
_NUM_SEGMENTS = 3
_NUM_DYNAMIC = 9
_RELOCATION_SYSCALL = 10
_GLOBAL_SYMBOL = 0x10
_READ, _WRITE, _EXECUTE = 4, 2, 1
_PROGRAM_START = 1 << 32


def write(program: Program) -> bytes:
    """Return the V0 image of `program`; raises `LinkError` for a forbidden opcode."""
    check(program, 0)
    layout = _Layout(program)
    text, rodata = _resolve(program, layout)
    symbols, strings, indices = _dynamic_symbols(program)
    relocations = _relocations(program, layout, indices)

    body = bytearray(layout.text_at)
    body += text
    _pad(body, 16)
    body += rodata
    _pad(body, 8)
    tables = _Tables(len(body), symbols, strings, relocations)
    body += tables.content()
    names = _SectionTable()
    _describe_sections(names, layout, tables, program)
    names_at = len(body)
    body += names.finish(names_at)
    _pad(body, 8)
    sections_at = len(body)
    body += b"".join(names.rows)
    head = _head(program, layout, tables, (sections_at, len(names.rows)))
    body[: len(head)] = head
    return bytes(body)


class _Layout:
    """File offsets of the two blocks; the machine maps them at `_PROGRAM_START`."""

    def __init__(self, program: Program) -> None:
        self.text_at = _HEADER.size + _NUM_SEGMENTS * _SEGMENT.size
        end = self.text_at + len(program.text)
        self.rodata_at = end + -end % 16

    def address(self, place: Place) -> int:
        block_at = self.text_at if place.block == "text" else self.rodata_at
        return _PROGRAM_START + block_at + place.offset


@dataclass
class _Tables:
    """The dynamic section and what it points to, one after the other from `at` on."""

    at: int
    symbols: bytes
    strings: bytes
    relocations: list[tuple[int, int]]
    num_dynamic_bytes: int = field(default=_NUM_DYNAMIC * _PAIR.size, init=False)

    @property
    def symbols_at(self) -> int:
        return self.at + self.num_dynamic_bytes

    @property
    def strings_at(self) -> int:
        return self.symbols_at + len(self.symbols)

    @property
    def relocations_at(self) -> int:
        end = self.strings_at + len(self.strings)
        return end + -end % 8

    @property
    def num_relocation_bytes(self) -> int:
        return len(self.relocations) * _PAIR.size

    @property
    def end(self) -> int:
        return self.relocations_at + self.num_relocation_bytes

    def content(self) -> bytes:
        entries = [
            (0x1E, 4),  # FLAGS = TEXTREL
            (0x11, self.relocations_at),  # REL
            (0x12, self.num_relocation_bytes),  # RELSZ
            (0x13, _PAIR.size),  # RELENT
            (0x06, self.symbols_at),  # SYMTAB
            (0x0B, _SYMBOL.size),  # SYMENT
            (0x05, self.strings_at),  # STRTAB
            (0x0A, len(self.strings)),  # STRSZ
        ]
        if not self.relocations:
            entries = [entry for entry in entries if entry[0] not in (0x11, 0x12, 0x13)]
        entries += [(0, 0)] * (_NUM_DYNAMIC - len(entries))
        content = bytearray(b"".join(_PAIR.pack(*entry) for entry in entries))
        content += self.symbols + self.strings
        content += bytes(self.relocations_at - self.at - len(content))
        return bytes(content) + b"".join(_PAIR.pack(*entry) for entry in self.relocations)


def _resolve(program: Program, layout: _Layout) -> tuple[bytearray, bytearray]:
    text = bytearray(program.text)
    rodata = bytearray(program.rodata)
    for load in program.loads:
        address = layout.address(load.target)
        struct.pack_into("<I4xI", text, load.at + 4, address & 0xFFFFFFFF, address >> 32)
    for pointer in program.pointers:
        struct.pack_into("<Q", rodata, pointer.at, layout.address(pointer.target))
    for syscall in program.syscalls:
        text[syscall.at + 1] = 0x10
        struct.pack_into("<i", text, syscall.at + 4, -1)
    at = 0
    while at < len(text):
        if text[at] == CALLX:  # V0 keeps the register's number in the immediate
            register = text[at + 1] & 0x0F
            text[at + 1] = 0
            struct.pack_into("<i", text, at + 4, register)
        at += 2 * INSTRUCTION_BYTES if text[at] == LDDW else INSTRUCTION_BYTES
    return text, rodata


def _dynamic_symbols(program: Program) -> tuple[bytes, bytes, dict[str, int]]:
    symbols = bytearray(_SYMBOL.size)
    strings = bytearray(b"\0")
    indices: dict[str, int] = {}
    for syscall in program.syscalls:
        if syscall.name in indices:
            continue
        indices[syscall.name] = len(indices) + 1
        symbols += _SYMBOL.pack(len(strings), _GLOBAL_SYMBOL, 0, 0, 0, 0)
        strings += syscall.name.encode() + b"\0"
    return bytes(symbols), bytes(strings), indices


def _relocations(
    program: Program, layout: _Layout, indices: dict[str, int]
) -> list[tuple[int, int]]:
    return [
        (layout.text_at + call.at, indices[call.name] << 32 | _RELOCATION_SYSCALL)
        for call in program.syscalls
    ]


class _SectionTable:
    """Section headers and their name table, the last section of the file."""

    def __init__(self) -> None:
        self.rows: list[bytes] = [bytes(_SECTION.size)]
        self._names = bytearray(b"\0")

    def add(self, name: str, kind: int, flags: int, span: tuple[int, int], *more: int) -> None:
        """Append a header; `more` is link, info, align, entry size."""
        link, info, align, entry = more
        at, size = span
        title = len(self._names)
        self._names += name.encode() + b"\0"
        self.rows.append(_SECTION.pack(title, kind, flags, at, at, size, link, info, align, entry))

    def finish(self, at: int) -> bytes:
        """Append `.shstrtab` at file offset `at` and return the names."""
        title = len(self._names)
        self._names += b".shstrtab\0"
        self.rows.append(_SECTION.pack(title, 3, 0, 0, at, len(self._names), 0, 0, 1, 0))
        return bytes(self._names)


def _describe_sections(
    table: _SectionTable, layout: _Layout, tables: _Tables, program: Program
) -> None:
    alloc, write_, execute = 2, 1, 4
    table.add(".text", 1, alloc | execute, (layout.text_at, len(program.text)), 0, 0, 8, 0)
    if program.rodata:
        table.add(".rodata", 1, alloc, (layout.rodata_at, len(program.rodata)), 0, 0, 8, 0)
    symbols = len(table.rows) + 1
    strings = symbols + 1
    dynamic = (tables.at, tables.num_dynamic_bytes)
    table.add(".dynamic", 6, alloc | write_, dynamic, strings, 0, 8, _PAIR.size)
    dynsym = (tables.symbols_at, len(tables.symbols))
    table.add(".dynsym", 11, alloc, dynsym, strings, 1, 8, _SYMBOL.size)
    table.add(".dynstr", 3, alloc, (tables.strings_at, len(tables.strings)), 0, 0, 1, 0)
    relocations = (tables.relocations_at, tables.num_relocation_bytes)
    table.add(".rel.dyn", 9, alloc, relocations, symbols, 0, 8, _PAIR.size)


def _head(program: Program, layout: _Layout, tables: _Tables, sections: tuple[int, int]) -> bytes:
    sections_at, num_sections = sections
    header = _HEADER.pack(
        *(_IDENT, 3, _MACHINE_BPF, 1, layout.text_at + program.entry, _HEADER.size, sections_at),
        *(0, _HEADER.size, _SEGMENT.size, _NUM_SEGMENTS, _SECTION.size),
        *(num_sections, num_sections - 1),
    )
    spans = (
        (1, _READ | _EXECUTE, layout.text_at, len(program.text)),
        (1, _READ, layout.rodata_at, tables.end - layout.rodata_at),
        (2, _READ | _WRITE, tables.at, tables.num_dynamic_bytes),
    )
    segments = [_SEGMENT.pack(kind, flags, at, at, at, n, n, 8) for kind, flags, at, n in spans]
    return header + b"".join(segments)


def _pad(block: bytearray, align: int) -> None:
    block.extend(bytes(-len(block) % align))
