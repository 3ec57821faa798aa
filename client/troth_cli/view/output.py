"""Results to stdout, everything else to stderr, for people or as one JSON object.

Owns: the two forms of a result, warnings, notes and progress bars, none of which lets a control
character through. Colours go away with NO_COLOR and where the output is no terminal (rich sees to
both).
Never: decides what is printed.
Next: `commands/`, whose functions receive one `Output` each.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TextIO

from troth_cli.interrupts import ending_at_once
from troth_cli.view.lossy import LossyStream
from troth_client.telemetry.printable import one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""A value that a result may hold."""

Report = Callable[[int, int | None, str], None]
"""Reports progress: done, total if known, and a short note."""

_PIPE_WIDTH: Final = 160
"""Columns where there is no terminal: nothing that a script reads should wrap."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and values, one a line; values are never cut."""

    rows: Sequence[tuple[str, object]]
    title: str = ""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Return values of a JSON object as they are; their names are the labels."""
        return cls([(name.replace("_", " "), value) for name, value in values.items()])

    def lines(self) -> list[str]:
        """Return the lines as they are printed, the title first."""
        rows = [(one_line(label), one_line(value)) for label, value in self.rows]
        width = max((len(label) for label, _ in rows), default=0)
        title = [one_line(self.title)] if self.title else []
        return title + [f"  {label:<{width}}  {value}" for label, value in rows]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a header."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""


class Output:
    """Where a command prints. `is_json`: one JSON object on stdout, no progress bars.

    `is_debug`: errors with their tracebacks, also those of processes that it starts.
    """

    def __init__(
        self,
        *,
        is_json: bool = False,
        is_debug: bool = False,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.is_json = is_json
        self.is_debug = is_debug
        self._out = out
        self._err = err

    def result(self, values: Mapping[str, object], *blocks: Facts | Grid | str) -> None:
        """Print the result: `values` (what JSON can hold) as one object, or `blocks` for people."""
        if self.is_json:
            self._write(json.dumps(values))
            return
        for block in blocks:
            if isinstance(block, str):
                self._write(printable(block))
            elif isinstance(block, Facts):
                self._write("\n".join(block.lines()))
            else:
                self._grid(block)

    def note(self, text: str) -> None:
        """Print a line on stderr that is no result; nobody may be there to read it."""
        err = self.err
        err.write(printable(text) + "\n")
        err.flush()

    def warn(self, text: str) -> None:
        """Print a line on stderr that the user should look at."""
        self.note(f"warning: {text}")

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """Announce imports that take seconds; Ctrl-C ends the process at once inside the block."""
        self.note("loading…")
        with ending_at_once():
            yield

    @contextlib.contextmanager
    def progress(self, title: str, *, in_bytes: bool = True) -> Iterator[Report]:
        """Show a bar on stderr while the block runs; silent with --json."""
        if self.is_json:
            yield lambda done, total, note: None
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn() if in_bytes else MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=self.console(),
        )
        with bar:
            task = bar.add_task(one_line(title), total=None, note="")

            def report(done: int, total: int | None, note: str) -> None:
                bar.update(task, completed=done, total=total, note=one_line(note))

            yield report

    def console(self) -> "Console":
        """Return a console on stderr, for displays that draw themselves."""
        return self._console(self.err)

    def screen(self) -> "Console":
        """Return a console on stdout, for results that draw themselves."""
        return self._console(self.out)

    @property
    def out(self) -> TextIO:
        """Standard output, or what stands for it."""
        return self._out or sys.stdout

    @property
    def err(self) -> TextIO:
        """Standard error, or what stands for it; a line that cannot be written ends nothing."""
        return LossyStream.of(self._err or sys.stderr)

    def _write(self, text: str) -> None:
        self.out.write(text + "\n")
        self.out.flush()

    def _grid(self, block: Grid) -> None:
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(one_line(block.title)) or None, title_justify="left", box=None)
        for column in block.columns:
            table.add_column(column, overflow="fold")
        for row in block.rows:
            table.add_row(*(escape(one_line(cell)) for cell in row))
        self._console(self.out).print(table)

    def _console(self, stream: TextIO) -> "Console":
        from rich.console import Console

        return Console(file=stream, width=None if stream.isatty() else _PIPE_WIDTH, highlight=False)
