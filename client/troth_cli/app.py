"""The list of commands: what `troth --help` shows.

Owns: names and order of the commands. The module of a command is imported only when that command is
used. Never: an option; each command has its own.
Next: `commands/`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

_ABOUT: Final = """Strangers train one model together; work that is found undone costs stake.

Every command has --json for one JSON object on stdout and --config for a TOML file."""

MODULES: Final = {
    "demo": "demo",
    "join": "participation",
    "witness": "participation",
    "stake": "stake",
    "leave": "membership",
    "set-endpoint": "membership",
    "withdraw": "membership",
    "claim": "membership",
    "hub": "hub",
    "archive": "archive",
    "status": "status",
    "dashboard": "dashboard",
    "audit": "audit",
    "plot": "plot",
    "doctor": "doctor",
    "bench": "bench",
    "calibrate": "calibrate",
    "profile": "profile",
    "localnet": "localnet",
    "data": "data",
    "keys": "keys",
    "run": "run",
    "program": "program",
    "case": "case",
    "checkpoint": "checkpoint",
    "ledger": "ledger",
    "debug": "debug",
}
"""First words of a command line in the order of the help, and the module in `commands/` of each."""

Command = TyperCommand | TyperGroup


class LazyCommands(Mapping[str, Command]):
    """The commands by name; reading one imports its module."""

    def __getitem__(self, name: str) -> Command:
        return _load(name, MODULES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


def build() -> TyperGroup:
    """Return the whole command line; nothing has been parsed and no command imported yet."""
    app = _new_app()
    app.callback()(_program)
    program = typer.main.get_group(app)
    # typer reads the commands and never adds one.
    program.commands = LazyCommands()  # type: ignore[assignment]
    return program


def _new_app() -> typer.Typer:
    # Plain help texts: rich would double the time that --help takes.
    return typer.Typer(
        name="troth",
        help=_ABOUT,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


@cache
def _load(name: str, module: str) -> Command:
    """Import a command and let typer read its options, once a process."""
    app = _new_app()
    import_module(f"troth_cli.commands.{module}").register(app)
    return cast(Command, typer.main.get_group(app).commands[name])


def _print_version(is_asked: bool) -> None:
    from importlib.metadata import version

    if is_asked:
        typer.echo(f"troth {version('troth')}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    del version
