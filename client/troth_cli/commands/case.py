"""`troth case`: audits and cases of a run, their verdicts and votes; accuse, appeal, reverse.

Owns: options and printing. Never: checks a claim; `../workflows/accuse.py` does.
Next: `../view/cases.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import ELSE_KEY, OfRun, command
from troth_cli.view.amounts import address_of_run, sol
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from troth_cli.view.output import Json

GROUP = typer.Typer(
    name="case", help="See audits and cases; accuse, appeal, reverse.", no_args_is_help=True
)

_KINDS = "work, payload, root or possession."


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class ListOptions(OfRun):
    """Options of `troth case list`."""

    all: Annotated[
        bool, typer.Option("--all", help="Also those that are over, as far as the node remembers.")
    ] = False
    openable: Annotated[
        bool, typer.Option("--openable", help="Also what a challenger could open a case about now.")
    ] = False
    key: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--key",
            metavar="FILE",
            help="With --openable: the challenger's key file, if it takes part in the run.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OfCase(OfRun):
    """Options of commands about one case."""

    round: Annotated[int, typer.Option("--round", metavar="N", min=0, help="Round of the fault.")]
    target: Annotated[
        int, typer.Option("--target", metavar="INDEX", min=0, help="Index of the accused.")
    ]
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help=_KINDS)] = "work"


@dataclass(frozen=True, kw_only=True)
class OpenOptions(OfCase):
    """Options of `troth case open`."""

    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help=f"Key file that pays the bond; {ELSE_KEY}")
    ]
    subject: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--subject",
            metavar="INDEX",
            min=0,
            help="Possession: whose payload the target claimed to hold.",
        ),
    ] = None
    yes: Annotated[
        bool, typer.Option("--yes", help="Pay the bond; without it, only show what it costs.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class AppealOptions(OfCase):
    """Options of `troth case appeal`."""

    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help=f"Key file of the convicted owner; {ELSE_KEY}"),
    ]


@dataclass(frozen=True, kw_only=True)
class ReverseOptions(OfCase):
    """Options of `troth case reverse`."""

    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help=f"Key file of the council; {ELSE_KEY}")
    ]


@command(GROUP, "list", ListOptions)
def list_(options: ListOptions, output: Output) -> None:
    """List the open audits and cases of a run.

    With --all, those that are over come too, from the newest transactions about the run's money.
    With --openable, the command lists what a challenger could open a case about now: until which
    slot, with which bond, and what a win and a loss cost. `troth case open` opens one.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view import case_list as view
    from troth_cli.workflows.case_list import list_cases

    run = address_of_run(options.run_address)
    key = None if options.key is None else read_key(options.key, output.warn).pubkey()

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            found = await list_cases(
                client,
                run,
                with_closed=options.all,
                with_openable=options.openable,
                challenger=key,
            )
        output.result(view.list_values(found), *view.list_blocks(found))

    run_async(work())


@command(GROUP, "show", OfCase)
def show(options: OfCase, output: Output) -> None:
    """Show one audit or case, open or closed: verdicts, votes, slashed money and its destination.

    Everything is read from the account and from the transactions that named it.
    """
    from troth_audit.history import read_case
    from troth_cli.connection import connect, run_async
    from troth_cli.errors import CaseError
    from troth_cli.slot_time import slot_time
    from troth_cli.view import cases as view
    from troth_cli.workflows import accuse as workflow
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.rules.audit_view import AuditKind
    from troth_coordinator.rules.audits import run_clock

    run = address_of_run(options.run_address)
    # Only the kind is used: a case is shown with or without a subject.
    kind = AuditKind[workflow.kind_name(options.kind)]

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            network, slot = await client.snapshot(run), await slot_time(client.rpc)
            at = RunAddresses.of(network.run, client.program_id)
            key = (options.round, options.target, int(kind))
            case, events = await read_case(client, at, key)
        if case is None:
            raise CaseError(
                f"an audit of participant {options.target} in round {options.round}",
                "none, open or closed, that this node remembers",
                "See the open ones: troth case list.",
                f"run {run}",
            )
        history = view.history_values(events)
        values = {"run": str(run), **view.case_values(case), "history": history}
        clock = run_clock(network.run, network.slot)
        output.result(values, *view.case_blocks(case, events, clock, slot))

    run_async(work())


@command(GROUP, "open", OpenOptions)
def open_(options: OpenOptions, output: Output) -> None:
    """Accuse a participant with a bond; a jury judges.

    The bond pays the jurors first. If the target is convicted, the rest comes back. If the target
    is acquitted, half of the rest goes to the target and half is burned. Without --yes the command
    only shows the bond.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view.chain import transaction_values
    from troth_cli.workflows import accuse as workflow
    from troth_coordinator.chain.addresses import RunAddresses

    run = address_of_run(options.run_address)
    key = read_key(options.key, output.warn)
    claim = workflow.claim_of(options.round, options.target, options.kind, options.subject)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            at = RunAddresses.of(await client.read_run(run), client.program_id)
            challenger = workflow.Signer(client, at, key)
            bond = await challenger.check(claim)
            values: dict[str, Json] = {
                "run": str(run),
                "round": claim.round,
                "target": claim.target,
                "kind": options.kind,
                "challenger": str(key.pubkey()),
                "bond_lamports": bond,
                "is_open": options.yes,
            }
            output.note(f"The bond is {sol(bond)}, paid by {key.pubkey()}.")
            if options.yes:
                values |= transaction_values(await challenger.accuse(claim))
        done = "The case is open." if options.yes else "Nothing was sent; add --yes to open it."
        output.result(values, done, Facts.of(values))

    run_async(work())


@command(GROUP, "appeal", AppealOptions)
def appeal(options: AppealOptions, output: Output) -> None:
    """Ask the run's council to review your own conviction; the escrow waits as long again."""
    done = "Appealed: the council may reverse it after the appeal window."
    _answer(options, options.key, output, "appeal", done)


@command(GROUP, "reverse", ReverseOptions)
def reverse(options: ReverseOptions, output: Output) -> None:
    """As the run's council, reverse a conviction that was appealed or that the breaker holds.

    The target can then claim everything that was taken. The council can do nothing else.
    """
    _answer(options, options.key, output, "reverse", "Reversed: the escrow goes back.")


def _answer(options: OfCase, key_file: Path, output: Output, step: str, done: str) -> None:
    """Send the appeal or the reversal of a conviction."""
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view.chain import transaction_values
    from troth_cli.workflows import accuse as workflow
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.rules.audit_view import AuditKind

    run = address_of_run(options.run_address)
    key = read_key(key_file, output.warn)
    kind = AuditKind[workflow.kind_name(options.kind)]

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            at = RunAddresses.of(await client.read_run(run), client.program_id)
            signer = workflow.Signer(client, at, key)
            send = signer.appeal if step == "appeal" else signer.reverse
            sent = await send((options.round, options.target, int(kind)))
        output.result({"run": str(run), **transaction_values(sent)}, done)

    run_async(work())
