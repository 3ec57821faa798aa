"""The prose inside source files: docstrings, comments and the help texts of options.

Owns: where prose lies in Python, Rust and TOML. Never: judges it; `check_prose.py` does.
Next: `prose_text.py` for what a sentence is.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from itertools import pairwise

from prose_text import Sentence, split

_RUST_DOC = re.compile(r"^\s*//[/!]? ?(.*)$")
_DRAWN = re.compile(r"^\s{2,}|^\s*[>|+]|─|│|->.*->|^\s*$|^(?:python|make|troth|pytest) ")
_PRAGMA = re.compile(r"^(?:noqa|type:|pragma|ruff|mypy|fmt|!)")
_TAG = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
Described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of docstrings, of `help=` arguments and of comments."""
    for node in ast.walk(ast.parse(text)):
        for line, prose in _strings(node):
            yield from paragraphs(prose.splitlines(), line)
    yield from _python_comments(text)


def rust_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of comments, those of documentation included."""
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), 1))
    found = ((number, _RUST_DOC.match(line)) for number, line in numbered)
    yield from _blocks((number, match.group(1)) for number, match in found if match)


def toml_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of comments that have a line of their own."""
    numbered = enumerate(text.splitlines(), 1)
    yield from _blocks((number, line.lstrip("# ")) for number, line in numbered if line[:1] == "#")


def paragraphs(lines: Iterable[str], first: int) -> Iterator[Sentence]:
    """Yield the sentences of plain text; what is indented or drawn is no prose."""
    block, begun = list[str](), first
    for number, line in enumerate(lines, first):
        is_apart = bool(_DRAWN.search(line)) and (number > first or not line.strip())
        if block and (is_apart or _TAG.match(line)):
            yield from split(" ".join(block), begun)
            block = []
        if not is_apart:
            begun = begun if block else number
            block.append(_TAG.sub("", line))
    if block:
        yield from split(" ".join(block), begun)


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, Described):
        yield from _docstring(node)
    if isinstance(node, Described) or isinstance(getattr(node, "body", None), list):
        yield from _described_constants(node)
    if isinstance(node, ast.keyword) and node.arg == "help":
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.value


def _docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[tuple[int, str]]:
    text = ast.get_docstring(node)
    if text is not None:
        yield node.body[0].lineno, text


def _described_constants(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings that stand below a constant or a field and say what it is."""
    body = getattr(node, "body", [])
    for before, entry in pairwise(body):
        is_text = isinstance(entry, ast.Expr) and isinstance(entry.value, ast.Constant)
        if is_text and isinstance(before, ast.Assign | ast.AnnAssign):
            value = entry.value.value
            if isinstance(value, str):
                yield entry.lineno, value


def _python_comments(text: str) -> Iterator[Sentence]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    yield from _blocks((token.start[0], token.string.lstrip("# ")) for token in comments)


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Sentence]:
    """Yield the sentences of comments; lines that follow one another are one text."""
    block, last, begun = list[str](), -1, 1
    for number, line in lines:
        if _PRAGMA.match(line):
            continue
        if number != last + 1:
            yield from paragraphs(block, begun)
            block, begun = [], number
        block.append(line)
        last = number
    yield from paragraphs(block, begun)
