"""`troth plot`: a run as a picture, from event logs or from the chain.

Owns: options, the kinds of file, printing. Never: counts or draws.
Next: `../plot/collect.py` and `../plot/observed.py`, then `../plot/draw.py`.
"""

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from troth_cli.errors import InputError
from troth_cli.options import AllowPrivate, Hubs, Networked, command
from troth_cli.result_files import check_file
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

    from troth_cli.plot.data import PlotData

SVG: Final = ".svg"
HTML: Final = ".html"
HEADER_SECONDS: Final = 12.0
"""Members get so long, at most, to serve the headers that hold the losses."""


@dataclass(frozen=True, kw_only=True)
class PlotOptions(Networked):
    """Options of `troth plot`."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|LOG",
            help="A run's address, or its file; or event logs, and folders that hold some: a state"
            " folder, the folder of a demo.",
            show_default=False,
        ),
    ]
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The picture: .svg, or .html with tables.")
    ]
    hub: Hubs = field(default_factory=list)
    allow_private: AllowPrivate = False


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "plot", PlotOptions)(plot)


def plot(options: PlotOptions, output: Output) -> None:
    """Draw loss, participation, bytes, stakes and slashes of a run, from event logs or the chain.

    An .svg is the picture alone. An .html is a page with the numbers as tables: it needs no script
    and loads nothing. Older files beside a log are read too. Name the logs of several participants
    of one run, and their means and counts are shown. Of a run, the chain and the headers that
    members serve are read; a length of payloads and earlier stakes stand in logs alone.
    """
    _check(options.out)
    from troth_cli.plot.draw import INLINE, PAPER, svg_of
    from troth_cli.plot.page import page_of
    from troth_cli.plot.words import sentences
    from troth_client.runtime.files import atomic_write

    data = _collected(options, output)
    is_page = options.out.suffix == HTML
    text = page_of(data, svg_of(data, INLINE)) if is_page else svg_of(data, PAPER)
    atomic_write(options.out, [text.encode()])
    values = {
        "out": str(options.out),
        "run": data.run,
        "rounds": len(data.rounds),
        "loss_first": data.losses[0][1] if data.losses else None,
        "loss_last": data.losses[-1][1] if data.losses else None,
        "taken_lamports": data.taken,
    }
    output.result(values, Facts([("picture", options.out)]), *sentences(data))


def _collected(options: PlotOptions, output: Output) -> "PlotData":
    """Read what the sources name: a single one that is no path may be a run's address."""
    from solders.pubkey import Pubkey

    from troth_cli.plot.collect import collect, find_logs

    run: Pubkey | None = None
    if len(options.sources) == 1 and not Path(options.sources[0]).exists():
        with contextlib.suppress(ValueError):
            run = Pubkey.from_string(options.sources[0])
    if run is not None:
        return _observed(run, options, output)
    return collect(find_logs(map(Path, options.sources)), output.warn)


def _observed(run: "Pubkey", options: PlotOptions, output: Output) -> "PlotData":
    """Look once at a run on chain, and ask its members for the headers of its rounds."""
    from troth_cli.connection import connect, run_async
    from troth_cli.observe.observer import Observer, ObserverSettings
    from troth_cli.plot.observed import of_observation

    settings = ObserverSettings(
        others=tuple(options.hub), allow_private=options.allow_private, follows=False
    )

    async def work() -> "PlotData":
        async with (
            connect(options.rpc, options.program) as client,
            Observer(client, run, settings) as observer,
        ):
            await observer.settle(HEADER_SECONDS)
            seen = observer.latest()
        for warning in seen.warnings:
            output.warn(warning)
        return of_observation(seen)

    return run_async(work())


def _check(out: Path) -> None:
    """Raise InputError or OutputFileError where the picture could not be written in the end."""
    if out.suffix not in (SVG, HTML):
        raise InputError(
            f"a file that ends in {SVG} or {HTML}",
            repr(out.name),
            f"Write --out {out.with_suffix('').name or 'run'}{SVG}.",
            "--out",
        )
    check_file(out)
