"""Hold the prose rules against documents, docstrings, comments and help texts.

python scripts/check_prose.py                  check all; source folders against the baseline
python scripts/check_prose.py --list-sources   every hit in docstrings, comments and help texts
python scripts/check_prose.py --write-baseline store today's counts of source folders

A sentence has at most 25 words as a rule, and never more than 32. It does not begin with a headless
"Who", "What" or "Whoever". It uses the words of `words.toml`.

Owns: the limits, and which pages they bind. Pages are held to zero. Source folders may have as many
hits as `prose_baseline.toml` says: a folder's count only ever shrinks.
Never: rewrites a text. Next: `prose_text.py` and `prose_sources.py` for what is read.
"""

import argparse
import functools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import check_words
from check_words import ROOT, Banned, tracked
from prose_sources import python_sentences, rust_sentences, toml_sentences
from prose_text import Sentence, markdown_sentences

RULE_WORDS = 25
MAX_WORDS = 32
MAX_SHARE_OVER_RULE = 0.05
"""Of all sentences of the pages, at most this share may be longer than the rule."""
BASELINE = ROOT / "scripts/prose_baseline.toml"
GLOSSARY = "docs/glossary.md"
READERS = {".py": python_sentences, ".rs": rust_sentences, ".toml": toml_sentences}
AS_THEY_ARE = ("docs/decisions/", "docs/results.md", "docs/reference/")
_HEADLESS = re.compile(
    r"^[\"'“(\[]*(?:Who|Whoever|Whom|Whose|What|Whatever)\b(?!.*\?$)|; who(?:ever)?\b", re.I
)


def main() -> int:
    """Print problems and counts; exit status 1 if there is a problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list-sources", action="store_true", help="print the hits in sources")
    parser.add_argument("--write-baseline", action="store_true", help="store today's counts")
    arguments = parser.parse_args()
    if arguments.list_sources:
        print("\n".join(hit for name in source_names() for hit in source_hits(name)))
        return 0
    if arguments.write_baseline:
        write_baseline()
        return 0
    found = problems()
    print("\n".join([*found, *counts()]))
    return 1 if found else 0


def problems() -> list[str]:
    """Return what breaks the rules: hits in pages, and source folders that got worse."""
    return [*page_problems(), *long_share_problems(), *baseline_problems()]


def page_names() -> list[str]:
    """Return the Markdown files that the rules bind."""
    return [name for name in tracked("*.md") if not name.startswith(AS_THEY_ARE)]


@functools.cache
def page_sentences(name: str) -> list[Sentence]:
    """Return the sentences of one page."""
    return list(markdown_sentences((ROOT / name).read_text(encoding="utf-8")))


def page_problems() -> list[str]:
    """Return every hit in the pages."""
    return [
        f"{name}:{sentence.line}: {problem}"
        for name in page_names()
        for sentence in page_sentences(name)
        for problem in sentence_problems(sentence, page_words(name))
    ]


def page_words(name: str) -> list[Banned]:
    """Return the words that a page must not use; the glossary names them all."""
    if name == GLOSSARY:
        return []
    return [word for word in check_words.banned() if not word.is_allowed(name)]


def long_share_problems() -> Iterator[str]:
    """Yield a problem if too many sentences of the pages are longer than the rule."""
    sizes = [s.num_words for name in page_names() for s in page_sentences(name)]
    num_long = sum(size > RULE_WORDS for size in sizes)
    if num_long > MAX_SHARE_OVER_RULE * len(sizes):
        yield (
            f"pages: {num_long} of {len(sizes)} sentences have more than {RULE_WORDS} words, "
            f"at most {MAX_SHARE_OVER_RULE:.0%} may"
        )


def sentence_problems(sentence: Sentence, words: Sequence[Banned]) -> Iterator[str]:
    """Yield what is wrong with one sentence."""
    shown = sentence.text if len(sentence.text) < 90 else sentence.text[:87] + "..."
    if sentence.num_words > MAX_WORDS:
        yield f"{sentence.num_words} words, at most {MAX_WORDS}: {shown}"
    if _HEADLESS.search(sentence.text):
        yield f"a clause without a subject: {shown}"
    for problem in check_words.words_in(sentence.text, words):
        yield f"{problem}: {shown}"


def source_names() -> list[str]:
    """Return the Python, Rust and settings files of the repository, tests included."""
    return tracked(*(f"*{suffix}" for suffix in READERS))


def source_hits(name: str) -> Iterator[str]:
    """Yield the hits in one source file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    read = READERS[Path(name).suffix]
    words = [word for word in check_words.banned() if not word.is_allowed(name)]
    for sentence in sorted(read(text), key=lambda found: found.line):
        for problem in sentence_problems(sentence, words):
            yield f"{name}:{sentence.line}: {problem}"


def folder_of(name: str) -> str:
    """Return the folder under which a file's hits are counted: two levels, packages alone."""
    parts = Path(name).parts[:-1]
    return "/".join(parts[:2]) or "."


@functools.cache
def counted() -> Counter[str]:
    """Return the number of hits of each source folder; the dictionary is not to be changed."""
    totals: Counter[str] = Counter()
    for name in source_names():
        totals[folder_of(name)] += sum(1 for _ in source_hits(name))
    return totals


def baseline() -> dict[str, int]:
    """Return the hits that each source folder may have."""
    if not BASELINE.exists():
        return {}
    return dict(tomllib.loads(BASELINE.read_text(encoding="utf-8"))["hits"])


def baseline_problems() -> Iterator[str]:
    """Yield the source folders with more hits than the baseline allows."""
    allowed = baseline()
    for folder, found in sorted(counted().items()):
        most = allowed.get(folder, 0)
        if found > most:
            yield (
                f"{folder}: {found} hits in docstrings, comments and help texts, at most {most}: "
                "see check_prose.py --list-sources"
            )


def write_baseline() -> None:
    """Store today's counts; folders without hits are left out."""
    rows = [f'"{name}" = {count}' for name, count in sorted(counted().items()) if count]
    head = (
        "# Hits of the prose rules that a source folder may still have. Counts only shrink.\n"
        "# Written by scripts/check_prose.py --write-baseline.\n[hits]\n"
    )
    BASELINE.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


def counts() -> Iterator[str]:
    """Yield the numbers of a run: pages, sentences, long ones, hits in sources."""
    names = page_names()
    sizes = [s.num_words for name in names for s in page_sentences(name)]
    num_long = sum(size > RULE_WORDS for size in sizes)
    yield (
        f"prose: {len(names)} pages, {len(sizes)} sentences, {num_long} over {RULE_WORDS} words, "
        f"{sum(size > MAX_WORDS for size in sizes)} over {MAX_WORDS}; "
        f"sources: {sum(counted().values())} hits, {sum(baseline().values())} allowed"
    )


if __name__ == "__main__":
    sys.exit(main())
