"""Hold documents and identifiers against the list of words in `words.toml`.

python scripts/check_words.py                 the pages of the documentation
python scripts/check_words.py --identifiers   the names in Python and Rust, file by file; that the
                                              names which the list gives exist; that no file
                                              imports a class of ours under another name

Owns: finding words that the project does not use. Never: rewrites anything.
Next: `words.toml` for the list; `check_prose.py`, which asks about docstrings too.
"""

import argparse
import ast
import fnmatch
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "scripts/words.toml"
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_RUST_NAME = re.compile(
    r"\b(?:fn|struct|enum|trait|mod|const|static|type|let(?: mut)?)\s+([A-Za-z_]\w*)"
    r"|^\s*(?:pub(?:\([^)]*\))? )?([a-z_]\w*)\s*:\s",
    re.M,
)
_RUST_COMMENT = re.compile(r"//.*")
_OURS = re.compile(r"(?:troth_\w+|support)(?:\.|$)")
_CLASS = re.compile(r"[A-Z]\w*[a-z]")


@dataclass(frozen=True, slots=True)
class Banned:
    """A word that is not used, what to write instead, and where it is right all the same."""

    word: str
    use: str
    phrases: re.Pattern[str] | None
    where: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The word and its plural, in any case."""
        words = r"[\s_-]+".join(map(re.escape, self.word.split()))
        return re.compile(rf"\b{words}(?:s|es)?\b", re.I)

    def is_allowed(self, path: str, name: str = "") -> bool:
        """Tell whether the list allows the word in this file, or in this name."""
        return any(fnmatch.fnmatch(path, p) or fnmatch.fnmatch(name, p) for p in self.where)


def entries() -> dict[str, list[dict[str, object]]]:
    """Return the list as it is written."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


@functools.cache
def banned() -> tuple[Banned, ...]:
    """Return every word that is not used."""
    listed = entries()
    pairs = [(str(entry["word"]), str(entry["use"])) for entry in listed["never"]]
    for idea in listed["idea"]:
        pairs += [(str(word), str(idea["word"])) for word in _listed(idea, "not")]
    allowed = {str(entry["word"]): entry for entry in listed["allowed"]}
    return tuple(_banned(word, use, allowed.get(word, {})) for word, use in pairs)


def _banned(word: str, use: str, allowed: dict[str, object]) -> Banned:
    phrases = [str(phrase) for phrase in _listed(allowed, "phrases")]
    pattern = re.compile("|".join(phrases), re.I) if phrases else None
    return Banned(word, use, pattern, tuple(map(str, _listed(allowed, "where"))))


def _listed(entry: dict[str, object], key: str) -> list[object]:
    found = entry.get(key, [])
    return found if isinstance(found, list) else []


@functools.cache
def any_banned() -> re.Pattern[str]:
    """Return a pattern that finds whether there is any such word: most sentences have none."""
    return re.compile("|".join(entry.pattern.pattern for entry in banned()), re.I)


def words_in(text: str, words: Sequence[Banned]) -> Iterator[str]:
    """Yield what is wrong with a sentence's words."""
    if not any_banned().search(text):
        return
    for entry in words:
        left = entry.phrases.sub(" ", text) if entry.phrases else text
        if entry.pattern.search(left):
            yield f'"{entry.word}": write {entry.use}'


def identifier_hits(words: Sequence[Banned]) -> Iterator[str]:
    """Yield the names, in Python and Rust, that hold a word of the list."""
    for path in tracked("*.py", "*.rs"):
        for line, name in names_in(path):
            found = [word for word in words if holds(name, word.word)]
            for entry in (word for word in found if not word.is_allowed(path, name)):
                yield f"{path}:{line}: {name} holds {entry.word}: write {entry.use}"


def unknown_names() -> Iterator[str]:
    """Yield the names that the list gives for an idea and that no source file has."""
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in tracked("*.py", "*.rs")]
    known = {word for text in texts for word in re.findall(r"\w+", text)}
    for idea in entries()["idea"]:
        for name in str(idea["code"]).split(", "):
            if not set(re.findall(r"\w+", name)) <= known:
                yield f"scripts/words.toml: {idea['word']}: no source file has {name}"


def aliased_classes() -> Iterator[str]:
    """Yield the classes of the project that a file imports under another capitalised name."""
    for path in tracked("*.py"):
        for line, found in aliases_in((ROOT / path).read_text(encoding="utf-8")):
            yield f"{path}:{line}: {found}: rename one of the two classes, or import a module"


def aliases_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and words of each class of the project that is imported under another name."""
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
    for node in (one for one in imports if _OURS.match(one.module or "")):
        for one in node.names:
            if _CLASS.match(one.name) and _CLASS.match(one.asname or ""):
                yield node.lineno, f"{one.name} as {one.asname}"


def names_in(path: str) -> list[tuple[int, str]]:
    """Return line and name of what a file defines, and as line 0 its folders and its own name."""
    text = (ROOT / path).read_text(encoding="utf-8")
    names = rust_names(text) if path.endswith(".rs") else python_names(text)
    return [(0, part) for part in Path(path).with_suffix("").parts] + sorted(set(names))


def holds(identifier: str, word: str) -> bool:
    """Tell whether a name contains a word, or all words of a phrase one after the other."""
    parts = [part.lower() for part in _PART.findall(identifier)]
    singular = [part[:-1] if part.endswith("s") else part for part in parts]
    wanted = word.split()
    size = len(wanted)
    starts = range(len(parts) - size + 1)
    return any(wanted in (parts[i : i + size], singular[i : i + size]) for i in starts)


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that a Python file defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def rust_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of what a Rust file defines: items, bindings, fields."""
    code = _RUST_COMMENT.sub("", text)
    for match in _RUST_NAME.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match.group(1) or match.group(2)


def tracked(*patterns: str) -> list[str]:
    """Return the files of the repository with these names."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(name for name in done.stdout.splitlines() if (ROOT / name).exists())


def main() -> int:
    """Print every hit; exit status 1 if there is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--identifiers", action="store_true", help="names instead of pages")
    is_names = parser.parse_args().identifiers
    found = name_hits() if is_names else page_hits()
    print("\n".join(found) or "words: one word for one idea")
    return 1 if found else 0


def name_hits() -> list[str]:
    """Return what is wrong with the names in Python and Rust."""
    return [*identifier_hits(banned()), *unknown_names(), *aliased_classes()]


def page_hits() -> list[str]:
    """Return the hits in the pages that `check_prose.py` reads."""
    import check_prose  # noqa: PLC0415

    return [hit for hit in check_prose.page_problems() if '": write' in hit]


if __name__ == "__main__":
    sys.exit(main())
