"""`troth status`: where a run stands and who takes part.

Owns: options and printing. Next: `../describe.py`.
"""

import typer

from troth_client.cli.amounts import address
from troth_client.cli.options import OfRun, command
from troth_client.cli.output import Output


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "status", OfRun)(status)


def status(options: OfRun, output: Output) -> None:
    """Show phase, round and participants of a run."""
    from solders.pubkey import Pubkey

    from troth_client.cli import describe
    from troth_client.cli.network import connect, run_async

    run = address(options.run_address, "RUN")

    async def work() -> None:
        async with connect(options.rpc) as client:
            view = await client.snapshot(run)
            entries = describe.taken(view)
            owners = [Pubkey.from_bytes(entry.owner) for _, entry in entries]
            found = await client.read_participants(run, owners) if owners else []
        people = {index: one for (index, _), one in zip(entries, found, strict=True)}
        values = describe.status_values(view, people)
        output.result(values, *describe.status_blocks(values))

    run_async(work())
