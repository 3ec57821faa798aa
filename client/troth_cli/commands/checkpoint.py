"""`troth checkpoint`: list, show, fetch, verify and export the weights that a run has stored.

Owns: options and printing. Never: decides which weights are right; `../workflows/checkpoint*.py`
compare them with the chain.
Next: `../workflows/checkpoint.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import AllowPrivate, From, Networked, OfRun, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

    from troth_cli.workflows.checkpoint_fetch import Fetched
    from troth_cli.workflows.checkpoint_verify import Verified
    from troth_cli.workflows.members import Members
    from troth_coordinator.chain.client import CoordinatorClient
    from troth_coordinator.rules.config import RunConfig

GROUP = typer.Typer(
    name="checkpoint",
    help="See, fetch, verify and export the weights that a run has stored.",
    no_args_is_help=True,
)

Round = Annotated[
    Optional[int],  # noqa: UP045  typer reads it at run time
    typer.Option(
        "--round", metavar="N", min=0, help="Round of the checkpoint; else the newest one."
    ),
]
PATIENCE_SECONDS = 60
"""So long a fetch goes on without a piece from anybody."""
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        min=1,
        help="Give up after so long without a piece from anybody.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class ShowOptions(OfRun):
    """Options of `troth checkpoint show`."""

    round: Round = None


@dataclass(frozen=True, kw_only=True)
class FetchOptions(OfRun):
    """Options of `troth checkpoint fetch`."""

    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the checkpoint; a new one.")
    ]
    round: Round = None
    patience: Patience = PATIENCE_SECONDS
    data_from: From = field(default_factory=list)
    allow_private: AllowPrivate = False


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(Networked):
    """Options of `troth checkpoint verify`."""

    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A checkpoint, an export or a safetensors file.",
            show_default=False,
        ),
    ]
    run_address: Annotated[
        str,
        typer.Option(
            "--run", metavar="RUN", help="The run or its file, if the weights do not name it."
        ),
    ] = ""
    round: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option("--round", metavar="N", min=0, help="The round, if the files do not name it."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Networked):
    """Options of `troth checkpoint export`."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|DIR",
            help="A run's address, or its file, or the folder of a checkpoint.",
            show_default=False,
        ),
    ]
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the model; a new one.")
    ]
    round: Round = None
    tokenizer: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--tokenizer", metavar="FILE", help="A tokenizer.json to put beside it."),
    ] = None
    data: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--data", metavar="DIR", help="Data set of the run, for its tokenizer."),
    ] = None
    patience: Patience = PATIENCE_SECONDS
    data_from: From = field(default_factory=list)
    allow_private: AllowPrivate = False


@command(GROUP, "list", OfRun)
def list_(options: OfRun, output: Output) -> None:
    """List the checkpoints of a run: their roots, and how many participants announced each.

    The root is a fact on chain. That somebody holds the weights is a claim.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view import checkpoint as view
    from troth_cli.workflows.checkpoint import read_checkpoints

    run = address_of_run(options.run_address)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            found = await read_checkpoints(client, run)
        output.result(view.list_values(found), *view.list_blocks(found))

    run_async(work())


@command(GROUP, "show", ShowOptions)
def show(options: ShowOptions, output: Output) -> None:
    """Show one checkpoint and who announced it; with the run's file also its size in bytes."""
    from troth_attestation.pieces import tensor_bytes
    from troth_cli.connection import connect, run_async
    from troth_cli.view import checkpoint as view
    from troth_cli.workflows.checkpoint import check_config, read_checkpoints
    from troth_client.model.shapes import trainable_shapes

    run = address_of_run(options.run_address)
    config = _config(options.config)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            found = await read_checkpoints(client, run)
        one = found.one(options.round)
        num_bytes = None
        if config is not None:
            check_config(found.view.run, config)
            num_bytes = sum(map(tensor_bytes, trainable_shapes(config.model).values()))
        values = view.show_values(found, one, str(client.program_id), num_bytes)
        output.result(values, *view.show_blocks(values, found.announcers(one.round)))

    run_async(work())


