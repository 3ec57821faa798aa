"""`troth plot`: a run as a picture, from event logs.

Owns: options, the kinds of file, printing. Never: counts or draws.
Next: `../plot/collect.py`, then `../plot/draw.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from troth_cli.errors import InputError, OutputFileError
from troth_cli.options import Common, command
from troth_cli.view.output import Facts, Output

SVG: Final = ".svg"
HTML: Final = ".html"


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Common):
    """Options of `troth plot`."""

    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Event logs, or folders that hold some: a state folder, the folder of a demo.",
            show_default=False,
        ),
    ]
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The picture: .svg, or .html with tables.")
    ]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "plot", PlotOptions)(plot)


def plot(options: PlotOptions, output: Output) -> None:
    """Draw loss, participation, bytes, stakes and slashes of a run from event logs.

    An .svg is the picture alone. An .html is a page with the numbers as tables: it needs no script
    and loads nothing. Older files beside a log are read too. Name the logs of several participants
    of one run, and their means and counts are shown.
    """
    _check(options.out)
    from troth_cli.plot.collect import collect, find_logs
    from troth_cli.plot.draw import INLINE, PAPER, svg_of
    from troth_cli.plot.page import page_of
    from troth_cli.plot.words import sentences
    from troth_client.runtime.files import atomic_write

    logs = find_logs(options.sources)
    data = collect(logs, output.warn)
    is_page = options.out.suffix == HTML
    text = page_of(data, svg_of(data, INLINE)) if is_page else svg_of(data, PAPER)
    atomic_write(options.out, [text.encode()])
    values = {
        "out": str(options.out),
        "run": data.run,
        "logs": len(logs),
        "rounds": len(data.rounds),
        "loss_first": data.losses[0][1] if data.losses else None,
        "loss_last": data.losses[-1][1] if data.losses else None,
        "taken_lamports": data.taken,
    }
    output.result(values, Facts([("picture", options.out), ("logs", len(logs))]), *sentences(data))


def _check(out: Path) -> None:
    """Raise InputError or OutputFileError where the picture could not be written in the end."""
    if out.suffix not in (SVG, HTML):
        raise InputError(
            f"a file that ends in {SVG} or {HTML}",
            repr(out.name),
            f"Write --out {out.with_suffix('').name or 'run'}{SVG}.",
            "--out",
        )
    if out.is_dir():
        raise OutputFileError("a file to write", "a folder", "Name a file in it.", str(out))
    if not out.parent.is_dir():
        raise OutputFileError(
            "a file in a folder that exists",
            f"no folder {out.parent}",
            f"Make it first: mkdir -p {out.parent}",
            str(out),
        )
