"""Check docs/threat-model.md against the tests, both ways.

Owns: what a row's last cell may hold, and that rows and tests name each other. Every row has tests
(`FOLDER/FILE::TEST`, under tests/), the word `planned`, or `not simulated:` with a
reason. Every test in tests/adversarial names its rows ("Threat T07" or "Threat T07, T12") in its
docstring, or in that of its module, and stands in them. Every row that the page speaks of exists.
Every test that docs/faults.md names exists, too.
Never: runs a test.

python scripts/check_threat_model.py           exit 1 and one line per problem
python scripts/check_threat_model.py --write   enter tests that name a row into it first
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/threat-model.md"
FAULTS = "docs/faults.md"
STORIES = "adversarial"
LINE = re.compile(r"^\| *T\d.*$", re.MULTILINE)
ROW = re.compile(r"^\| (T\d{2,3}) \|((?:[^|\n]*\|){4}) ([^|\n]*) \|$", re.MULTILINE)
MENTION = re.compile(r"\bT\d{2,3}\b")
NAMED = re.compile(r"\bThreat (T\d{2,3}(?:, T\d{2,3})*)")
TEST = re.compile(r"[\w/]+\.py::\w+")
REASON = re.compile(r"not simulated: .+")
PLANNED = "planned"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Row:
    """One attack: its id, the four cells between, and what the last one holds."""

    id: str
    middle: str
    tests: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, found: re.Match[str]) -> "Row":
        """Return the row that a line of the page spells."""
        parts = [part.strip() for part in re.split(r"[;,] (?=planned|[\w/]+\.py::)", found[3])]
        tests = tuple(part for part in parts if TEST.fullmatch(part))
        return cls(found[1], found[2], tests, tuple(p for p in parts if p not in tests))

    def text(self) -> str:
        """Return the line."""
        cell = "; ".join(filter(None, (", ".join(self.tests), *self.others)))
        return f"| {self.id} |{self.middle} {cell} |"


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="enter tests that name a row")
    if parser.parse_args().write:
        write(ROOT)
    found = [*problems(ROOT), *faults_without_test(ROOT)]
    rows = rows_of(ROOT)
    planned = sum(PLANNED in row.others for row in rows)
    print("\n".join(found) or f"threat model: {len(rows)} rows, {planned} with tests planned")
    return 1 if found else 0


def problems(root: Path) -> Iterator[str]:
    """Yield one line per disagreement of the page under `root` with itself or with the tests."""
    for line in LINE.findall((root / PAGE).read_text(encoding="utf-8")):
        if not ROW.fullmatch(line):
            yield f"{PAGE}: not a row of six cells: {line[:60]}"
    rows = rows_of(root)
    stories = stories_of(root)
    names = [row.id for row in rows]
    yield from (
        f"{PAGE}: {name} has two rows" for name in sorted(set(names)) if names.count(name) > 1
    )
    text = (root / PAGE).read_text(encoding="utf-8")
    for name in sorted(set(MENTION.findall(text)) - set(names)):
        yield f"{PAGE}: speaks of {name}, which has no row"
    for row in rows:
        yield from _problems_of_row(row, root, stories)
    listed = {(row.id, test) for row in rows for test in row.tests}
    for test, ids in stories.items():
        if not ids:
            yield f"tests/{test}: names no row; say `Threat T07` in its docstring"
        for name in ids:
            if name not in names:
                yield f"tests/{test}: there is no row {name}"
            elif (name, test) not in listed:
                yield f"{PAGE}: {name} lacks {test}; run scripts/check_threat_model.py --write"


def faults_without_test(root: Path) -> Iterator[str]:
    """Yield one line per test that the page of faults names and that does not exist."""
    page = root / FAULTS
    for test in TEST.findall(page.read_text(encoding="utf-8") if page.is_file() else ""):
        if not _exists(test, root):
            yield f"{FAULTS}: names {test}, which does not exist"


def write(root: Path) -> None:
    """Enter the tests that name a row and are not in it; the row is no longer only planned."""
    stories = stories_of(root)

    def completed(found: re.Match[str]) -> str:
        row = Row.of(found)
        new = tuple(t for t, ids in stories.items() if row.id in ids and t not in row.tests)
        others = tuple(other for other in row.others if not (new and other == PLANNED))
        return replace(row, tests=row.tests + new, others=others).text()

    page = root / PAGE
    page.write_text(ROW.sub(completed, page.read_text(encoding="utf-8")), encoding="utf-8")


def rows_of(root: Path) -> list[Row]:
    """Return the rows of the page in its order."""
    return [Row.of(found) for found in ROW.finditer((root / PAGE).read_text(encoding="utf-8"))]


def stories_of(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the adversarial tests and the rows that each of them names."""
    stories = {}
    for path in sorted((root / "tests" / STORIES).rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in _functions(tree):
            ids = _ids(ast.get_docstring(function)) or _ids(ast.get_docstring(tree))
            stories[f"{path.relative_to(root / 'tests').as_posix()}::{function.name}"] = ids
    return stories


def _problems_of_row(row: Row, root: Path, stories: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for other in row.others:
        if other != PLANNED and not REASON.fullmatch(other):
            yield f"{PAGE}: {row.id} has neither a test, a reason nor `{PLANNED}`: {other!r}"
    for test in row.tests:
        if test in stories:
            if row.id not in stories[test]:
                yield f"{PAGE}: {row.id} names {test}, whose docstring does not name it"
        elif not _exists(test, root):
            yield f"{PAGE}: {row.id} names {test}, which does not exist"


def _exists(test: str, root: Path) -> bool:
    file, name = test.split("::")
    path = root / "tests" / file
    if not path.is_file():
        return False
    return any(f.name == name for f in _functions(ast.parse(path.read_text(encoding="utf-8"))))


def _functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.startswith("test_"):
            yield node


def _ids(text: str | None) -> tuple[str, ...]:
    found = (name for group in NAMED.findall(text or "") for name in group.split(", "))
    return tuple(dict.fromkeys(found))


if __name__ == "__main__":
    sys.exit(main())
