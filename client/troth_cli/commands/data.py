"""`troth data`: make a token data set, fetch a run's, push and serve it.

Owns: options and printing. Never: tokenises, or moves a byte.
Next: `troth_client.data.prepare`; `../workflows/run_files.py`.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import AllowPrivate, Common, From, OfRun, command
from troth_cli.view.amounts import address_of_run
from troth_cli.view.output import Facts, Grid, Output

if TYPE_CHECKING:
    from troth_cli.workflows.run_files import Fetched
    from troth_client.data.manifest import Manifest
    from troth_client.data.prepare import PrepareOptions, PrepareProgress
    from troth_client.data.sources import Source
    from troth_client.data.tokens import Tokenizer
    from troth_client.transport.offering import Pushed

GROUP = typer.Typer(name="data", help="Token data sets.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class DataOptions(Common):
    """Options of `troth data prepare`."""

    paths: Annotated[
        Optional[list[Path]],  # noqa: UP045  typer reads it at run time
        typer.Argument(metavar="PATH", help="More files for --text.", show_default=False),
    ] = None
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the data set.")]
    stdlib: Annotated[
        bool, typer.Option("--stdlib", help="Take the Python standard library's sources and texts.")
    ] = False
    text: Annotated[
        list[Path],
        typer.Option("--text", metavar="PATH", help="Take files, and all files below folders."),
    ] = field(default_factory=list)
    hf: Annotated[
        str,
        typer.Option(
            "--hf", metavar="NAME", help="Take a Hugging Face data set; needs the extra `data`."
        ),
    ] = ""
    hf_config: Annotated[
        str, typer.Option("--hf-config", metavar="NAME", help="Its configuration.")
    ] = ""
    hf_split: Annotated[str, typer.Option("--hf-split", metavar="NAME", help="Its split.")] = (
        "train"
    )
    hf_column: Annotated[
        str, typer.Option("--hf-column", metavar="NAME", help="The column that holds the text.")
    ] = "text"
    hf_revision: Annotated[
        str, typer.Option("--hf-revision", metavar="REF", help="Its revision; pin it.")
    ] = ""
    tokenizer: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--tokenizer", metavar="FILE", help="tokenizer.json; without it one token a byte."
        ),
    ] = None
    end_token: Annotated[
        str,
        typer.Option(
            "--end-token",
            metavar="TOKEN",
            help="Token of --tokenizer between documents; without it a usual one is looked for.",
        ),
    ] = ""
    sequence_tokens: Annotated[
        int,
        typer.Option(
            "--sequence-tokens",
            metavar="N",
            help="Predictions per sequence. 0: as the run's settings in --config say.",
        ),
    ] = 0
    validation_ppm: Annotated[
        int, typer.Option("--validation-ppm", metavar="PPM", help="Share held out.")
    ] = 20_000
    limit_bytes: Annotated[
        int, typer.Option("--limit-bytes", metavar="N", help="Stop after so much text. 0: all.")
    ] = 0


@dataclass(frozen=True, kw_only=True)
class FetchOptions(OfRun):
    """Options of `troth data fetch`."""

    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder for the files; new, or this run's."),
    ]
    data_from: From = field(default_factory=list)
    allow_private: AllowPrivate = False


OwnData = Annotated[
    Optional[Path],  # noqa: UP045  typer reads it at run time
    typer.Option(
        "--data",
        metavar="DIR",
        help="Data set of the run; else the one beside the run's file.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class PushOptions(OfRun):
    """Options of `troth data push`."""

    data: OwnData = None
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="URL",
            help="A holder, or an object store, that takes the run's files; may be repeated.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class ServeOptions(OfRun):
    """Options of `troth data serve`."""

    data: OwnData = None
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where others reach us.")
    ] = "127.0.0.1:0"


@command(GROUP, "prepare", DataOptions)
def prepare(options: DataOptions, output: Output) -> None:
    """Turn text into a token data set and print the manifest hash that names it.

    One source: --stdlib, --text PATH..., or --hf NAME. A killed preparation goes on where it
    stopped when it is started again; a finished one is left as it is.
    """
    source = _source(options)
    started = time.monotonic()
    manifest = _prepare(options, source, _tokenizer(options, output), output)
    seconds = round(time.monotonic() - started, 3)
    facts = {
        "folder": str(options.out),
        "manifest_hash": manifest.hash.hex(),
        "vocab_size": manifest.vocab_size,
        "end_token": manifest.tokenizer.end_token,
        "sequence_tokens": manifest.sequence_tokens,
        "num_sequences": manifest.num_sequences,
        "num_validation_sequences": manifest.num_validation_sequences,
        "num_shards": len(manifest.train) + len(manifest.validation),
        "seconds": seconds,
    }
    output.result(facts, Facts.of(facts))


@command(GROUP, "fetch", FetchOptions)
def fetch(options: FetchOptions, output: Output) -> None:
    """Fetch config, manifest, tokenizer and all shards of a run, checked under its hashes.

    Needs nothing but the run's address. Nobody has to be trusted: other bytes are refused, and
    another holder is asked. After an interruption the same command goes on with what is there.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.workflows.members import Members
    from troth_cli.workflows.run_files import PATIENCE_SECONDS, check_holders, fetch_run

    run = address_of_run(options.run_address)
    check_holders(options.data_from)

    async def work() -> "Fetched":
        async with connect(options.rpc, options.program) as client:
            view = await client.read_run(run)
            members = Members(
                client,
                run,
                PATIENCE_SECONDS,
                options.data_from,
                allow_private=options.allow_private,
            )
            with output.progress("fetching") as report:
                return await fetch_run(members, view, options.out, report)

    done = run_async(work())
    facts = {
        "run": str(run),
        "folder": str(options.out),
        "config_hash": done.config.config_hash().hex(),
        "manifest_hash": done.manifest.hash.hex(),
        "num_shards": len(done.manifest.train) + len(done.manifest.validation),
        "fetched_bytes": done.num_bytes,
    }
    output.result(facts, Facts.of(facts))


