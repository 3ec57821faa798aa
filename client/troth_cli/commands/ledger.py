"""`troth ledger`: the events of a run in a file of one's own, provable at any later time.

Owns: options and printing. Never: folds an event; `troth_coordinator/ledger/` does.
Next: `../workflows/ledgers.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from troth_cli.options import Common, Networked, OfRun, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from troth_cli.workflows.ledgers import Made
    from troth_coordinator.ledger.file import Ledger

GROUP = typer.Typer(
    name="ledger",
    help="Keep the events of a run in a file, and prove them by the chain hash.",
    no_args_is_help=True,
)

LedgerPath = Annotated[
    Path, typer.Argument(metavar="LEDGER", help="A ledger file.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class PullOptions(OfRun):
    """Options of `troth ledger pull`."""

    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The ledger to begin or to go on with.")
    ]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(Networked):
    """Options of `troth ledger verify`."""

    path: LedgerPath


@dataclass(frozen=True, kw_only=True)
class MergeOptions(Common):
    """Options of `troth ledger merge`."""

    paths: Annotated[
        list[Path],
        typer.Argument(metavar="LEDGER...", help="Ledgers of one run.", show_default=False),
    ]
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The new ledger.")]


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Networked):
    """Options of `troth ledger repair`."""

    path: LedgerPath
    others: Annotated[
        list[Path],
        typer.Option("--from", metavar="LEDGER", help="Another ledger of the run; repeatable."),
    ] = field(default_factory=list)


@command(GROUP, "pull", PullOptions)
def pull(options: PullOptions, output: Output) -> None:
    """Write all events of a run from an RPC node into a file, or add what is new.

    The chain hash proves them: a ledger stays provable when the node has forgotten its
    transactions. An RPC node that leaves out or changes an event is found out.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.workflows import ledgers

    async def work() -> None:
        run = address_of_run(options.run_address)
        async with connect(options.rpc, options.program) as client:
            added, proof = await ledgers.pull(client, run, options.out)
        values = {"ledger": str(options.out), "added": added, "events": proof.num_events}
        output.result(values, Facts.of(values), "Every event is proven by the chain hash.")

    run_async(work())


@command(GROUP, "verify", VerifyOptions)
def verify(options: VerifyOptions, output: Output) -> None:
    """Fold a ledger and compare its chain hash with the run's on chain."""
    from troth_cli.connection import connect, run_async
    from troth_cli.workflows import ledgers

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            proof = await ledgers.verify(client, _opened(options.path))
        values = {"ledger": str(options.path), "events": proof.num_events}
        output.result(values, Facts.of(values), "Every event is proven by the chain hash.")

    run_async(work())


@command(GROUP, "merge", MergeOptions)
def merge(options: MergeOptions, output: Output) -> None:
    """Put ledgers of one run together, each stretch from whichever proves it."""
    from troth_cli.workflows import ledgers

    made = ledgers.merge([_opened(path) for path in options.paths], options.out)
    _told(output, options.out, made)


@command(GROUP, "repair", RepairOptions)
def repair(options: RepairOptions, output: Output) -> None:
    """Fill the holes of a ledger from the RPC node and other ledgers.

    The file from before stays beside it. Nothing changes if a gap would be left.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.workflows import ledgers

    async def work() -> None:
        others = [_opened(path) for path in options.others]
        async with connect(options.rpc, options.program) as client:
            made = await ledgers.repair(client, _opened(options.path), others)
        _told(output, options.path, made)

    run_async(work())


def _told(output: Output, path: Path, made: "Made") -> None:
    values = {
        "ledger": str(path),
        "transactions": made.num_entries,
        "events": made.num_events,
        "gap": made.gap,
    }
    if made.gap:
        output.warn(f"the ledger ends before a gap: {made.gap}")
    output.result(values, Facts.of(values))


def _opened(path: Path) -> "Ledger":
    from troth_coordinator.ledger.file import Ledger

    return Ledger.of(path)
