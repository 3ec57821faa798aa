"""Text as the prose rules see it: Markdown, docstrings and comments cut into sentences.

Owns: what a sentence and a word are. Never: judges one; `check_prose.py` does.
Next: `prose_sources.py` for where the text of a source file lies.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")
_CODE = re.compile(r"``[^`]*``|`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_TEST = re.compile(r"\S+::\S+")
_MARK = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}")
# A capital, a number or code begins a sentence; so does the name of a field and its colon.
_END = re.compile(r"(?<=[.!?])[)\"'”]*\s+(?=[\"'“(\[]*[A-Z0-9~]|[a-z_]+(?:, [a-z_]+)*: )")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|etc|cf|vs|No|resp)\.$")
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")
CODE_WORD = "~code"
"""Stands in a sentence for a piece of code, which counts as one word."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, or a table cell, and the line in which its paragraph begins."""

    line: int
    text: str

    @property
    def num_words(self) -> int:
        """Words, a piece of code counted as one; numbers and symbols alone do not count."""
        return sum(1 for word in _WORD.findall(self.text) if not word.isdigit())


def markdown_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a Markdown page; headings, table heads and code are left out."""
    for line, block in _markdown_blocks(text):
        yield from split(block, line)


def split(text: str, line: int) -> Iterator[Sentence]:
    """Yield the sentences of one paragraph that begins in this line."""
    plain = " ".join(_plain(text).split())
    begun = ""
    for part in _END.split(plain):
        begun = f"{begun} {part}".strip()
        if not _SHORT.search(begun):
            yield from _sentence(line, begun)
            begun = ""
    yield from _sentence(line, begun)


def _sentence(line: int, text: str) -> Iterator[Sentence]:
    if _WORD.search(text):
        yield Sentence(line, text)


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", _CODE.sub(CODE_WORD, text))
    return _MARK.sub("", _TEST.sub("", text))


def _markdown_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every paragraph, list item and table cell."""
    begun, block, is_code, is_table = 1, list[str](), False, False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = bool(_FENCE.match(line))
        is_code = is_code != is_fence
        is_row = line.lstrip().startswith("|")
        is_apart = is_code or is_fence or is_row or _is_silent(line)
        if block and (is_apart or _ITEM.match(line)):
            yield begun, " ".join(block)
            block = []
        if is_row and not is_code and is_table:
            yield from ((number, cell) for cell in _cells(line))
        is_table = is_row
        if not is_apart:
            begun = begun if block else number
            block.append(_ITEM.sub("", line).strip())
    if block:
        yield begun, " ".join(block)


def _is_silent(line: str) -> bool:
    is_comment = line.lstrip().startswith("<!--")
    return not line.strip() or is_comment or bool(_HEADING.match(line))


def _cells(line: str) -> list[str]:
    if _RULE.match(line):
        return []
    return [cell for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")) if cell.strip()]
