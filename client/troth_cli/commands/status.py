"""`troth status`: where a run stands and who takes part.

Owns: options and printing. Never: computes what it prints.
Next: `../view/status.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import OfRun, command
from troth_cli.view.amounts import address
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from troth_audit.cases import CaseFile
    from troth_audit.slashes import Slash
    from troth_coordinator.chain.client import CoordinatorClient
    from troth_coordinator.rules.view import NetworkView, ParticipantView

NEWEST = 1_000
"""Transactions that are looked through for slashes: more would take a public node minutes."""


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


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "status", StatusOptions)(status)


def status(options: StatusOptions, output: Output) -> None:
    """Show phase, round, participants, accusations and slashes of a run, and where its money is.

    Slashes are read from the newest transactions that moved its money. They are shown after their
    cases are closed too, as long as the node remembers. Of participants on this machine it shows
    the priority fees, and for how many rounds their session keys can pay.
    """
    from troth_audit.cases import of_account
    from troth_cli.connection import connect, run_async
    from troth_cli.view import status as view
    from troth_cli.view.payers import payer_grids, payer_values
    from troth_cli.view.slashes import slash_grids, slash_values
    from troth_coordinator.rules.oversight import oversight, recent_rounds, warnings_of

    run = address(options.run_address, "RUN")

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            network = await client.snapshot(run)
            participants = await _participants(client, network)
            audits = await client.find_audits(run) if network.run.num_audits else []
            cases = [of_account(audit) for audit in audits]
            slashes = await _slashes(client, network, cases)
            recent = await client.read_rounds(run, recent_rounds(network))
        seen = oversight(network, recent)
        for warning in warnings_of(seen):
            output.warn(warning)
        rows = [slash_values(one) for one in slashes]
        values = view.status_values(network, seen, participants, cases, rows)
        payers = payer_values(
            options.state or sorted(Path("troth-state").glob(f"{str(run)[:8]}-*"))
        )
        values["payers"] = payers
        blocks = [*view.status_blocks(values), *slash_grids(slashes), *payer_grids(payers)]
        output.result(values, *blocks)

    run_async(work())


async def _participants(
    client: "CoordinatorClient", network: "NetworkView"
) -> "dict[int, ParticipantView | None]":
    """Return the accounts of everybody on the roster, by index."""
    from solders.pubkey import Pubkey

    from troth_cli.view.participants import taken_entries

    entries = taken_entries(network)
    if not entries:
        return {}
    owners = [Pubkey.from_bytes(entry.owner) for _, entry in entries]
    found = await client.read_participants(Pubkey.from_bytes(network.run.address), owners)
    return {index: one for (index, _), one in zip(entries, found, strict=True)}


async def _slashes(
    client: "CoordinatorClient", network: "NetworkView", cases: "Sequence[CaseFile]"
) -> "list[Slash]":
    """Return what was taken from whom; asks nothing before the first round."""
    if not network.run.round:
        return []
    from troth_audit.slashes import read_slashes, slashes_of
    from troth_coordinator.chain.addresses import RunAddresses

    at = RunAddresses.of(network.run, client.program_id)
    return slashes_of(await read_slashes(client, at, NEWEST), cases)
