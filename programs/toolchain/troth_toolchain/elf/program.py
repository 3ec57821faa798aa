"""Flattens an object into one text block, one read-only block and a list of fixups.

Owns: what is common to all sBPF versions: layout inside the blocks, internal calls, refusal of
writable data and of unknown relocations. Never: knows an address.
Next: `image_v0.py`, `image_v3.py`.
"""

import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from troth_toolchain.elf import object as elf_object
from troth_toolchain.elf.object import ObjectFile, Relocation, Section, Symbol
from troth_toolchain.elf.syscalls import SYSCALLS
from troth_toolchain.errors import LinkError

INSTRUCTION_BYTES = 8
_RELOCATION_LOAD_ADDRESS = 1
_RELOCATION_POINTER = 2
_RELOCATION_CALL = 10
_ENTRY = "entrypoint"
_SHARED = bytes.fromhex("85000000ffffffff 9500000000000000")  # call -1; exit
_MIN_SHARED = 3

Block = Literal["text", "rodata"]


@dataclass(frozen=True)
class Place:
    """An offset into one of the two blocks."""

    block: Block
    offset: int


@dataclass(frozen=True)
class LoadAddress:
    """The `lddw` at text offset `at` loads the address of `target`."""

    at: int
    target: Place


@dataclass(frozen=True)
class Pointer:
    """Eight bytes at rodata offset `at` hold the address of `target`."""

    at: int
    target: Place


@dataclass(frozen=True)
class Syscall:
    """The `call` at text offset `at` calls the runtime's `name`."""

    at: int
    name: str


@dataclass
class Program:
    """A program without addresses; internal calls are already resolved in `text`."""

    text: bytearray = field(default_factory=bytearray)
    rodata: bytearray = field(default_factory=bytearray)
    entry: int = 0
    loads: list[LoadAddress] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)
    syscalls: list[Syscall] = field(default_factory=list)
    functions: dict[int, str] = field(default_factory=dict)

    def function_at(self, offset: int) -> str:
        """Name of the function that covers a text offset."""
        starts = [start for start in self.functions if start <= offset]
        return self.functions[max(starts)] if starts else "?"


def flatten(source: ObjectFile) -> Program:
    """Lay out `source`; raises `LinkError` for what the loader would refuse."""
    return _Flattener(source).run()


class _Flattener:
    def __init__(self, source: ObjectFile) -> None:
        self._source = source
        self._program = Program()
        self._places: dict[int, Place] = {}

    def run(self) -> Program:
        program = self._program
        for section in self._source.sections:
            if section.flags & elf_object.FLAG_ALLOC and section.num_bytes:
                self._place(section)
        for index, relocations in self._source.relocations.items():
            if index in self._places:
                for relocation in relocations:
                    self._relocate(self._places[index], relocation)
        for symbol in self._source.symbols:
            if symbol.is_function and symbol.section in self._places:
                program.functions[self._target(symbol).offset] = symbol.name
        entries = [start for start, name in program.functions.items() if name == _ENTRY]
        if len(entries) != 1:
            raise LinkError(
                f"expected one function {_ENTRY!r}, found {len(entries)}: is the crate built "
                "with the feature no-entrypoint, or without #[program]?"
            )
        program.entry = entries[0]
        self._share_syscalls()
        return program

    def _place(self, section: Section) -> None:
        is_code = bool(section.flags & elf_object.FLAG_EXECUTE)
        is_writable = bool(section.flags & elf_object.FLAG_WRITE)
        if section.kind not in (elf_object.SECTION_BITS, elf_object.SECTION_NOBITS):
            raise LinkError(f"unexpected kind {section.kind} of section {section.name}")
        if section.kind == elf_object.SECTION_NOBITS or (
            is_writable and not section.name.startswith(".data.rel")
        ):
            raise LinkError(
                f"writable data ({section.name}, {section.num_bytes} bytes): the loader refuses "
                "it. Look for a static with interior mutability"
            )
        block = self._program.text if is_code else self._program.rodata
        align = INSTRUCTION_BYTES if is_code else max(8, section.align)
        block.extend(bytes(-len(block) % align))
        self._places[section.index] = Place("text" if is_code else "rodata", len(block))
        block.extend(section.data)

    def _relocate(self, base: Place, relocation: Relocation) -> None:
        at = base.offset + relocation.offset
        kind = (base.block, relocation.kind)
        if kind == ("text", _RELOCATION_LOAD_ADDRESS):
            self._load_address(at, relocation.symbol)
        elif kind == ("text", _RELOCATION_CALL):
            self._call(at, relocation.symbol)
        elif kind == ("rodata", _RELOCATION_POINTER):
            self._pointer(at, relocation.symbol)
        else:
            raise LinkError(
                f"unexpected relocation {relocation.kind} in {base.block} "
                f"against {relocation.symbol.name!r}"
            )

    def _load_address(self, at: int, symbol: Symbol) -> None:
        text = self._program.text
        low, high = struct.unpack_from("<I4xI", text, at + 4)
        self._program.loads.append(LoadAddress(at, self._target(symbol, low | high << 32)))

    def _pointer(self, at: int, symbol: Symbol) -> None:
        (addend,) = struct.unpack_from("<Q", self._program.rodata, at)
        self._program.pointers.append(Pointer(at, self._target(symbol, addend)))

    def _call(self, at: int, symbol: Symbol) -> None:
        text = self._program.text
        if symbol.section == 0:
            if symbol.name not in SYSCALLS:
                raise LinkError(
                    f"call of {symbol.name!r}, which is neither defined nor a syscall: "
                    "the IR rules miss an operation, or a crate needs a C library"
                )
            self._program.syscalls.append(Syscall(at, symbol.name))
            return
        # llc stores the callee's position in the section, counted in instructions, minus one.
        (stored,) = struct.unpack_from("<i", text, at + 4)
        self._link(at, self._target(symbol).offset + (stored + 1) * INSTRUCTION_BYTES)

    def _share_syscalls(self) -> None:
        """Give each frequent syscall one place: a call of it needs a relocation of 16 bytes."""
        program = self._program
        counts = Counter(syscall.name for syscall in program.syscalls)
        shared = sorted(name for name in counts if counts[name] >= _MIN_SHARED)
        places = {name: len(program.text) + i * len(_SHARED) for i, name in enumerate(shared)}
        program.text += _SHARED * len(shared)
        program.functions |= {place: name for name, place in places.items()}
        single = [syscall for syscall in program.syscalls if syscall.name not in places]
        for syscall in program.syscalls:
            if syscall.name in places:
                self._link(syscall.at, places[syscall.name])
        program.syscalls = single + [Syscall(place, name) for name, place in places.items()]

    def _link(self, at: int, target: int) -> None:
        text = self._program.text
        struct.pack_into("<i", text, at + 4, (target - at) // INSTRUCTION_BYTES - 1)
        text[at + 1] = text[at + 1] & 0x0F | 0x10

    def _target(self, symbol: Symbol, addend: int = 0) -> Place:
        base = self._places.get(symbol.section)
        if base is None:
            raise LinkError(f"address of {symbol.name!r}, which is defined nowhere")
        return Place(base.block, base.offset + symbol.value + addend)
