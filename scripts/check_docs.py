"""Check that the documents still tell the truth: links, generated references, threats, prose.

Owns: the list of generators that have a check mode, and the file names in docstrings.
Never: rewrites anything.
Next: `check_threat_model.py`, which holds the threat model against the tests; `check_prose.py`.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import check_prose
import check_threat_model
import check_words

NAMED = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|rs|toml|sh))`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
PYTHON_FILE = re.compile(r"(?<![\w*<./-])((?:\.\.?/)*\w[\w./-]*\.py)\b(?![\w*])")
FOLLOWS_ITS_TIME = ("CHANGELOG.md",)
"""Pages that may name files which were renamed since."""
GENERATORS = (
    "cli_reference.py",
    "config_reference.py",
    "glossary.py",
    "reference.py",
    "event_types.py",
    "instructions.py",
    "params_view.py",
    "compute_units.py",
    "results.py",
    "sizes.py",
)


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    root = Path(__file__).resolve().parents[1]
    problems = [
        *broken_links(root),
        *missing_files(root),
        *unknown_files(root),
        *stale_references(root),
        *check_threat_model.problems(root),
        *check_threat_model.faults_without_test(root),
        *check_prose.problems(),
    ]
    summary = "docs: links and named files exist, references are current, threats have tests"
    print("\n".join(problems or [summary]))
    print("\n".join(check_prose.counts()))
    return 1 if problems else 0


def broken_links(root: Path) -> Iterator[str]:
    """Yield relative links of the committed Markdown files that lead nowhere."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        for target, heading in LINK.findall(path.read_text(encoding="utf-8")):
            if "://" in target or target.startswith("mailto:"):
                continue
            page = path.parent / target if target else path
            if not page.exists():
                yield f"{name}: link to {target} leads nowhere"
            elif heading and page.suffix == ".md" and heading not in headings(page):
                yield f"{name}: link to {target}#{heading} names no heading"


@lru_cache
def headings(page: Path) -> frozenset[str]:
    """Return the names under which GitHub links to the headings of a page."""
    found = HEADING.findall(page.read_text(encoding="utf-8"))
    words = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one).lower() for one in found)
    return frozenset(re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in words)


def missing_files(root: Path) -> Iterator[str]:
    """Yield the Python files that a docstring names and that do not exist.

    A name may be a path from any folder: `storage/store.py` is found in `client/troth_client`.
    """
    names = check_words.tracked("*.py")
    known = {tail for name in names for tail in path_tails(name)}
    for name in names:
        for line, found in named_files((root / name).read_text(encoding="utf-8")):
            if found not in known:
                yield f"{name}:{line}: the docstring names {found}, which does not exist"


def named_files(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and path of every Python file that the docstrings of a source name."""
    for line, text in docstrings(source):
        for found in PYTHON_FILE.findall(text):
            yield line, found.replace("../", "").removeprefix("./")


def path_tails(name: str) -> Iterator[str]:
    """Yield every end of a path that begins at a folder or at the file."""
    parts = name.split("/")
    yield from ("/".join(parts[start:]) for start in range(len(parts)))


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring of a Python source."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def unknown_files(root: Path) -> Iterator[str]:
    """Yield the source files that a page names and that the repository does not have.

    `run.toml` is the file that `troth run create` writes.
    """
    listed = check_words.tracked("*.py", "*.rs", "*.toml", "*.sh")
    endings = {tail for name in listed for tail in path_tails(name)}
    for page in (name for name in check_prose.page_names() if name not in FOLLOWS_ITS_TIME):
        for named in NAMED.findall((root / page).read_text(encoding="utf-8")):
            if named not in endings and named != "run.toml":
                yield f"{page}: no source file is named {named}"


def stale_references(root: Path) -> Iterator[str]:
    """Yield generators whose committed output differs from what they make now."""
    for name in GENERATORS:
        script = root / "scripts" / "gen" / name
        done = subprocess.run(
            [sys.executable, str(script), "--check"],
            check=False,
            cwd=root,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            yield f"scripts/gen/{name} --check: {lines[-1] if lines else 'failed'}"


if __name__ == "__main__":
    sys.exit(main())
