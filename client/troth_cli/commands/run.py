"""`troth run`: commands of a run's authority, and views of a run for anybody.

Owns: options and printing. Never: the order of transactions; `../workflows/` and the chain client
have it. Next: `../workflows/create.py`.
"""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.commands import economics, init
from troth_cli.options import ELSE_KEY, AsAuthority, Networked, OfRun, Settings, command
from troth_cli.view.amounts import address, address_of_run, lamports, sol
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from troth_cli.run_file import Place
    from troth_coordinator.chain.client import ConfirmedTransaction
    from troth_coordinator.chain.operations import Authority

GROUP = typer.Typer(name="run", help="Create a run and look after it.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class CreateOptions(Networked):
    """Options of `troth run create`."""

    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Data set that the run is bound to.")
    ]
    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help=f"Key file of the run's authority; {ELSE_KEY}"),
    ]
    fund: Annotated[
        str, typer.Option("--fund", metavar="SOL", help="Initial money of the reward pool.")
    ] = "0"
    council: Annotated[
        str,
        typer.Option(
            "--council", metavar="ADDRESS", help="Key that may reverse slashes; else the authority."
        ),
    ] = ""
    name: Annotated[
        str,
        typer.Option("--name", metavar="TEXT", help="Tells apart runs of the same settings."),
    ] = ""
    settings: Settings = field(default_factory=list)
    start: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--from",
            metavar="DIR",
            help="Begin from these weights: config.json and safetensors of a Llama model.",
        ),
    ] = None
    push_to: Annotated[
        list[str],
        typer.Option(
            "--push-to",
            metavar="URL",
            help="A holder or object store that takes config, manifest and tokenizer; may be"
            " repeated.",
        ),
    ] = field(default_factory=list)
    out: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--out",
            metavar="FILE",
            help="The run's file, for those who join; else run.toml here.",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show address, costs and terms; send nothing.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class FundOptions(AsAuthority):
    """Options of `troth run fund`."""

    sol: Annotated[str, typer.Option("--sol", metavar="SOL", help="How much, like 1.5.")]


@dataclass(frozen=True, kw_only=True)
class AdmitOptions(AsAuthority):
    """Options of `troth run admit`."""

    owner: Annotated[
        list[str], typer.Option("--owner", metavar="ADDRESS", help="Owner to admit; repeatable.")
    ]


@dataclass(frozen=True, kw_only=True)
class CloseOptions(AsAuthority):
    """Options of `troth run close`."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what goes back and what is owed; send nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at a terminal.")] = False


@dataclass(frozen=True, kw_only=True)
class UpdateOptions(AsAuthority):
    """Options of `troth run update-params`."""

    settings: Settings = field(default_factory=list)


@command(GROUP, "create", CreateOptions)
def create(options: CreateOptions, output: Output) -> None:
    """Create a run on chain and write its file, for those who join and for other commands.

    The settings come from --config files and --set. Repeating the same command completes an
    interrupted creation and creates nothing twice. --dry-run shows the costs, the windows and what
    a member can lose, and sends nothing.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.run_file import check_run_file, run_file_text, write_run_file
    from troth_cli.settings import run_settings
    from troth_cli.slot_time import slot_time
    from troth_cli.view import run as view
    from troth_cli.workflows import create as creation
    from troth_cli.workflows.run_files import check_holders, publish_files
    from troth_client.data.manifest import load_manifest

    check_holders(options.push_to)
    settings = run_settings(options.config, options.settings)
    for rpc in options.rpc:
        creation.check_calibrated(settings, rpc, options.start)
    key = read_key(options.key, output.warn)
    fund = lamports(options.fund, "--fund")
    council = address(options.council, "--council") if options.council else key.pubkey()
    manifest = load_manifest(options.data)
    settings = creation.bind(settings, manifest, options.start)
    creation.check_tokenizer(options.data, manifest)
    for warning in creation.warnings(settings, manifest, options.start):
        output.warn(warning)
    out = options.out or Path("run.toml")
    settings, given = creation.begin_from(settings, options.start, output.note)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            output.note("Computing the first weights and their root.")
            planned = creation.plan(settings, key, council, options.name, options.program, given)
            place = _place(options, out, str(planned.run), str(client.program_id))
            text = run_file_text(place, settings)
            check_run_file(out, text)
            if options.dry_run:
                slot = await slot_time(client.rpc)
                values = view.planned_values(planned, fund)
                output.result(values, *view.planned_blocks(planned, fund, slot))
                return
            output.note(f"Creating run {planned.run}.")
            created = await creation.create(client, planned, fund)
        write_run_file(out, text)
        if len(place.rpc) < len(options.rpc):
            output.note(f"{out} names no RPC node whose address may hold your access key.")
        for warning in await publish_files(created.view, options.data, settings, options.push_to):
            output.warn(warning)
        values = view.created_values(created, settings, out)
        output.result(values, *view.created_blocks(created, out))

    run_async(work())


