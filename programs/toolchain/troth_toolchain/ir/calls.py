"""Rules for calls: the BPF calling convention has five argument registers and no `sret`.

Owns: stack arguments, memory intrinsics, traps, attributes. Next: `rules.py`.
"""

import re
from dataclasses import dataclass, replace

from troth_toolchain.errors import RewriteError
from troth_toolchain.ir.scope import Scope
from troth_toolchain.ir.text import Call, Operand, num_slots, parse_call

_REGISTERS = 5
_MEMORY = re.compile(r"@llvm\.(memcpy|memmove|memset)(?:\.inline)?\.")
_MEMORY_GROUP = re.compile(r" memory\([^)]*\)")
_STACK_POINTER = "%troth.stack"
# Up to this many load/store pairs are cheaper inline than a syscall (10 compute units and more).
_INLINE_STEPS = 8
_MAX_ALIGN = 8
_HELPER_PREFIXES = ("@llvm.", "@__sbpf_")


def strip_sret(line: str, scope: Scope) -> list[str] | None:
    """Drop `sret(...)`: Rust already passes the pointer, the attribute alone is refused."""
    del scope
    call = parse_call(line) if "sret(" in line else None
    if call is None:
        return None
    return [str(replace(call, operands=tuple(_without_sret(each) for each in call.operands)))]


def memory_syscall(line: str, scope: Scope) -> list[str] | None:
    """Replace memory intrinsics that would become library calls by the runtime's syscalls."""
    call = parse_call(line) if "@llvm.mem" in line else None
    found = _MEMORY.match(call.callee) if call else None
    if call is None or found is None:
        return None
    kind = found.group(1)
    target, source, length = call.operands[:3]
    if kind != "memmove" and _is_short(kind, target, source, length):
        return None
    if length.type != "i64":
        raise RewriteError(f"expected a 64-bit length, found {line.strip()!r}")
    name = scope.helper(f"sol_{kind}_")
    arguments = f"ptr {target.value}, {source.type} {source.value}, i64 {length.value}"
    return [f"  call void {name}({arguments})"]


def trap(line: str, scope: Scope) -> list[str] | None:
    """`llvm.trap` becomes the syscall `abort`; llc's own `__bpf_trap` is refused at deployment."""
    call = parse_call(line) if "trap(" in line else None
    if call is None or call.callee not in ("@llvm.trap", "@llvm.ubsantrap"):
        return None
    return [f"  call void {scope.helper('abort')}()"]


def forget_memory_effects(line: str, scope: Scope) -> list[str] | None:
    """Drop `memory(...)` from attribute groups: stack arguments make functions read memory."""
    del scope
    return [_MEMORY_GROUP.sub("", line)]


def forget_minimal_size(line: str, scope: Scope) -> list[str] | None:
    """`minsize` becomes `optsize`: llc expands comparisons of keys only without it."""
    del scope
    return [line.replace(" minsize", " optsize")] if " minsize" in line else None


@dataclass(frozen=True)
class _Spill:
    """Which operands stay in registers, and at which offsets the others lie."""

    num_kept: int
    offsets: tuple[int, ...]
    num_bytes: int


def stack_arguments(line: str, scope: Scope) -> list[str] | None:
    """Pass what exceeds five registers through memory of the caller.

    Decided by the signature alone, so definitions, direct calls and calls through pointers agree.
    """
    call = parse_call(line)
    if call is None or " asm " in call.head or call.callee.startswith(_HELPER_PREFIXES):
        return None
    spill = _plan(call.operands)
    if spill is None:
        return None
    if line.startswith("declare"):
        raise RewriteError(f"external function with more than five arguments: {call.callee}")
    if line.startswith("define"):
        return [_receive(call, spill, scope)]
    return _pass(call, spill, scope)


def _plan(operands: tuple[Operand, ...]) -> _Spill | None:
    slots = [num_slots(operand.type) for operand in operands]
    if sum(slots) <= _REGISTERS:
        return None
    kept = 0
    used = 0
    while used + slots[kept] < _REGISTERS:
        used += slots[kept]
        kept += 1
    offsets: list[int] = []
    offset = 0
    for size in slots[kept:]:
        offsets.append(offset)
        offset += 8 * size
    return _Spill(kept, tuple(offsets), offset)


def _receive(call: Call, spill: _Spill, scope: Scope) -> str:
    for operand, offset in zip(call.operands[spill.num_kept :], spill.offsets, strict=True):
        slot = scope.fresh("slot")
        scope.entry += [
            f"  {slot} = getelementptr i8, ptr {_STACK_POINTER}, i64 {offset}",
            f"  {operand.value} = load {operand.type}, ptr {slot}, align 8",
        ]
    kept = call.operands[: spill.num_kept]
    return str(replace(call, operands=(*kept, Operand("ptr", (), _STACK_POINTER))))


def _pass(call: Call, spill: _Spill, scope: Scope) -> list[str]:
    area = scope.fresh("area")
    # In the entry block: an alloca elsewhere would be a dynamic stack allocation.
    scope.entry.insert(0, f"  {area} = alloca [{spill.num_bytes} x i8], align 8")
    lines: list[str] = []
    for operand, offset in zip(call.operands[spill.num_kept :], spill.offsets, strict=True):
        slot = scope.fresh("slot")
        lines += [
            f"  {slot} = getelementptr i8, ptr {area}, i64 {offset}",
            f"  store {operand.type} {operand.value}, ptr {slot}, align 8",
        ]
    kept = call.operands[: spill.num_kept]
    # A tail call must not receive memory of its caller.
    head = re.sub(r"\b(?:tail|musttail|notail) (?=call )", "", call.head)
    return [*lines, str(replace(call, head=head, operands=(*kept, Operand("ptr", (), area))))]


def _without_sret(operand: Operand) -> Operand:
    kept = tuple(name for name in operand.attributes if not name.startswith("sret"))
    return replace(operand, attributes=kept)


def _alignment(operand: Operand) -> int:
    for attribute in operand.attributes:
        if attribute.startswith("align "):
            return int(attribute.removeprefix("align "))
    return 1


def _is_short(kind: str, target: Operand, source: Operand, length: Operand) -> bool:
    if not length.value.isdigit():
        return False
    align = min(_alignment(target), _MAX_ALIGN)
    if kind == "memcpy":
        align = min(align, _alignment(source))
    whole, rest = divmod(int(length.value), align)
    return whole + rest.bit_count() <= _INLINE_STEPS
