"""`troth archive`: keep everything that an audit of a run needs, and check what was kept.

Owns: options and printing. Never: the work; `troth_client.archive` has it.
Next: `troth_client/archive/process.py`, `troth_client/archive/check.py`.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Optional

import typer
from typer.core import TyperGroup

from troth_cli.errors import InputError
from troth_cli.options import AllowPrivate, Common, From, OfRun, command
from troth_cli.view.amounts import address_of_run, gigabytes
from troth_cli.view.output import Facts, Grid, Output

if TYPE_CHECKING:
    from troth_client.archive.book import Book
    from troth_client.archive.check import Checked

_MOST_ROWS: Final = 40
_DEFAULT: Final = "keep"


class RunOrCommand(TyperGroup):
    """A group whose first word may be a run: then the command is `keep`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer has its own
        """Parse the command line; `troth archive RUN` is `troth archive keep RUN`."""
        if args and args[0] not in (*self.commands, "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


GROUP = typer.Typer(
    name="archive",
    cls=RunOrCommand,
    help="Keep everything that an audit of a run needs: troth archive RUN --out DIR|URL.",
    no_args_is_help=True,
)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class KeepOptions(OfRun):
    """Options of `troth archive RUN`."""

    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="DIR|URL",
            help="Folder of the archive, or an object store like s3://bucket/prefix; one that began"
            " goes on.",
        ),
    ]
    work: Annotated[
        Path,
        typer.Option(
            "--work",
            metavar="DIR",
            help="Folder for ledger and lists of an archive in a store, which gets copies of them.",
        ),
    ] = Path("archive-work")
    max_gb: Annotated[
        Optional[float],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--max-gb",
            metavar="GB",
            min=0,
            help="It grows no larger: payloads and openings of the oldest rounds give way.",
        ),
    ] = None
    keep_rounds: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--keep-rounds",
            metavar="N",
            min=1,
            help="Keep payloads and openings of the newest N rounds only; else of all.",
        ),
    ] = None
    copy_to: Annotated[
        str,
        typer.Option(
            "--copy-to",
            metavar="URL",
            help="An object store that gets a copy of everything, like s3://bucket/prefix; nothing"
            " is removed there.",
            show_default=False,
        ),
    ] = ""
    data_from: From = field(default_factory=list)
    allow_private: AllowPrivate = False


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Common):
    """Options of `troth archive check`."""

    path: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL",
            help="Folder of an archive, or an object store with one.",
            show_default=False,
        ),
    ]


@command(GROUP, _DEFAULT, KeepOptions)
def keep(options: KeepOptions, output: Output) -> None:
    """Follow a run and keep its ledger, headers, payloads and opened tiles, until the run is over.

    An archive has no key, and nobody has to trust it. Every byte lies under its hash, and the
    ledger folds into the hash on chain. missing.json lists all that nobody delivers. Start it
    early: members forget old rounds. Ctrl-C or a kill loses nothing, and the next start goes on.
    """
    from troth_cli.connection import connect, run_async
    from troth_cli.view.events import EventLines
    from troth_cli.workflows.run_files import check_holders
    from troth_client.archive.process import Archived, ArchiveSettings, keep_archive
    from troth_client.archive.room import Keeping
    from troth_client.transport.endpoint import check_store, is_store

    check_holders(options.data_from)
    store = options.out if is_store(options.out) else ""
    if store and options.copy_to:
        raise InputError(
            "one store", "--out URL and --copy-to", "Leave out one of them.", "--copy-to"
        )
    for url in filter(None, (store, options.copy_to)):
        check_store(url)
    settings = ArchiveSettings(
        run=address_of_run(options.run_address),
        folder=options.work if store else Path(options.out),
        keeping=Keeping(gigabytes(options.max_gb, "--max-gb"), options.keep_rounds),
        others=tuple(options.data_from),
        allow_private=options.allow_private,
        copy_to=options.copy_to,
        store=store,
    )

    async def work() -> Archived:
        async with connect(options.rpc, options.program) as client:
            return await keep_archive(settings, client, EventLines(output))

    found = run_async(work())
    values = {"run": str(settings.run), "out": options.out, **asdict(found)}
    output.result(values, Facts.of(values))


@command(GROUP, "check", CheckOptions)
def check(options: CheckOptions, output: Output) -> None:
    """Look for every byte that an archive's ledger names, and compare it with its hash.

    A folder needs no network. The exit code is 0 if nothing is missing or damaged, else 1.
    """
    from troth_client.archive.check import check_archive, check_stored
    from troth_client.transport.endpoint import check_store, is_store

    with output.progress("checking entries", in_bytes=False) as report:

        def tell(done: int, book: "Book") -> None:
            report(done, None, f"round {book.newest}")

        if is_store(options.path):
            check_store(options.path)
            found = check_stored(options.path, tell)
        else:
            found = check_archive(Path(options.path), tell)
    problems = [asdict(one) for one in found.problems]
    values = {**_facts(found), "whole": dict(found.whole), "problems": problems}
    output.result(values, *_blocks(found))
    if not found.is_whole:
        raise typer.Exit(1)


def _facts(found: "Checked") -> dict[str, object]:
    return {
        "run": found.run,
        "chain_hash": found.chain_hash,
        "entries": found.num_entries,
        "round": found.round,
        "bytes": found.num_bytes,
        "forgotten_before_round": found.forgotten_before,
        "num_problems": found.num_problems,
    }


def _blocks(found: "Checked") -> list[Facts | Grid | str]:
    counts = [(f"{kind} whole", count) for kind, count in sorted(found.whole.items())]
    blocks: list[Facts | Grid | str] = [Facts([*Facts.of(_facts(found)).rows, *counts])]
    rows = [
        (one.kind, _shown(one.round), _shown(one.participant), one.key[:16], one.what)
        for one in found.problems[:_MOST_ROWS]
    ]
    if rows:
        blocks.append(Grid(("kind", "round", "participant", "key", "what is wrong"), rows))
    if found.num_problems > len(rows):
        blocks.append(f"and {found.num_problems - len(rows)} more; --json lists them")
    return blocks


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)
