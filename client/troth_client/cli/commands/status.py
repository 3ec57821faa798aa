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
    """Show phase, round, participants and accusations of a run, and where its money is."""
    from solders.pubkey import Pubkey

    from troth_client.cli import casefile, describe
    from troth_client.cli.network import connect, run_async

    run = address(options.run_address, "RUN")

    async def work() -> None:
        async with connect(options.rpc) as client:
            view = await client.snapshot(run)
            entries = describe.taken(view)
            owners = [Pubkey.from_bytes(entry.owner) for _, entry in entries]
            found = await client.read_participants(run, owners) if owners else []
            audits = await client.find_audits(run) if view.run.num_audits else []
        people = {index: one for (index, _), one in zip(entries, found, strict=True)}
        cases = [casefile.of_account(audit) for audit in audits]
        values = describe.status_values(view, people, cases)
        output.result(values, *describe.status_blocks(values))

    run_async(work())
