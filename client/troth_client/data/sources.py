"""Where text comes from: the Python standard library, files and folders, Hugging Face data sets.

Owns: which documents, in which order, cut into which pieces. Never: tokenises or writes.
Next: tokens.py turns pieces into tokens.

A source is deterministic: the same `fingerprint` means the same pieces in the same order. So a
killed preparation can go on where it stopped.
"""

import hashlib
import json
import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from troth_client.data.errors import SourceError

PIECE_BYTES = 1 << 16
_TEXT_SUFFIXES = frozenset({".py", ".txt", ".rst", ".md"})
_SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "site-packages", "dist-packages", "test", "tests", "idle_test"}
)


class Piece(NamedTuple):
    """At most PIECE_BYTES of UTF-8 text; `ends_document` marks the last piece of its document."""

    text: bytes
    ends_document: bool


class Source(Protocol):
    """A deterministic stream of text."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the pieces could."""

    @property
    def num_bytes(self) -> int | None:
        """Total size if it is known in advance."""

    def pieces(self) -> Iterator[Piece]:
        """All pieces, in order."""
        ...


@dataclass(frozen=True)
class FileSource:
    """Text files, in the given order. Files that start like binary ones are passed over."""

    files: tuple[Path, ...]

    @property
    def fingerprint(self) -> str:
        """SHA-256 over names, sizes and modification times."""
        stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in self.files]
        return hashlib.sha256(json.dumps(stats).encode()).hexdigest()

    @property
    def num_bytes(self) -> int | None:
        """Sum of the file sizes."""
        return sum(path.stat().st_size for path in self.files)

    def pieces(self) -> Iterator[Piece]:
        """All pieces of all files."""
        for path in self.files:
            with path.open("rb") as stream:
                yield from cut(stream)


def stdlib_source() -> FileSource:
    """Take sources and texts of the running Python's standard library, by name, no tests."""
    root = Path(sysconfig.get_path("stdlib"))
    files = [path for path in _walk(root) if path.suffix in _TEXT_SUFFIXES]
    if not files:
        raise SourceError(
            f"the sources of the Python standard library in {root}",
            "none",
            "Use a Python that ships its sources, or --text with files of your own.",
        )
    return FileSource(tuple(files))


def text_source(paths: Iterable[Path]) -> FileSource:
    """Take the named files, and every file below the named folders, by name. Raises SourceError."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += _walk(path)
        elif path.is_file():
            files.append(path)
        else:
            raise SourceError(f"a file or folder {path}", "nothing there", "Check the path.")
    if not files:
        raise SourceError("at least one text file", "empty folders", "Name files that hold text.")
    return FileSource(tuple(files))


def cut(stream: IO[bytes]) -> Iterator[Piece]:
    """Cut one document into pieces, at line ends where there are any. Binary content gives none."""
    rest = b""
    is_first = True
    while True:
        block = rest + stream.read(PIECE_BYTES - len(rest))
        if is_first and b"\0" in block[:8192]:
            return
        is_first = False
        following = stream.read(1) if len(block) == PIECE_BYTES else b""
        if not following:
            if block:
                yield Piece(block, ends_document=True)
            return
        end = _cut_at(block)
        yield Piece(block[:end], ends_document=False)
        rest = block[end:] + following


def cut_bytes(document: bytes) -> Iterator[Piece]:
    """Cut a document that is already in memory, as `cut` does."""
    start = 0
    while len(document) - start > PIECE_BYTES:
        end = start + _cut_at(document[start : start + PIECE_BYTES])
        yield Piece(document[start:end], ends_document=False)
        start = end
    if start < len(document):
        yield Piece(document[start:], ends_document=True)


def _cut_at(block: bytes) -> int:
    """Where to cut: after the last line end, else before the last UTF-8 character."""
    line = block.rfind(b"\n") + 1
    if line:
        return line
    end = len(block) - 1
    while end > len(block) - 4 and block[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _walk(root: Path) -> list[Path]:
    """Regular files below a folder, sorted by path; no hidden ones, no links to folders."""
    found: list[Path] = []
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if n not in _SKIPPED_FOLDERS and not n.startswith(".")]
        found += [Path(folder) / name for name in files if not name.startswith(".")]
    return sorted((path for path in found if path.is_file()), key=lambda path: path.parts)
