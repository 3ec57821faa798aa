"""Check that a test that fails says what differs, and that tests share code through support alone.

Owns: two rules. An assertion compares named values: neither side is a tuple of two or more values,
alone or as an element. The exception: the other side is an attribute, which has a name.
No test module or conftest is imported; shared code lives in tests/support.
Never: runs a test. Next: tests/support/fields.py, which compares fields by name.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = ast.In | ast.NotIn | ast.Is | ast.IsNot


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in paths
        for problem in problems_of(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(found) or f"tests: {len(paths)} files compare named values and import support")
    return 1 if found else 0


def problems_of(source: str) -> Iterator[str]:
    """Yield `line: problem` for each broken rule of one file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            yield from _unnamed(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (
                f"{node.lineno}: imports {name}; move what is shared into tests/support"
                for name in _imported(node)
                if any(part == "conftest" or part.startswith("test_") for part in name.split("."))
            )


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return every module that a statement may import, with `from a import b` as a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if node.module else [alias.name for alias in node.names]


def _unnamed(assertion: ast.Assert) -> Iterator[str]:
    for node in ast.walk(assertion.test):
        if isinstance(node, ast.Compare) and _compares_tuples(node):
            yield (
                f"{node.lineno}: compares unnamed values; expected one assertion for each, "
                "or assert_fields"
            )


def _compares_tuples(node: ast.Compare) -> bool:
    """Whether a comparison holds a tuple that no attribute on the other side names."""
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        # The right side of `in` is a set of choices; its left side is one value.
        sides = [left] if isinstance(operator, IDENTITY) else [left, right]
        is_named = len(sides) == 2 and any(isinstance(side, ast.Attribute) for side in sides)
        if not is_named and any(_has_tuple(side) for side in sides):
            return True
        left = right
    return False


def _has_tuple(node: ast.expr) -> bool:
    """Whether an expression is a tuple of two or more values, or a display of such tuples."""
    match node:
        case ast.Tuple(elts=values):
            return len(values) >= 2
        case ast.List(elts=values) | ast.Set(elts=values):
            return any(_has_tuple(value) for value in values)
        case ast.ListComp(elt=value) | ast.SetComp(elt=value) | ast.GeneratorExp(elt=value):
            return _has_tuple(value)
    return False


if __name__ == "__main__":
    sys.exit(main())
