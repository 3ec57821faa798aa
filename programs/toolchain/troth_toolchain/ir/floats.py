"""Rules for floating point: sBPF has none, so each operation calls compiler_builtins.

Owns: the names of the soft-float functions. They come with Rust's own compiler_builtins, so the
results are those of every other Rust target. Next: `rules.py`.
"""

import re

from troth_toolchain.errors import RewriteError
from troth_toolchain.ir.scope import Scope
from troth_toolchain.ir.text import parse_binary, parse_call, parse_conversion, result

_LETTER = {"float": "s", "double": "d", "f32": "s", "f64": "d"}
_ARITHMETIC = {"fadd": "add", "fsub": "sub", "fmul": "mul", "fdiv": "div"}
# LLVM predicate -> compiler_builtins function, and the icmp against 0 that answers it. The
# functions return what makes the ordered predicate false when an operand is NaN.
_COMPARE = {
    "oeq": ("eq", "eq"),
    "une": ("ne", "ne"),
    "ogt": ("gt", "sgt"),
    "oge": ("ge", "sge"),
    "olt": ("lt", "slt"),
    "ole": ("le", "sle"),
    "ult": ("ge", "slt"),
    "ugt": ("le", "sgt"),
    "uge": ("lt", "sge"),
    "ule": ("gt", "sle"),
    "uno": ("unord", "ne"),
    "ord": ("unord", "eq"),
}
_SATURATE = re.compile(r"@llvm\.fpto([us])i\.sat\.i(\d+)\.(f32|f64)$")

SOFT_FLOAT: tuple[str, ...] = (
    *(f"__{name}{letter}f3" for name in _ARITHMETIC.values() for letter in "sd"),
    *(
        f"__{name}{letter}f2"
        for name in ("eq", "ne", "gt", "ge", "lt", "le", "unord")
        for letter in "sd"
    ),
    *(
        f"__float{sign}{width}i{letter}f"
        for sign in ("", "un")
        for width in "sd"
        for letter in "sd"
    ),
    *(f"__fix{sign}{letter}f{width}i" for sign in ("", "uns") for width in "sd" for letter in "sd"),
    "__extendsfdf2",
    "__truncdfsf2",
)
"""Functions that must survive whole-program optimisation, because rules call them afterwards."""


def arithmetic(line: str, scope: Scope) -> list[str] | None:
    """`fadd`, `fsub`, `fmul`, `fdiv`."""
    parsed = parse_binary(line)
    type_ = parsed.type
    name = scope.helper(f"__{_ARITHMETIC[parsed.opcode]}{_letter(type_, line)}f3")
    return [
        f"  {parsed.result} = call {type_} {name}({type_} {parsed.left}, {type_} {parsed.right})"
    ]


def compare(line: str, scope: Scope) -> list[str] | None:
    """`fcmp`; `one` and `ueq` need two answers."""
    parsed = parse_binary(line, has_predicate=True)
    letter = _letter(parsed.type, line)
    arguments = f"{parsed.type} {parsed.left}, {parsed.type} {parsed.right}"

    def ask(predicate: str, target: str) -> list[str]:
        function, test = _COMPARE[predicate]
        answer = scope.fresh("compare")
        name = scope.helper(f"__{function}{letter}f2")
        return [
            f"  {answer} = call i32 {name}({arguments})",
            f"  {target} = icmp {test} i32 {answer}, 0",
        ]

    if parsed.predicate in _COMPARE:
        return ask(parsed.predicate, parsed.result)
    pair = {"one": ("olt", "or", "ogt"), "ueq": ("uge", "and", "ule")}.get(parsed.predicate)
    if pair is None:
        raise RewriteError(f"no soft-float answer for the predicate in {line.strip()!r}")
    left, right = scope.fresh("compare"), scope.fresh("compare")
    both = f"  {parsed.result} = {pair[1]} i1 {left}, {right}"
    return [*ask(pair[0], left), *ask(pair[2], right), both]


def from_integer(line: str, scope: Scope) -> list[str] | None:
    """`uitofp`, `sitofp`; narrow integers are widened to 32 bits first."""
    parsed = parse_conversion(line)
    is_unsigned = parsed.opcode == "uitofp"
    lines: list[str] = []
    source, value = parsed.source, parsed.value
    bits = int(source[1:]) if source[1:].isdigit() else 0
    if 0 < bits < 32:
        wide = scope.fresh("wide")
        lines.append(f"  {wide} = {'zext' if is_unsigned else 'sext'} {source} {value} to i32")
        source, value = "i32", wide
    width = {"i32": "s", "i64": "d"}.get(source)
    if width is None:
        raise RewriteError(f"no soft-float conversion for {line.strip()!r}")
    sign = "un" if is_unsigned else ""
    name = scope.helper(f"__float{sign}{width}i{_letter(parsed.target, line)}f")
    return [*lines, f"  {parsed.result} = call {parsed.target} {name}({source} {value})"]


def to_integer(line: str, scope: Scope) -> list[str] | None:
    """`fptoui`, `fptosi`: undefined out of range, so the saturating function is right too."""
    parsed = parse_conversion(line)
    sign = "uns" if parsed.opcode == "fptoui" else ""
    width = {"i32": "s", "i64": "d"}.get(parsed.target)
    if width is None:
        raise RewriteError(f"no soft-float conversion for {line.strip()!r}")
    name = scope.helper(f"__fix{sign}{_letter(parsed.source, line)}f{width}i")
    return [f"  {parsed.result} = call {parsed.target} {name}({parsed.source} {parsed.value})"]


def to_integer_saturating(line: str, scope: Scope) -> list[str] | None:
    """`llvm.fptoui.sat`, `llvm.fptosi.sat`: Rust's `as`; compiler_builtins saturates as well."""
    call = parse_call(line) if ".sat." in line else None
    found = _SATURATE.search(call.callee) if call else None
    if call is None or found is None:
        return None
    sign, bits, source = found.groups()
    width = {"32": "s", "64": "d"}.get(bits)
    if width is None:
        raise RewriteError(f"no saturating soft-float conversion for {line.strip()!r}")
    name = scope.helper(f"__fix{'uns' if sign == 'u' else ''}{_LETTER[source]}f{width}i")
    operand = call.operands[0]
    return [f"  {result(line)} = call i{bits} {name}({operand.type} {operand.value})"]


def change_precision(line: str, scope: Scope) -> list[str] | None:
    """`fpext float to double`, `fptrunc double to float`."""
    parsed = parse_conversion(line)
    names = {("float", "double"): "__extendsfdf2", ("double", "float"): "__truncdfsf2"}
    function = names.get((parsed.source, parsed.target))
    if function is None:
        raise RewriteError(f"no soft-float conversion for {line.strip()!r}")
    name = scope.helper(function)
    return [f"  {parsed.result} = call {parsed.target} {name}({parsed.source} {parsed.value})"]


def _letter(type_: str, line: str) -> str:
    letter = _LETTER.get(type_)
    if letter is None:
        raise RewriteError(f"expected float or double, found {type_!r} in {line.strip()!r}")
    return letter
