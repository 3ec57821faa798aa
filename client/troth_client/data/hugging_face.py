"""Text of a data set of the Hugging Face hub, or of a folder that `datasets` loads.

Owns: the source, and a quick question whether the hub can be reached at all.
Never: keeps a copy of the data set.
Next: `sources.py` for files; `prepare.py`, which runs a source through a tokenizer.
"""

import hashlib
import importlib.util
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from troth_client.data.errors import DatasetsMissingError, SourceError
from troth_client.data.sources import Piece, cut_bytes
from troth_client.runtime.installed import install_command
from troth_coordinator.errors import TrothError

ANSWER_SECONDS: Final = 2.5
"""A hub that is there answers faster."""
MAX_FOUND: Final = 300
"""Letters of the library's message that an error repeats."""


@dataclass(frozen=True)
class HuggingFaceSource:
    """One split of a data set of the Hugging Face hub, or of a folder that `datasets` loads."""

    name: str
    config: str | None = None
    split: str = "train"
    column: str = "text"
    revision: str | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the fields, and over names, sizes and times of a folder's files.

        Pin `revision` to be sure of the content of a data set on the hub.
        """
        fields = [self.name, self.config, self.split, self.column, self.revision]
        root = Path(self.name)
        files = (
            [path for path in sorted(root.rglob("*")) if path.is_file()] if self._is_here else []
        )
        stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
        marks = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
        return hashlib.sha256(json.dumps([*fields, *marks]).encode()).hexdigest()

    @property
    def _is_here(self) -> bool:
        """Whether the name is that of a folder: then nobody is asked."""
        return Path(self.name).exists()

    @property
    def num_bytes(self) -> int | None:
        """Unknown: the data set is streamed."""
        return None

    def pieces(self) -> Iterator[Piece]:
        """All pieces, row by row. Raises DatasetsMissingError or SourceError."""
        if importlib.util.find_spec("datasets") is None:
            raise DatasetsMissingError(
                "the package `datasets`",
                "it is not installed",
                f"Install it with: {install_command('data')}",
            )
        if not self._is_here:
            from huggingface_hub.constants import ENDPOINT  # noqa: PLC0415  slow to import

            require_answer(ENDPOINT)
        rows = self._rows()
        while (text := self._next(rows)) is not None:
            yield from cut_bytes(text)

    def _next(self, rows: Iterator[Mapping[str, object]]) -> bytes | None:
        """Return the text of the next row, None behind the last one. Raises SourceError."""
        try:
            row = next(rows, None)
            return None if row is None else self._text(row).encode()
        except (TrothError, MemoryError):
            raise
        except Exception as error:
            # For a file that is cut off or none, and for a connection that is lost, the library
            # and those below it raise whatever they have: EOFError, LZMAError, TypeError.
            raise SourceError(
                f"split {self.split!r} of data set {self.name}",
                f"{type(error).__name__}: {error}"[:MAX_FOUND],
                "Check --hf, --hf-config, --hf-split and --hf-revision, or repeat the command:"
                " it goes on.",
            ) from error

    def _rows(self) -> Iterator[Mapping[str, object]]:
        import datasets  # noqa: PLC0415  optional, and slow to import

        yield from datasets.load_dataset(
            self.name, self.config, split=self.split, revision=self.revision, streaming=True
        )

    def _text(self, row: Mapping[str, object]) -> str:
        text = row.get(self.column)
        if isinstance(text, str):
            return text
        is_there = self.column in row
        raise SourceError(
            f"text in column {self.column!r} of {self.name}",
            f"a row with {type(text).__name__} there" if is_there else f"columns {sorted(row)}",
            "Name the column that holds the text with --hf-column; each row needs one.",
        )


def require_answer(endpoint: str, seconds: float = ANSWER_SECONDS) -> None:
    """Raise SourceError unless something answers at the hub's address within so many seconds.

    The library would try for minutes. A lookup of a name ignores time limits, hence the thread.
    """
    failures: list[str] = []

    def ask() -> None:
        try:
            httpx.head(endpoint, timeout=seconds)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            failures.append(str(error) or type(error).__name__)
        else:
            failures.append("")

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    found = failures[0] if failures else f"no answer in {seconds:g} s"
    if found:
        raise SourceError(
            f"the Hugging Face hub at {endpoint}",
            found,
            "Connect this machine to the network, or take a folder of files with --text.",
        )
