"""THE table of IR rewrites: what is changed between rustc's bitcode and llc, and why.

Owns: the list and its order. Never: parses IR (see `text.py`).
Next: `module.py` applies the table; handlers are in `integers.py`, `floats.py`, `calls.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from troth_toolchain.ir import calls, floats, integers
from troth_toolchain.ir.scope import Scope

Handler = Callable[[str, Scope], list[str] | None]


@dataclass(frozen=True)
class Rule:
    """One rewrite. `handler` returns the new lines, or None when the line does not concern it."""

    name: str
    why: str
    opcodes: tuple[str, ...]
    handler: Handler


RULES: tuple[Rule, ...] = (
    Rule(
        "sret",
        "LLVM's BPF back end refuses aggregate returns; Rust passes the pointer anyway",
        ("define", "declare", "call"),
        calls.strip_sret,
    ),
    Rule(
        "float-arithmetic",
        "no floating point in sBPF, and llc refuses to call the library by itself",
        ("fadd", "fsub", "fmul", "fdiv"),
        floats.arithmetic,
    ),
    Rule("float-compare", "as above", ("fcmp",), floats.compare),
    Rule("float-from-integer", "as above", ("uitofp", "sitofp"), floats.from_integer),
    Rule("float-to-integer", "as above", ("fptoui", "fptosi"), floats.to_integer),
    Rule("float-saturating", "as above", ("call",), floats.to_integer_saturating),
    Rule("float-precision", "as above", ("fpext", "fptrunc"), floats.change_precision),
    Rule(
        "wide-multiply",
        "would call __multi3, which llc refuses (two-register returns)",
        ("mul",),
        integers.multiply_wide,
    ),
    Rule(
        "multiply-overflow",
        "checked multiplication lowers to a wide multiply",
        ("call",),
        integers.multiply_with_overflow,
    ),
    Rule(
        "division",
        "i128 would call __udivti3; sBPF V0 to V3 have no signed division of any width",
        ("sdiv", "srem", "udiv", "urem"),
        integers.divide,
    ),
    Rule(
        "wide-shift",
        "a variable shift of i128 would call __ashlti3",
        ("shl", "lshr", "ashr"),
        integers.shift_wide,
    ),
    Rule(
        "memory-syscall",
        "long or variable copies would call memcpy, which does not exist; syscalls do",
        ("call",),
        calls.memory_syscall,
    ),
    Rule(
        "trap",
        "llc turns traps into the symbol __bpf_trap, which deployment refuses",
        ("call",),
        calls.trap,
    ),
    # After all rules that make calls, so that it sees the final argument lists.
    Rule(
        "stack-arguments",
        "more than five argument registers: LLVM 22 says 'stack arguments are not supported'",
        ("define", "declare", "call"),
        calls.stack_arguments,
    ),
    Rule(
        "memory-effects",
        "a function that reads stack arguments is no longer memory(none)",
        ("attributes",),
        calls.forget_memory_effects,
    ),
    Rule(
        "minimal-size",
        "a comparison of 32 bytes would be a byte loop of 250 compute units, not four loads",
        ("attributes",),
        calls.forget_minimal_size,
    ),
)
