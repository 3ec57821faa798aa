"""`troth dashboard`: a web page of a run, on this machine.

Owns: options and printing. Never: the page; `../dashboard/` has it.
Next: `../dashboard/server.py`.
"""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from troth_cli.options import AllowPrivate, Hubs, OfRun, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Output


@dataclass(frozen=True, kw_only=True)
class DashboardOptions(OfRun):
    """Options of `troth dashboard`."""

    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 picks a free one."),
    ] = 0
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False
    hub: Hubs = field(default_factory=list)
    allow_private: AllowPrivate = False


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "dashboard", DashboardOptions)(dashboard)


def dashboard(options: DashboardOptions, output: Output) -> None:
    """Serve a web page of a run on loopback, live, until Ctrl-C.

    It shows rounds, loss, stakes, participants, audits, cases and slashes, with their transactions.
    It needs no key and changes nothing. The page loads nothing from elsewhere.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.dashboard.process import serve
    from troth_cli.observe.observer import ObserverSettings

    run = address_of_run(options.run_address)
    settings = ObserverSettings(
        rpc_urls=tuple(options.rpc),
        others=tuple(options.hub),
        allow_private=options.allow_private,
    )

    def started(url: str) -> None:
        output.result({"run": str(run), "url": url}, f"The run is shown at {url}")
        output.note("Ctrl-C ends the page's server; the run does not depend on it.")
        if options.open:
            typer.launch(url)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            await serve(client, run, settings, options.port, started)

    run_async(work())
