"""`troth hub`: relay for the members of a run that nobody can reach from outside.

Owns: options and printing. Never: the work; `troth_client.hub` has it.
Next: `troth_client/hub/process.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from troth_cli.options import Networked, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Output

_MB = 10**6
_GB = 10**9


@dataclass(frozen=True, kw_only=True)
class HubOptions(Networked):
    """Options of `troth hub`."""

    run_address: Annotated[
        str, typer.Option("--run", metavar="RUN", help="The run's address, or its file.")
    ]
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where members reach this hub.")
    ]
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Folder for what it keeps; none other's.")
    ]
    max_gb: Annotated[
        int, typer.Option("--max-gb", metavar="GB", min=1, help="The folder never grows larger.")
    ] = 20
    quota_mb: Annotated[
        int,
        typer.Option(
            "--quota-mb",
            metavar="MB",
            min=1,
            help="Most that one address may push in a round; as much again in pieces.",
        ),
    ] = 2_000
    keep_rounds: Annotated[
        int, typer.Option("--keep-rounds", metavar="N", min=1, max=64, help="Rounds to serve.")
    ] = 32


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "hub", HubOptions)(hub)


def hub(options: HubOptions, output: Output) -> None:
    """Relay payloads, opened tiles and weights for the members of a run, until Ctrl-C or SIGTERM.

    A hub has no key, and nobody has to trust it: it takes only bytes that the chain names, and
    whoever asks it checks them. Put its address into [network] hubs of the config, or into --hub
    of join. Callers on this machine read /metrics.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view.events import EventLines
    from troth_cli.workflows.join import split_listen
    from troth_client.hub.process import HubSettings, serve_hub

    host, port = split_listen(options.listen)
    settings = HubSettings(
        run=address_of_run(options.run_address, "--run"),
        folder=options.folder,
        host=host,
        port=port,
        max_bytes=options.max_gb * _GB,
        quota_bytes=options.quota_mb * _MB,
        keep_rounds=options.keep_rounds,
    )

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            await serve_hub(settings, client, EventLines(output))

    run_async(work())
