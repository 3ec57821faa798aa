"""The choice between the embedded chain and solana-test-validator, as commands offer it.

Owns: `--validator [PATH]`: a flag, and the one argument that it may bring.
Never: starts a chain. Next: `troth_localnet.embedded`, `troth_localnet.validator`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from troth_localnet.validator import ValidatorLauncher

ValidatorPath = Annotated[
    Optional[Path],  # noqa: UP045  typer reads it at run time
    typer.Argument(metavar="PATH", help="With --validator: its binary.", show_default=False),
]
UseValidator = Annotated[
    bool,
    typer.Option(
        "--validator",
        help="Run solana-test-validator (from PATH of the shell, or the path that follows)"
        " instead of the embedded chain.",
    ),
]


def validator_launcher(
    is_asked: bool, path: Path | None, slot_milliseconds: int, port: int = 0
) -> "ValidatorLauncher | None":
    """Return a launcher of solana-test-validator, None where the embedded chain is meant.

    Raises ValidatorMissingError, OptionError, and BadParameter for a path without the flag.
    """
    if not is_asked:
        if path is not None:
            raise typer.BadParameter(f"{path} needs --validator before it")
        return None
    from troth_localnet.validator import ValidatorLauncher, ValidatorOptions, find_validator

    chosen = ValidatorOptions(binary=path, port=port, slot_milliseconds=slot_milliseconds)
    find_validator(path)
    return ValidatorLauncher(chosen)
