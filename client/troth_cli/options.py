"""Commands from dataclasses: one frozen object of options per command.

Owns: the options that all commands share and the step from a dataclass to a typer command.
Never: acts on an option.
Next: `settings.py` for config files, `commands/` for the commands.

A field's annotation is what typer wants (`Annotated[int, typer.Option(...)]`), its default the
default; values come from: default < config files, left to right < flags.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Optional,
    TypeVar,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from troth_cli.fallbacks import KEY, filled
from troth_cli.interrupts import raise_again
from troth_cli.listing import Choices, listing
from troth_cli.settings import use_config_files
from troth_cli.solana_config import rpc_url
from troth_cli.view.output import Output

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="One setting of the run, over the files; may be repeated.",
    ),
]


From = Annotated[
    list[str],
    typer.Option(
        "--from",
        metavar="URL",
        help="Somebody who has the run's files, or an object store like s3://bucket/prefix, asked"
        " beside its members; may be repeated.",
    ),
]

Hubs = Annotated[
    list[str],
    typer.Option("--hub", metavar="URL", help="A hub beside those of the config; may be repeated."),
]
DeviceName = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="auto, cpu, cuda, cuda:N or mps; else hints.device of the config.",
    ),
]
MicroBatch = Annotated[
    Optional[int],  # noqa: UP045  typer reads it at run time
    typer.Option(
        "--micro-batch",
        metavar="N",
        min=1,
        help="Sequences to compute at once; else as the config says. Fewer take less memory."
        " A juror's gradient in reference mode keeps the config's number.",
    ),
]
AllowPrivate = Annotated[
    bool,
    typer.Option(
        "--allow-private",
        help="Connect to private addresses of others, also on a public cluster.",
    ),
]


MAX_THREADS: Final = 1_024
"""torch ends the process where it is asked for many more."""
ELSE_KEY: Final = "else that of the Solana CLI config."
"""The end of the help of a key that signs."""


def split_addresses(given: list[str]) -> list[str]:
    """Return the addresses, where one text may hold several with commas between them.

    The name of a cluster becomes its address.
    """
    found = [rpc_url(one.strip()) for text in given for one in text.split(",") if one.strip()]
    if given and not found:
        raise typer.BadParameter("name at least one address, or leave the option out")
    return found


@dataclass(frozen=True, slots=True)
class Invocation:
    """The started command, recorded so that `main` can report its failure with this exit code."""

    is_json: bool
    is_debug: bool
    failed: int = 1


@dataclass(slots=True)
class Session:
    """One run of the program; travels through typer as the context's object."""

    invocation: Invocation | None = None


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of every command. `FAILED` is the exit code of one that could not do its work."""

    FAILED: ClassVar[int] = 1

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = (
        False
    )
    config: Annotated[
        list[Path],
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=use_config_files,
            help="TOML file with defaults for these options and the run's settings;"
            " may be repeated, later files win.",
        ),
    ] = field(default_factory=list)
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True, kw_only=True)
class OnCluster(Common):
    """Options of commands that talk to a chain."""

    rpc: Annotated[
        list[str],
        typer.Option(
            "--rpc",
            metavar="URL",
            envvar="TROTH_RPC",
            callback=split_addresses,
            help="JSON-RPC address of the Solana network, or localhost, devnet, testnet,"
            " mainnet-beta; else that of the Solana CLI config, of the run's file, or localhost."
            " May be repeated, the preferred one first: where one fails, the next is asked. Answers"
            " that decide money or weights are compared.",
            show_default=False,
        ),
    ] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Networked(OnCluster):
    """Options of commands that talk to the program."""

    program_id: Annotated[
        str,
        typer.Option(
            "--program-id",
            metavar="ADDRESS",
            envvar="TROTH_PROGRAM",
            help="Address of the program; else the packaged one's. Commands that sign take no other"
            " one from a run's file.",
            show_default=False,
        ),
    ] = ""

    @property
    def program(self) -> "Pubkey | None":
        """The address of the program, None for that of the packaged one; InputError."""
        from troth_cli.view.amounts import address

        return address(self.program_id, "--program-id") if self.program_id else None


@dataclass(frozen=True, kw_only=True)
class OfRun(Networked):
    """Options of commands about one run."""

    run_address: Annotated[
        str,
        typer.Argument(metavar="RUN", help="The run's address, or its file.", show_default=False),
    ]


@dataclass(frozen=True, kw_only=True)
class AsOwner(OfRun):
    """Options of commands that a participant's owner signs."""

    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help=f"Key file of the owner; {ELSE_KEY}"),
    ]


@dataclass(frozen=True, kw_only=True)
class AsAuthority(OfRun):
    """Options of commands that a run's authority signs."""

    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help=f"Key file of the run's authority; {ELSE_KEY}"),
    ]


_REQUIRED: Final = inspect.Parameter.empty

Options = TypeVar("Options", bound=Common)
Body = Callable[[Options, Output], None]


def command(
    app: typer.Typer,
    name: str,
    options: type[Options],
    choices: Choices | None = None,
    kind: type[TyperCommand] | None = None,
) -> Callable[[Body[Options]], Body[Options]]:
    """Register the decorated function as a command; its docstring is the help text.

    `choices` makes a list that its help ends with. `kind` parses the command line in its own way.
    """

    def register(body: Body[Options]) -> Body[Options]:
        def call(context: typer.Context, **values: Any) -> None:  # noqa: ANN401
            if isinstance(context.obj, Session):
                context.obj.invocation = Invocation(values["json"], values["debug"], options.FAILED)
                raise_again()
            output = Output(is_json=values["json"], is_debug=values["debug"])
            if issubclass(options, OnCluster):
                values = filled(options, values, context, output.note)
            body(options(**values), output)

        parameters = [_context_parameter(), *_parameters(options)]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        call.__doc__ = body.__doc__
        call.__name__ = body.__name__
        app.command(name, cls=kind if choices is None else listing(choices))(call)
        return body

    return register


def _context_parameter() -> inspect.Parameter:
    return inspect.Parameter(
        "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )


def _parameters(options: type[Common]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    optional = {KEY} if issubclass(options, OnCluster) else set()
    for entry in _own_first(options):
        default = entry.default
        if entry.default_factory is not MISSING:
            default = entry.default_factory()
        if default is MISSING and entry.name in optional:
            default = None  # `filled` finds a key, or refuses
        yield inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_REQUIRED if default is MISSING else default,
            annotation=hints[entry.name],
        )


def _own_first(options: type[Common]) -> list[Field[Any]]:
    """Return the fields in the order of a help page: the command's own, then the shared ones."""
    by_name = {entry.name: entry for entry in fields(options)}
    names: dict[str, None] = {}
    for kind in options.__mro__:
        names.update(dict.fromkeys(inspect.get_annotations(kind)))
    return [by_name[name] for name in names if name in by_name]
