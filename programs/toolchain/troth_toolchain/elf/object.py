"""Reads a relocatable ELF object for BPF, as llc writes it.

Owns: parsing and its refusals. Never: lays anything out. Next: `program.py`.
"""

import struct
from dataclasses import dataclass

from troth_toolchain.errors import LinkError

_HEADER_BYTES = 64
_MACHINE_BPF = 247
_TYPE_RELOCATABLE = 1
SECTION_BITS = 1
SECTION_SYMBOLS = 2
SECTION_RELA = 4
SECTION_NOBITS = 8
SECTION_REL = 9
FLAG_WRITE = 1
FLAG_ALLOC = 2
FLAG_EXECUTE = 4
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQ")
_SYMBOL_TYPE_FUNCTION = 2


@dataclass(frozen=True)
class Section:
    """One section header with its bytes (empty for NOBITS)."""

    index: int
    name: str
    kind: int
    flags: int
    num_bytes: int
    link: int
    info: int
    align: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """A symbol: `section` 0 means undefined, `value` is an offset into its section."""

    name: str
    section: int
    value: int
    is_function: bool


@dataclass(frozen=True)
class Relocation:
    """Patch `kind` at `offset` of the section it belongs to, with the address of `symbol`."""

    offset: int
    kind: int
    symbol: Symbol


@dataclass(frozen=True)
class ObjectFile:
    """A parsed object; `relocations` maps a section's index to its relocations."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: dict[int, tuple[Relocation, ...]]


def parse(data: bytes) -> ObjectFile:
    """Parse a 64-bit little-endian BPF object; raises `LinkError` for anything else."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < _HEADER_BYTES:
        raise LinkError(f"expected a 64-bit little-endian ELF object, found {data[:6]!r}")
    kind, machine = struct.unpack_from("<HH", data, 16)
    if (kind, machine) != (_TYPE_RELOCATABLE, _MACHINE_BPF):
        raise LinkError(f"expected a relocatable BPF object, found type {kind}, machine {machine}")
    try:
        sections = _sections(data)
        symbols = _symbols(sections)
        relocations = _relocations(sections, symbols)
    except (struct.error, IndexError, ValueError) as error:
        raise LinkError(f"expected a whole object, found a damaged one: {error}") from error
    return ObjectFile(sections, symbols, relocations)


def _sections(data: bytes) -> tuple[Section, ...]:
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", data, 58)
    raw = [_SECTION.unpack_from(data, table + i * entry_bytes) for i in range(count)]
    names_offset = raw[names_index][4]
    sections = []
    for index, (name, kind, flags, _, offset, size, link, info, align, _) in enumerate(raw):
        content = b"" if kind in (0, SECTION_NOBITS) else data[offset : offset + size]
        title = _string(data, names_offset + name)
        sections.append(Section(index, title, kind, flags, size, link, info, align, content))
    return tuple(sections)


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    tables = [section for section in sections if section.kind == SECTION_SYMBOLS]
    if len(tables) != 1:
        raise LinkError(f"expected one symbol table, found {len(tables)}")
    names = sections[tables[0].link].data
    return tuple(
        Symbol(_string(names, name), section, value, info & 15 == _SYMBOL_TYPE_FUNCTION)
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(tables[0].data)
    )


def _relocations(
    sections: tuple[Section, ...], symbols: tuple[Symbol, ...]
) -> dict[int, tuple[Relocation, ...]]:
    found: dict[int, tuple[Relocation, ...]] = {}
    for section in sections:
        if section.kind == SECTION_RELA:
            raise LinkError(f"expected REL relocations, found RELA in {section.name}")
        if section.kind == SECTION_REL:
            found[section.info] = tuple(
                Relocation(offset, info & 0xFFFFFFFF, symbols[info >> 32])
                for offset, info in _RELOCATION.iter_unpack(section.data)
            )
    return found


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