def _place(options: CreateOptions, out: Path, run: str, program_id: str) -> "Place":
    """Return what the run's file may tell others: no address that may hold an access key."""
    from troth_cli.run_file import Place, beside, is_public_url

    rpc = tuple(filter(is_public_url, options.rpc))
    start = "" if options.start is None else beside(out, options.start)
    return Place(run, program_id, rpc, beside(out, options.data), start)


@command(GROUP, "show", OfRun)
def show(options: OfRun, output: Output) -> None:
    """Show the Run account: phase, parameters, money."""
    from troth_cli.connection import connect, run_async
    from troth_cli.slot_time import slot_time
    from troth_cli.view.run import run_blocks, run_values

    run = address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            view, slot = await client.read_run(run), await slot_time(client.rpc)
        values = run_values(view, client.program_id) | {"slot_micros": slot.micros}
        output.result(values, *run_blocks(view, client.program_id, slot))

    run_async(work())


@command(GROUP, "fund", FundOptions)
def fund(options: FundOptions, output: Output) -> None:
    """Pay into a run's reward pool."""
    amount = lamports(options.sol, "--sol")
    _as_authority(
        options, output, f"Paid {sol(amount)} into the pool.", lambda by: by.fund_run(amount)
    )


@command(GROUP, "pause", AsAuthority)
def pause(options: AsAuthority, output: Output) -> None:
    """Pause a run: at the close of the open round, or at once if none is open."""
    _as_authority(options, output, "Pause requested.", lambda by: by.pause_run())


@command(GROUP, "resume", AsAuthority)
def resume(options: AsAuthority, output: Output) -> None:
    """End a pause, or take back the request for one."""
    _as_authority(options, output, "Resumed.", lambda by: by.resume_run())


@command(GROUP, "start", AsAuthority)
def start(options: AsAuthority, output: Output) -> None:
    """Begin a run that waits, with chain.min_members participants, though half are not there.

    A run begins by itself once half of the owners that were admitted have joined. After a halt it
    goes on by itself once half of the members of the epoch are back. Its authority need not wait.
    Those who are there then decide every root by majority, so first look at who they are.
    """
    from troth_cli.workflows.start import start_run

    _as_authority(options, output, "Begun.", lambda by: start_run(by.client, by.at, by.key))


@command(GROUP, "admit", AdmitOptions)
def admit(options: AdmitOptions, output: Output) -> None:
    """Put owners on the allowlist of a run.

    Admit all that you expect on the first day before anybody joins: half of those admitted so far
    may begin the run.
    """
    owners = [address(owner, "--owner") for owner in options.owner]

    async def work(by: "Authority") -> "ConfirmedTransaction":
        sent = [await by.admit(owner) for owner in owners]
        return sent[-1]

    _as_authority(options, output, f"Admitted {len(owners)}.", work)


