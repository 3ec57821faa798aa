"""Check the size budgets of the house: files, lines and functions, in Python and Rust.

Of functions in Python it also counts parameters and nesting; of those in Rust only the lines.
Owns the numbers; ruff owns style. Prints one line per excess: the message is the to-do list.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_NESTING = 3
MAX_LINE_LENGTH = 100
NESTING = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith, ast.Match)
RUST_FUNCTION = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?fn (\w+)")


def main() -> int:
    """Print every excess; exit status 1 if there is one."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.rs"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    paths = [Path(name) for name in names if name and Path(name).exists()]
    excesses = [excess for path in paths for excess in check_file(path)]
    print("\n".join(excesses) or f"budgets: {len(paths)} files within budget")
    return 1 if excesses else 0


def check_file(path: Path) -> Iterator[str]:
    """Yield one line of text per excess in a source file."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES:
        yield f"{path}: {len(lines)} lines, at most {MAX_FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_LENGTH:
            yield f"{path}:{number}: line of {len(line)} characters, at most {MAX_LINE_LENGTH}"
    if path.suffix == ".py":
        yield from check_python(path, ast.parse(text))
    else:
        yield from check_rust(path, lines)


def check_python(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield excesses of functions: length, parameters, nesting."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        where = f"{path}:{node.lineno}: {node.name}"
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > MAX_FUNCTION_LINES:
            yield f"{where} has {length} lines, at most {MAX_FUNCTION_LINES}"
        arguments = node.args
        names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
        count = len([name for name in names if name not in ("self", "cls")])
        # A test gets one parameter per fixture: it is no call that people make.
        if count > MAX_PARAMETERS and path.parts[0] != "tests":
            yield f"{where} has {count} parameters, at most {MAX_PARAMETERS}"
        depth = max((nesting(child) for child in node.body), default=0)
        if depth > MAX_NESTING:
            yield f"{where} nests {depth} deep, at most {MAX_NESTING}"


def nesting(node: ast.AST) -> int:
    """Depth of control flow below a node; functions inside start anew, `elif` does not add."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return 0
    own = 1 if isinstance(node, NESTING) else 0
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        children.remove(node.orelse[0])
        return max(nesting(node.orelse[0]), own + max(map(nesting, children), default=0))
    return own + max(map(nesting, children), default=0)


def check_rust(path: Path, lines: list[str]) -> Iterator[str]:
    """Yield functions that are too long; formatted code closes one at its own indentation."""
    for start, line in enumerate(lines):
        match = RUST_FUNCTION.match(line)
        if not match or line.rstrip().endswith(";"):
            continue
        end = next(
            (n for n in range(start, len(lines)) if lines[n].rstrip() == match.group(1) + "}"),
            start,
        )
        if end - start + 1 > MAX_FUNCTION_LINES:
            yield (
                f"{path}:{start + 1}: {match.group(2)} has {end - start + 1} lines, "
                f"at most {MAX_FUNCTION_LINES}"
            )


if __name__ == "__main__":
    sys.exit(main())
