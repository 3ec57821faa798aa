"""`troth status`: where a run stands and who takes part.

Owns: options and printing. Never: computes what it prints.
Next: `../view/status.py`.
"""

import typer

from troth_cli.options import OfRun, command
from troth_cli.view.amounts import address
from troth_cli.view.output import Output

NEWEST = 1_000
"""Transactions that are looked through for slashes: more would take a public node minutes."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "status", OfRun)(status)


def status(options: OfRun, output: Output) -> None:
    """Show phase, round, participants, accusations and slashes of a run, and where its money is.

    Slashes are read from the newest transactions that moved its money. They are shown after their
    cases are closed too, as long as the node remembers.
    """
    from solders.pubkey import Pubkey

    from troth_audit.cases import of_account
    from troth_audit.slashes import read_slashes, slashes_of
    from troth_cli.connection import connect, run_async
    from troth_cli.view import describe
    from troth_cli.view.slashes import slash_grids, slash_values
    from troth_coordinator.chain.addresses import RunAddresses

    run = address(options.run_address, "RUN")

    async def work() -> None:
        async with connect(options.rpc) as client:
            view = await client.snapshot(run)
            entries = describe.taken(view)
            owners = [Pubkey.from_bytes(entry.owner) for _, entry in entries]
            found = await client.read_participants(run, owners) if owners else []
            audits = await client.find_audits(run) if view.run.num_audits else []
            at = RunAddresses.of(view.run, client.program_id)
            has_taken = view.run.treasury or view.run.total_escrow
            past = await read_slashes(client, at, NEWEST) if has_taken else None
        people = {index: one for (index, _), one in zip(entries, found, strict=True)}
        cases = [of_account(audit) for audit in audits]
        slashes = [] if past is None else slashes_of(past, cases)
        rows = [slash_values(one) for one in slashes]
        values = describe.status_values(view, people, cases, rows)
        output.result(values, *describe.status_blocks(values), *slash_grids(slashes))

    run_async(work())