@command(GROUP, "update-params", UpdateOptions)
def update_params(options: UpdateOptions, output: Output) -> None:
    """Ask for new chain parameters; they apply at an epoch boundary after the run's delay.

    Only the reward (half to twice that of the creation), longer windows (up to twice) and a smaller
    min_members may change. A higher reward needs a pool that pays it for an epoch. Name what
    changes under [chain] in a config file or with --set chain.KEY=VALUE.
    """
    from troth_cli.workflows.update import changed_params

    async def work(by: "Authority") -> "ConfirmedTransaction":
        view = await by.client.read_run(by.at.run)
        return await by.update_params(changed_params(view, options.config, options.settings))

    _as_authority(options, output, "Parameters requested.", work)


@command(GROUP, "cancel", AsAuthority)
def cancel(options: AsAuthority, output: Output) -> None:
    """End a run that has waited in vain for chain.unbond_slots since its last round.

    That is, too few members are ready; where enough have joined, they get one Warmup first. Before
    the first round only the authority may end a run. If all clients have stopped for good, anybody
    may: each call takes the transitions that are due, and an error says after which slot to repeat
    it. Owners get their stakes back by leaving; `troth run close` gives back rent and reward pool.
    """
    from troth_cli.workflows.cancel import cancel_run

    _as_authority(options, output, "Cancelled.", lambda by: cancel_run(by.client, by.at, by.key))


@command(GROUP, "close", CloseOptions)
def close(options: CloseOptions, output: Output) -> None:
    """Close the accounts of a finished run; rent and leftovers go back to those who paid.

    Before anything moves, the command shows what goes back to whom and what the run still owes.
    At a terminal it asks, unless --yes is given. A debt to a participant stays, with the
    accounts of that participant and of the run: repeat the command later.

    Anybody may close a finished run, also when every client of it has stopped: the steps of audits
    that are due are taken first. If more will be due later, an error says after which slot. A run
    that nobody has joined is its authority's to close.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view import closing as view
    from troth_cli.workflows.close import close_accounts, preview
    from troth_cli.workflows.right_key import naming_keys

    key = read_key(options.key, output.warn)
    run = address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            planned = await preview(client, run)
            if options.dry_run:
                blocks = [*view.closing_blocks(planned), "Nothing was sent."]
                output.result(view.closing_values(planned), *blocks)
                return
            if _is_at_terminal(output) and not options.yes:
                for line in view.closing_lines(planned):
                    output.note(line)
                typer.confirm("Close these accounts?", abort=True, err=True)
            async with naming_keys(client, run, key.pubkey()):
                done, sent = await close_accounts(client, run, key)
        output.result(view.closing_values(done, sent), *view.closed_blocks(done, sent))

    run_async(work())


def _is_at_terminal(output: Output) -> bool:
    return not output.is_json and sys.stdin.isatty()


def _as_authority(
    options: AsAuthority,
    output: Output,
    done: str,
    act: "Callable[[Authority], Awaitable[ConfirmedTransaction]]",
) -> None:
    """Send one transaction with the authority's key and print it."""
    from troth_cli.connection import connect, run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view.chain import transaction_values
    from troth_cli.workflows.right_key import naming_keys
    from troth_coordinator.chain.addresses import RunAddresses
    from troth_coordinator.chain.operations import Authority

    key = read_key(options.key, output.warn)
    run = address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            at = RunAddresses.of(await client.read_run(run), client.program_id)
            async with naming_keys(client, run, key.pubkey()):
                sent = await act(Authority(client, at, key))
            view = await client.read_run(run)
        values = {
            "run": str(run),
            "phase": view.phase.name.lower(),
            "reward_pool_lamports": view.reward_pool,
            **transaction_values(sent),
        }
        output.result(values, f"{done} Phase {values['phase']}, pool {sol(view.reward_pool)}.")

    run_async(work())


# The help lists commands in this order: those of this module first.
init.register(GROUP)
economics.register(GROUP)
