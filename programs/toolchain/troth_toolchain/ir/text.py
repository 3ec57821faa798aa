"""Reads single lines of LLVM IR: opcodes, types, operands, calls.

Owns: the little grammar that the rules need. Never: changes a line.
Next: `rules.py`.
"""

import re
from dataclasses import dataclass

from troth_toolchain.errors import RewriteError

_OPEN = "([{<"
_CLOSE = ")]}>"
_NAME = r'(?:"[^"]*"|[\w.$-]+)'
_CALLEE = re.compile(rf"([@%]{_NAME})\(")
_RESULT = re.compile(rf"\s*(%{_NAME}) = ")
_WORD_TYPE = re.compile(r'%"[^"]*"|[%\w.]+')
_CALL_MARKERS = frozenset({"tail", "musttail", "notail"})
_PLAIN_ATTRIBUTES = frozenset(
    [
        "noundef",
        "nonnull",
        "readonly",
        "readnone",
        "writeonly",
        "noalias",
        "nocapture",
        "signext",
        "zeroext",
        "inreg",
        "nofree",
        "returned",
        "immarg",
        "dead_on_unwind",
        "dead_on_return",
        "writable",
        "nest",
        "noext",
        "allocptr",
        "allocalign",
    ]
)
_ATTRIBUTE = re.compile(
    r"(align|dereferenceable_or_null|dereferenceable|range|captures|initializes|nofpclass|"
    r"sret|elementtype|byval)\s*(?=[\d(])"
)
_FLAGS = frozenset(
    [
        "nuw",
        "nsw",
        "exact",
        "nneg",
        "disjoint",
        "fast",
        "nnan",
        "ninf",
        "nsz",
        "arcp",
        "contract",
        "afn",
        "reassoc",
        "samesign",
    ]
)


def closing(text: str, start: int) -> int:
    """Index of the bracket that closes the one at `text[start]`; strings are skipped."""
    depth = 0
    in_string = False
    for i in range(start, len(text)):
        char = text[i]
        if char == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    raise RewriteError(f"expected a closing bracket, found the end of the line: {text[start:]!r}")


def split_top(text: str) -> list[str]:
    """Split at commas outside of brackets and strings; empty input gives an empty list."""
    parts: list[str] = []
    depth = 0
    in_string = False
    begin = 0
    for i, char in enumerate(text):
        if char == '"':
            in_string = not in_string
        elif in_string:
            continue
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts


def take_type(text: str) -> tuple[str, str]:
    """Split `text` into the type it starts with and the rest."""
    if text[:1] in tuple("[{<"):
        end = closing(text, 0) + 1
    else:
        found = _WORD_TYPE.match(text)
        if found is None:
            raise RewriteError(f"expected an IR type, found {text!r}")
        end = found.end()
    return text[:end], text[end:].strip()


def take_attributes(text: str) -> tuple[list[str], str]:
    """Split parameter attributes off `text`; returns them and what follows (the value)."""
    attributes: list[str] = []
    while text:
        word = text.split(" ", 1)[0]
        found = _ATTRIBUTE.match(text)
        if word in _PLAIN_ATTRIBUTES:
            end = len(word)
        elif found and text[found.end()] == "(":
            end = closing(text, found.end()) + 1
        elif found:
            end = found.end() + len(text[found.end() :].split(" ", 1)[0])
        else:
            break
        attributes.append(text[:end])
        text = text[end:].strip()
    return attributes, text


@dataclass(frozen=True)
class Operand:
    """A parameter or argument: `ptr noundef align 8 %x` -> type, attributes, value."""

    type: str
    attributes: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        """Return the operand as IR text."""
        return " ".join(part for part in (self.type, *self.attributes, self.value) if part)


def parse_operand(text: str) -> Operand:
    """Parse one element of a parameter or argument list."""
    type_, rest = take_type(text)
    attributes, value = take_attributes(rest)
    return Operand(type_, tuple(attributes), value)


