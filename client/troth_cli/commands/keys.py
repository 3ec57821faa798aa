"""`troth keys`: key files in the form that Solana's tools share.

Owns: making and showing. Never: prints a secret. Next: `../keyfiles.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from troth_cli.options import Common, command
from troth_cli.view.output import Output

GROUP = typer.Typer(
    name="keys", help="Key files, in the form that Solana's tools share.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class KeyOptions(Common):
    """Options of `troth keys new` and `troth keys show`."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="The key file.")]


@command(GROUP, "new", KeyOptions)
def new(options: KeyOptions, output: Output) -> None:
    """Make a new key and write it to a file that only you can read; never overwrites one."""
    from solders.keypair import Keypair

    from troth_cli.keyfiles import write_key

    key = Keypair()
    write_key(options.file, key)
    address = str(key.pubkey())
    output.result({"address": address, "file": str(options.file)}, f"{address}  {options.file}")


@command(GROUP, "show", KeyOptions)
def show(options: KeyOptions, output: Output) -> None:
    """Print the address of a key file."""
    from troth_cli.keyfiles import read_key

    address = str(read_key(options.file, output.warn).pubkey())
    output.result({"address": address, "file": str(options.file)}, f"{address}  {options.file}")
