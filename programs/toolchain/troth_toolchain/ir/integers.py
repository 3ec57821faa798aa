"""Rules for integer operations that the BPF back end turns into forbidden library calls.

Owns: multiply, divide and shift of wide integers, signed division. The helpers' bodies are in
`runtime/*.ll` and are inlined. Next: `rules.py`.
"""

import re

from troth_toolchain.ir.scope import Scope
from troth_toolchain.ir.text import parse_binary

_SIGNED_WIDTHS = ("i8", "i16", "i32", "i64")
_OVERFLOW = re.compile(r"@llvm\.([us])mul\.with\.overflow\.i(64|128)\(")


def multiply_wide(line: str, scope: Scope) -> list[str] | None:
    """`mul i128` and `mul i256`."""
    parsed = parse_binary(line)
    if parsed.type not in ("i128", "i256"):
        return None
    helper = scope.helper(f"__sbpf_mul{parsed.type[1:]}")
    return [_call(parsed.result, parsed.type, helper, parsed.left, parsed.right)]


def multiply_with_overflow(line: str, scope: Scope) -> list[str] | None:
    """`llvm.umul/smul.with.overflow` of 64 and 128 bits."""
    found = _OVERFLOW.search(line)
    if found is None:
        return None
    sign, bits = found.groups()
    helper = scope.helper(f"__sbpf_{sign}mulo{bits}")
    return [line[: found.start()] + helper + line[found.end() - 1 :]]


def divide(line: str, scope: Scope) -> list[str] | None:
    """Any division of i128, and signed division of every width."""
    parsed = parse_binary(line)
    is_signed = parsed.opcode in ("sdiv", "srem")
    if parsed.type != "i128" and not (is_signed and parsed.type in _SIGNED_WIDTHS):
        return None
    helper = scope.helper(f"__sbpf_{parsed.opcode}{parsed.type[1:]}")
    return [_call(parsed.result, parsed.type, helper, parsed.left, parsed.right)]


def shift_wide(line: str, scope: Scope) -> list[str] | None:
    """Shifts of i128 by an amount that is not constant."""
    parsed = parse_binary(line)
    if parsed.type != "i128" or not parsed.right.startswith("%"):
        return None
    helper = scope.helper(f"__sbpf_{parsed.opcode}128")
    return [_call(parsed.result, parsed.type, helper, parsed.left, parsed.right)]


def _call(result: str, type_: str, helper: str, left: str, right: str) -> str:
    return f"  {result} = call {type_} {helper}({type_} {left}, {type_} {right})"