@command(GROUP, "push", PushOptions)
def push(options: PushOptions, output: Output) -> None:
    """Offer config, manifest, tokenizer and shards of a run to hubs and servers that want them.

    Name the run by its file, or give that with --config. A holder takes what the run names and it
    lacks. The exit code is 0 only if each of them could be reached.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.settings import run_settings
    from troth_cli.workflows.run_files import check_holders, kept_files, require_pushed
    from troth_cli.workflows.run_files import push as offer

    run = address_of_run(options.run_address)
    data = _data_of(options)
    check_holders(options.to)
    config = run_settings(options.config).config

    async def work() -> "list[Pushed]":
        async with connect(options.rpc, options.program) as client:
            view = await client.read_run(run)
        kept = kept_files(view, data, config)
        with output.progress("pushing") as report:
            return await offer(kept, options.to, report)

    pushed = run_async(work())
    rows = [(one.holder, one.num_accepted, len(one.refused)) for one in pushed]
    columns = ("holder", "accepted", "refused")
    values = {"run": str(run), "holders": [dict(zip(columns, row, strict=True)) for row in rows]}
    output.result(values, Grid(columns, rows))
    require_pushed(pushed)


@command(GROUP, "serve", ServeOptions)
def serve(options: ServeOptions, output: Output) -> None:
    """Serve the files of a run until Ctrl-C, to whoever lacks them; needs no key.

    Members serve what they have as well. This is for the time before the first of them, and for
    machines that take no part. Name the run by its file, or give that with --config. Others may
    push files of the run that the folder lacks, while all that is missing has room on the disk.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.settings import run_settings
    from troth_cli.workflows.join import split_listen
    from troth_cli.workflows.run_files import kept_files
    from troth_cli.workflows.run_files import serve as until_stopped
    from troth_coordinator.chain.clusters import public_cluster

    run = address_of_run(options.run_address)
    data = _data_of(options)
    listen = split_listen(options.listen)
    config = run_settings(options.config).config

    async def work() -> str:
        async with connect(options.rpc, options.program) as client:
            view = await client.read_run(run)
            is_guarded = await public_cluster(client.rpc) is not None
        kept = kept_files(view, data, config)
        return await until_stopped(kept, listen, output, is_guarded=is_guarded)

    values = {"run": str(run), "endpoint": run_async(work())}
    output.result(values, Facts.of(values))


def _data_of(options: PushOptions | ServeOptions) -> Path:
    """Return the folder that the user or the run's file names; typer.BadParameter without one."""
    if options.data is None:
        raise typer.BadParameter(
            "Missing option '--data': name the folder of the run's data set, or as RUN the run's"
            " file, with its data set beside it."
        )
    return options.data


def _source(options: DataOptions) -> "Source":
    from troth_client.data.hugging_face import HuggingFaceSource
    from troth_client.data.sources import stdlib_source, text_source

    if options.paths and not options.text:
        raise typer.BadParameter(f"{options.paths[0]}: write --text before the files")
    if (options.stdlib, bool(options.text), bool(options.hf)).count(True) != 1:
        raise typer.BadParameter("name one source: --stdlib, --text PATH... or --hf NAME")
    if options.stdlib:
        return stdlib_source()
    if options.text:
        return text_source([*options.text, *(options.paths or ())])
    return HuggingFaceSource(
        options.hf,
        options.hf_config or None,
        options.hf_split,
        options.hf_column,
        options.hf_revision or None,
    )


def _tokenizer(options: DataOptions, output: Output) -> "Tokenizer":
    from troth_client.data.tokens import ByteTokenizer, FileTokenizer

    if options.tokenizer is None:
        if options.end_token:
            raise typer.BadParameter("--end-token names a token of --tokenizer FILE: name both")
        return ByteTokenizer()
    found = FileTokenizer(options.tokenizer, options.end_token or None)
    if found.end_name is None:
        known = ", ".join(found.special_tokens) or "no special token"
        output.warn(
            "documents run into each other: the tokenizer has none of the usual tokens that end"
            f" one, and --end-token names none. It has {known}."
        )
    elif not options.end_token:
        output.note(
            f"A document ends with {found.end_name}, token {found.entry.end_token};"
            " --end-token names another."
        )
    return found


def _prepare(
    options: DataOptions, source: "Source", tokenizer: "Tokenizer", output: Output
) -> "Manifest":
    from troth_client.data import prepare as data

    with output.progress("preparing data") as report:

        def show(done: "PrepareProgress") -> None:
            report(done.done_bytes, done.total_bytes, f"{done.num_sequences} sequences")

        return data.prepare(options.out, source, tokenizer, _shape(options), show)


def _shape(options: DataOptions) -> "PrepareOptions":
    from troth_cli.settings import run_settings
    from troth_client.data.prepare import PrepareOptions

    wanted = options.sequence_tokens or run_settings(options.config).config.data.sequence_tokens
    return PrepareOptions(
        sequence_tokens=wanted,
        validation_ppm=options.validation_ppm,
        limit_bytes=options.limit_bytes or None,
    )
