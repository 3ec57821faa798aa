"""Results of checks as one table.

Owns: columns and words. Never: checks. Next: `../workflows/checks.py`.
"""

from collections.abc import Sequence

from troth_cli.view.output import Grid
from troth_cli.workflows.checks import Level, Row
from troth_client.telemetry.printable import one_line

_COLUMNS = ("check", "", "found", "needed", "what to do")


def checks_grid(rows: Sequence[Row]) -> Grid:
    """Return the table of checks; an answer of a stranger cannot steer the terminal."""
    return Grid(_COLUMNS, [[one_line(cell) for cell in _cells(row)] for row in rows])


def checks_lines(rows: Sequence[Row]) -> list[str]:
    """Return the checks as lines for stderr, one each."""
    width = max((len(row.name) for row in rows), default=0)
    return [_line(row, width) for row in rows]


def _line(row: Row, width: int) -> str:
    result = row.result
    parts = [f"{row.name:<{width}}  {result.level.value:<10}  {result.found}"]
    if result.level is not Level.OK:
        parts += [f"needed: {result.needed}"] if result.needed else []
        parts += [f"next: {result.advice}"] if result.advice else []
    return "; ".join(parts)


def _cells(row: Row) -> tuple[str, ...]:
    result = row.result
    return (row.name, result.level.value, result.found, result.needed, result.advice)
