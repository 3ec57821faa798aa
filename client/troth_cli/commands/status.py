"""`troth status`: where a run stands and who takes part.

Owns: options and printing. Never: computes what it prints.
Next: `../view/status.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Optional

import typer

from troth_cli.options import AllowPrivate, Hubs, OfRun, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Output

HEADER_SECONDS: Final = 1.5
"""So long at most are members asked for the loss of the newest rounds."""


@dataclass(frozen=True, kw_only=True)
class StatusOptions(OfRun):
    """Options of `troth status`."""

    state: Annotated[
        Optional[list[Path]],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--state",
            metavar="DIR",
            help="Folder of a participant here: show what it pays for fees; else those in "
            "troth-state.",
            show_default=False,
        ),
    ] = None
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Go on showing the run until it ends or Ctrl-C: a picture on a terminal of 80"
            " columns, else a line per closed round; with --json an object per change.",
        ),
    ] = False
    hub: Hubs = field(default_factory=list)
    allow_private: AllowPrivate = False


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "status", StatusOptions)(status)


def status(options: StatusOptions, output: Output) -> None:
    """Show phase, round, loss, participants, accusations and slashes of a run, and its money.

    Slashes are read from the newest transactions that moved its money. They are shown after their
    cases are closed too, as long as the node remembers. The training loss is what the trainers of
    the newest round signed; members are asked for it for a second or two. Of participants on this
    machine it shows the priority fees, and for how many rounds their session keys can pay.
    """
    if options.watch:
        _watch(options, output)
        return
    from troth_cli.connection import connect, run_async
    from troth_cli.observe.observer import Observer, ObserverSettings
    from troth_cli.state_folders import found_folders
    from troth_cli.view.payers import payer_grids, payer_values
    from troth_cli.view.slashes import slash_grids
    from troth_cli.view.status import status_blocks

    run = address_of_run(options.run_address)
    folders = options.state or found_folders(run)
    settings = ObserverSettings(
        others=tuple(options.hub), allow_private=options.allow_private, follows=False
    )

    async def work() -> None:
        async with (
            connect(options.rpc, options.program) as client,
            Observer(client, run, settings) as observer,
        ):
            await observer.settle(HEADER_SECONDS)
            seen = observer.latest()
        for warning in seen.warnings:
            output.warn(warning)
        payers = payer_values(folders)
        values = {**seen.to_json(), "payers": payers}
        blocks = [*status_blocks(seen), *slash_grids(seen.slashes), *payer_grids(payers)]
        output.result(values, *blocks)

    run_async(work())


def _watch(options: StatusOptions, output: Output) -> None:
    from troth_cli.connection import connect, run_async
    from troth_cli.observe.observer import ObserverSettings
    from troth_cli.workflows.watch import watch

    run = address_of_run(options.run_address)
    settings = ObserverSettings(
        rpc_urls=tuple(options.rpc),
        others=tuple(options.hub),
        allow_private=options.allow_private,
    )

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            await watch(client, run, settings, output)

    run_async(work())
