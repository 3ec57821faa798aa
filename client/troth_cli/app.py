"""The list of commands: what `troth --help` shows.

Owns: names and order of groups. Never: an option; each command has its own.
Next: `commands/`.
"""

import typer

from troth_cli.commands import (
    calibrate,
    case,
    data,
    debug,
    demo,
    economics,
    keys,
    localnet,
    membership,
    participation,
    run,
    status,
)

_ABOUT = """Strangers train one model together; work that was not done costs the stake.

Every command has --json for one JSON object on stdout and --config for a TOML file."""


def build() -> typer.Typer:
    """Return the whole command line; nothing has been parsed yet."""
    # Plain help texts: rich would double the time that --help takes.
    app = typer.Typer(
        name="troth",
        help=_ABOUT,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    demo.register(app)
    economics.register(run.GROUP)
    groups = (localnet.GROUP, data.GROUP, keys.GROUP, run.GROUP)
    for group in groups:
        app.add_typer(group)
    participation.register(app)
    membership.register(app)
    status.register(app)
    app.add_typer(case.GROUP)
    calibrate.register(app)
    app.add_typer(debug.GROUP)
    return app
