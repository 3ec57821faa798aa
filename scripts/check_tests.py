"""Check that a test that fails says what differs, and that tests share code through support alone.

Owns: four rules. An assertion compares named values: neither side is a tuple of two or more
values, alone or as an element. The exception: the other side is an attribute, which has a name.
No test module or conftest is imported; shared code lives in tests/support.
A test that names a CUDA device, itself or through a name of its module, has the mark `cuda`: by it,
`make gpu` finds the test. No file but a test module marks tests for `make long`, which reads those.
Never: runs a test. Next: tests/support/fields.py, which compares fields by name.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = ast.In | ast.NotIn | ast.Is | ast.IsNot
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
OF_MAKE_LONG = ("pytest.mark.long", "pytest.mark.validator")


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in paths
        for problem in problems_of(
            path.read_text(encoding="utf-8"), is_test=path.name.startswith("test_")
        )
    ]
    print(
        "\n".join(found)
        or f"tests: {len(paths)} files compare named values, import support, mark CUDA, long"
    )
    return 1 if found else 0


def problems_of(source: str, *, is_test: bool = True) -> Iterator[str]:
    """Yield `line: problem` for each broken rule of one file, of tests or of their support."""
    module = ast.parse(source)
    yield from _without_mark(module)
    for node in ast.walk(module):
        if not is_test and isinstance(node, ast.Attribute) and ast.unparse(node) in OF_MAKE_LONG:
            yield f"{node.lineno}: marks tests of other files; make long would not read them"
        if isinstance(node, ast.Assert):
            yield from _unnamed(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (
                f"{node.lineno}: imports {name}; move what is shared into tests/support"
                for name in _imported(node)
                if any(part == "conftest" or part.startswith("test_") for part in name.split("."))
            )


def _without_mark(module: ast.Module) -> Iterator[str]:
    """Yield the tests that name a CUDA device and that `make gpu` would leave out."""
    is_marked = any(isinstance(node, ast.Assign) and _has_mark(node) for node in module.body)
    named = _names_with_cuda(module)
    has_tests = any(_is_test(node) for node in module.body)
    for node in module.body:
        if is_marked or not _mentions_cuda(node, named):
            continue
        if _is_test(node) and not _has_mark(node):
            yield f"{node.lineno}: names a CUDA device; expected @pytest.mark.cuda, for make gpu"
        elif not has_tests:
            yield f"{node.lineno}: names a CUDA device; a test should, so that make gpu finds it"


def _names_with_cuda(module: ast.Module) -> set[str]:
    """Return the functions and values of a module that depend on a CUDA device."""
    found: set[str] = set()
    while True:
        new = {
            name
            for node in module.body
            if _mentions_cuda(node, found)
            for name in _defined(node)
            if name not in found
        }
        if not new:
            return found
        found |= new


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, FUNCTION | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
        yield from (one.id for one in stored if isinstance(one.ctx, ast.Store))


def _mentions_cuda(node: ast.stmt, named: set[str]) -> bool:
    """Whether a statement has `torch.cuda`, the text "cuda" or "cuda:0", or one of the names."""
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="torch"), attr="cuda"):
                return True
            case ast.Constant(value=str(text)) if text.partition(":")[0] == "cuda":
                return True
            case ast.Name(id=name, ctx=ast.Load()) | ast.arg(arg=name) if name in named:
                return True
    return False


def _has_mark(node: ast.stmt) -> bool:
    return any(ast.unparse(one) == "pytest.mark.cuda" for one in ast.walk(node))


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, FUNCTION) and node.name.startswith("test_")


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