@command(GROUP, "fetch", FetchOptions)
def fetch(options: FetchOptions, output: Output) -> None:
    """Fetch a checkpoint from the members of a run, each piece checked under the root on chain.

    Without the run's file its config comes from them as well. Nobody has to be trusted: a wrong
    piece is refused, and another member is asked for it. After an interruption the same command
    goes on with what is there. This command serves nothing and needs no key.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view.checkpoint import origin_values
    from troth_cli.workflows.run_files import check_holders
    from troth_client.checkpoint.exporting import Origin

    run = address_of_run(options.run_address)
    check_holders(options.data_from)
    config = _config(options.config)
    out = options.out.absolute()

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            members = _members(client, run, options)
            done = await _fetch(client, members, options.round, config, lambda _: out, output)
        values = origin_values(Origin.of(done.folder.manifest), options.out)
        values |= {"num_bytes": done.folder.pieces.num_bytes, "fetched_bytes": done.num_bytes}
        output.result(values, Facts.of(values))

    run_async(work())


@command(GROUP, "verify", VerifyOptions)
def verify(options: VerifyOptions, output: Output) -> None:
    """Hash weights again and compare their root with the one on chain; exit code 0 only if equal.

    Checkpoints and exports name their run, round and config. Options count more than these names;
    a bare file needs --run and --round, and with an address instead of the run's file --config.
    If the root differs, the error names the first tensor that differs.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view.checkpoint import origin_values
    from troth_cli.workflows.checkpoint_verify import Claim, open_weights
    from troth_cli.workflows.checkpoint_verify import verify as check

    run = str(address_of_run(options.run_address, "--run")) if options.run_address else None
    override = Claim(None, run, options.round, _config(options.config))
    held = open_weights(options.path, override)

    async def work() -> None:
        async with connect(options.rpc, options.program) as client:
            verified = await check(client, held)
        values = origin_values(verified.origin, options.path)
        output.result({**values, "is_verified": True}, Facts.of(values), "PASS")

    run_async(work())


@command(GROUP, "export", ExportOptions)
def export(options: ExportOptions, output: Output) -> None:
    """Write verified weights as a folder that transformers loads, with a model card.

    From a run the checkpoint is fetched first, into DIR.checkpoint-N beside the
    result, which is removed at the end. Nothing is written before the root of the weights is that
    on chain. The tokenizer is that of --tokenizer or --data, else the one beside an export.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view.checkpoint import origin_values
    from troth_cli.workflows import checkpoint_export as workflow
    from troth_cli.workflows.checkpoint_verify import Claim, open_weights
    from troth_cli.workflows.checkpoint_verify import verify as check
    from troth_cli.workflows.run_files import check_holders
    from troth_coordinator.chain.rpc_health import node_name

    check_holders(options.data_from)
    out, config = options.out.absolute(), _config(options.config)
    source = Path(options.source)
    run = None if source.exists() else address_of_run(options.source, "RUN|DIR")
    workflow.check_source(source)
    workflow.check_paths(out, options.tokenizer)

    async def work() -> tuple["Verified", Path | None]:
        fetched = None
        async with connect(options.rpc, options.program) as client:
            path = source
            if run is not None:
                path = fetched = await fetch_first(client, run)
            held = open_weights(path, Claim(None, None, options.round, config))
            return await check(client, held), fetched

    async def fetch_first(client: "CoordinatorClient", run: "Pubkey") -> Path:
        members = _members(client, run, options)

        def folder_of(round_: int) -> Path:
            return workflow.fetch_folder(out, round_)

        done = await _fetch(client, members, options.round, config, folder_of, output)
        return done.folder.path

    verified, fetched = run_async(work())
    beside = None if run is not None else source
    tokenizer = workflow.find_tokenizer(options.tokenizer, options.data, verified.config, beside)
    origin = workflow.write_export(verified, out, tokenizer)
    if fetched is not None:
        workflow.drop_fetch(fetched)
    values = origin_values(origin, options.out)
    values["has_tokenizer"] = tokenizer is not None
    node = node_name(options.rpc[0])  # behind the host may stand a key, and this line is for others
    done = f"Check it anywhere: troth checkpoint verify {options.out} --rpc {node}"
    output.result(values, Facts.of(values), done)


def _members(
    client: "CoordinatorClient", run: "Pubkey", options: FetchOptions | ExportOptions
) -> "Members":
    from troth_cli.workflows.members import Members

    private = options.allow_private
    return Members(client, run, options.patience, options.data_from, allow_private=private)


async def _fetch(
    client: "CoordinatorClient",
    members: "Members",
    round_: int | None,
    config: "RunConfig | None",
    folder_of: Callable[[int], Path],
    output: Output,
) -> "Fetched":
    """Fetch a checkpoint of a round, else the newest, into the folder for its round."""
    from troth_cli.workflows.checkpoint import check_config, committed
    from troth_cli.workflows.checkpoint_fetch import at_the_end, fetch_checkpoint
    from troth_cli.workflows.run_files import read_config
    from troth_client.checkpoint.errors import CheckpointGoneError

    view = await client.read_run(members.run)
    if config is None:
        with output.progress("fetching the run's config") as report:
            config = await read_config(members, view, report)
    check_config(view, config)
    members.ask_also(config.network.relays)
    wanted = await committed(client, view, round_)
    output.note(f"Fetching the weights of round {wanted.round}, root {wanted.root.hex()}.")
    try:
        with output.progress("fetching") as report:
            return await fetch_checkpoint(members, wanted, config, folder_of(wanted.round), report)
    except CheckpointGoneError as error:
        raise at_the_end(error, view) from error


def _config(files: list[Path]) -> "RunConfig | None":
    """Return the run's config from files that are bound to a data set; None without any."""
    from troth_cli.settings import run_settings

    if not files:
        return None
    config = run_settings(files).config
    return config if config.data.manifest_hash else None
