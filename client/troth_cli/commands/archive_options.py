"""The options of an archive that is kept beside other work, and the bound that a user names.

Owns: their names; `troth archive` has them without the prefix. Never: keeps an archive.
Next: `participation.py`, `archive.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from troth_cli.errors import InputError
from troth_cli.options import AsOwner
from troth_cli.view.amounts import gigabytes


@dataclass(frozen=True, kw_only=True)
class WithArchive(AsOwner):
    """Options of a command that can keep an archive beside its work."""

    archive: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--archive",
            metavar="DIR",
            help="Keep an archive of the run in this folder, too, as troth archive does.",
        ),
    ] = None
    archive_max_gb: Annotated[
        Optional[float],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--archive-max-gb",
            metavar="GB",
            min=0,
            help="The archive grows no larger: payloads and openings of the oldest rounds give"
            " way.",
        ),
    ] = None
    archive_keep_rounds: Annotated[
        Optional[int],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--archive-keep-rounds",
            metavar="N",
            min=1,
            help="The archive keeps payloads and openings of the newest N rounds only; else of"
            " all.",
        ),
    ] = None

    def archive_bytes(self) -> int | None:
        """Return the most bytes of the archive.

        Raises InputError for a bound of no archive, and for one that is no number of gigabytes.
        """
        bounds = {
            "--archive-max-gb": self.archive_max_gb,
            "--archive-keep-rounds": self.archive_keep_rounds,
        }
        for name, bound in bounds.items():
            if bound is not None and self.archive is None:
                step = "Name the folder with --archive DIR, or leave this option out."
                raise InputError("the folder of an archive as well", "none", step, name)
        return gigabytes(self.archive_max_gb, "--archive-max-gb")
