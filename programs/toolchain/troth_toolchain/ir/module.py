"""Applies the rewrite table to a whole IR module.

Owns: the walk over functions and the declarations of the helpers that rules call.
Next: `../image.py` runs it between opt and llc.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from troth_toolchain.errors import RewriteError
from troth_toolchain.ir.rules import RULES, Rule
from troth_toolchain.ir.scope import Scope
from troth_toolchain.ir.text import opcode

_LABEL = re.compile(r'^(?:"[^"]*"|[\w.$-]+):')
_SIGNATURE = re.compile(r"^define ([^@]*)(@[\w.]+)\(([^)]*)\)", re.MULTILINE)
_KNOWN = re.compile(r'^(?:define|declare) [^@]*(@(?:"[^"]*"|[\w.$-]+))\(', re.MULTILINE)
SYSCALLS = {
    "@sol_memcpy_": "declare void @sol_memcpy_(ptr, ptr, i64)",
    "@sol_memmove_": "declare void @sol_memmove_(ptr, ptr, i64)",
    "@sol_memset_": "declare void @sol_memset_(ptr, i8, i64)",
    "@abort": "declare void @abort()",
}


@dataclass(frozen=True)
class Rewritten:
    """The new module text and how often each rule fired."""

    text: str
    num_fired: Counter[str]


def rewrite(text: str, helper_sources: Iterable[str], rules: Sequence[Rule] = RULES) -> Rewritten:
    """Rewrite an IR module; `helper_sources` are the .ll texts that define the helpers.

    Raises `RewriteError` for IR that no rule can express.
    """
    walk = _Walk(rules)
    for line in text.split("\n"):
        walk.feed(line)
    walk.lines += _declarations(text, walk.helpers, helper_sources)
    return Rewritten("\n".join(walk.lines) + "\n", walk.num_fired)


class _Walk:
    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_opcode: dict[str, list[Rule]] = {}
        for rule in rules:
            for code in rule.opcodes:
                self._by_opcode.setdefault(code, []).append(rule)
        self.lines: list[str] = []
        self.num_fired: Counter[str] = Counter()
        self.helpers: set[str] = set()
        self._body: list[str] | None = None
        self._scope = Scope()

    def feed(self, line: str) -> None:
        if line.startswith("define "):
            self._scope = Scope()
            self.lines += self._apply(line)
            self._body = []
        elif self._body is not None:
            self._feed_body(self._body, line)
        elif line.startswith(("declare ", "attributes ")):
            self.lines += self._apply(line)
        else:
            self.lines.append(line)

    def _feed_body(self, body: list[str], line: str) -> None:
        if line != "}":
            body += self._apply(line) if line.startswith("  ") else [line]
            return
        is_labelled = bool(body) and _LABEL.match(body[0]) is not None
        at = 1 if is_labelled else 0
        self.lines += [*body[:at], *self._scope.entry, *body[at:], line]
        self.helpers |= self._scope.helpers
        self._body = None

    def _apply(self, line: str) -> list[str]:
        rules = self._by_opcode.get(opcode(line))
        if rules is None:
            return [line]
        lines = [line]
        for rule in rules:
            lines = [new for old in lines for new in self._apply_rule(rule, old)]
        return lines

    def _apply_rule(self, rule: Rule, line: str) -> list[str]:
        if opcode(line) not in rule.opcodes:
            return [line]
        try:
            changed = rule.handler(line, self._scope)
        except RewriteError as error:
            raise RewriteError(f"rule {rule.name}: {error}") from error
        if changed is None:
            return [line]
        self.num_fired[rule.name] += 1
        return changed


def _declarations(text: str, helpers: set[str], sources: Iterable[str]) -> list[str]:
    """Declare the used helpers that the module itself neither defines nor declares."""
    known = set(_KNOWN.findall(text))
    available = dict(SYSCALLS)
    for source in sources:
        for returned, name, parameters in _SIGNATURE.findall(source):
            available[name] = f"declare {returned}{name}({parameters})"
    lines: list[str] = []
    for name in sorted(f"@{helper}" for helper in helpers):
        if name in known:
            continue
        if name not in available:
            raise RewriteError(
                f"expected the function {name} in the program's bitcode, found none: "
                "compiler_builtins was not linked or was optimised away"
            )
        lines.append(available[name])
    return lines