@dataclass(frozen=True)
class Call:
    """A call, define or declare line cut at its argument list."""

    head: str  # up to the callee's name
    callee: str  # with its sigil: @name or %pointer
    operands: tuple[Operand, ...]
    tail: str  # from the closing bracket on, bracket excluded

    def __str__(self) -> str:
        """Return the line again."""
        inside = ", ".join(str(operand) for operand in self.operands)
        return f"{self.head}{self.callee}({inside}){self.tail}"


def parse_call(line: str) -> Call | None:
    """Cut a call, define or declare line; None when it has no callee or is variadic."""
    found = _CALLEE.search(line)
    if found is None:
        return None
    begin = found.end() - 1
    end = closing(line, begin)
    parts = split_top(line[begin + 1 : end])
    if parts and parts[-1] == "...":
        return None
    operands = tuple(parse_operand(part) for part in parts)
    return Call(line[: found.start()], found.group(1), operands, line[end + 1 :])


def opcode(line: str) -> str:
    """First word of an instruction ("call" also for tail calls), or of a module-level line."""
    found = _RESULT.match(line)
    words = (line[found.end() :] if found else line.lstrip()).split(" ", 2)
    if words[0] in _CALL_MARKERS:
        return "call"
    return words[0]


def result(line: str) -> str:
    """Name of the value that the instruction defines."""
    found = _RESULT.match(line)
    if found is None:
        raise RewriteError(f"expected an instruction with a result, found {line!r}")
    return found.group(1)


@dataclass(frozen=True)
class Binary:
    """`%r = mul nuw i128 %a, %b`; for fcmp and icmp the predicate stands in `predicate`."""

    result: str
    opcode: str
    predicate: str
    type: str
    left: str
    right: str


def parse_binary(line: str, *, has_predicate: bool = False) -> Binary:
    """Parse an arithmetic or comparison instruction; flags and metadata are dropped."""
    name = result(line)
    operation, rest = line.split(" = ", 1)[1].strip().split(" ", 1)
    rest = drop_flags(rest)
    predicate = ""
    if has_predicate:
        predicate, rest = rest.split(" ", 1)
    type_, rest = take_type(rest)
    values = split_top(rest)
    if len(values) < 2:
        raise RewriteError(f"expected two operands, found {line!r}")
    return Binary(name, operation, predicate, type_, values[0], values[1])


@dataclass(frozen=True)
class Conversion:
    """`%r = uitofp i64 %x to double`."""

    result: str
    opcode: str
    source: str
    value: str
    target: str


def parse_conversion(line: str) -> Conversion:
    """Parse a conversion instruction; flags and metadata are dropped."""
    name = result(line)
    operation, rest = line.split(" = ", 1)[1].strip().split(" ", 1)
    source, rest = take_type(drop_flags(rest))
    value, target = rest.rsplit(" to ", 1)
    return Conversion(name, operation, source, value.strip(), take_type(target.strip())[0])


def drop_flags(text: str) -> str:
    """Remove leading flags such as `nuw nsw` or `fast`."""
    word, _, rest = text.partition(" ")
    while word in _FLAGS:
        text = rest
        word, _, rest = text.partition(" ")
    return text


def num_slots(type_: str) -> int:
    """How many 64-bit argument registers a first-class value of `type_` takes."""
    if type_ in ("ptr", "float", "double"):
        return 1
    if number := re.fullmatch(r"i(\d+)", type_):
        return max(1, (int(number.group(1)) + 63) // 64)
    if array := re.fullmatch(r"\[(\d+) x (.+)\]", type_):
        return int(array.group(1)) * num_slots(array.group(2))
    if type_.startswith("{"):
        return sum(num_slots(part) for part in split_top(type_[1:-1].strip()))
    raise RewriteError(f"expected a type that fits into argument registers, found {type_!r}")
