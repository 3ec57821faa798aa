"""`troth debug`: make and apply payload bytes by hand, for authors of another client.

Owns: files in, files and facts out. Never: a format; `compression/` in the client has them.
Next: `troth_client.compression.debug`.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from troth_cli.errors import OutputFileError
from troth_cli.options import Common, command
from troth_cli.view.output import Facts, Output

GROUP = typer.Typer(
    name="debug",
    help="The byte formats by hand, to compare other clients with.",
    no_args_is_help=True,
)

Coefficients = Annotated[
    int, typer.Option("--k", metavar="K", help="Coefficients per tile: 1, 2, 4, ... 64.")
]
Result = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the bytes go.")]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class PayloadOptions(Common):
    """Options of `troth debug payload`."""

    tiles: Annotated[
        Path,
        typer.Option(
            "--tiles", metavar="FILE.npy", help="u in the DCT domain: float32 [tiles, 64, 64]."
        ),
    ]
    k: Coefficients
    out: Result


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Common):
    """Options of `troth debug apply`."""

    files: Annotated[
        Optional[list[Path]],  # noqa: UP045  typer reads it at run time
        typer.Argument(
            metavar="FILE", help="Payload files; none: an empty round.", show_default=False
        ),
    ] = None
    tiles: Annotated[int, typer.Option("--tiles", metavar="N", help="Tiles of the model.")]
    k: Coefficients
    out: Result


@command(GROUP, "payload", PayloadOptions)
def payload(options: PayloadOptions, output: Output) -> None:
    """Encode u to payload bytes: top-k of every tile, signs and indices; always prints JSON."""
    from troth_client.compression.debug import payload_from_file

    data, facts = payload_from_file(options.tiles, options.k)
    _write(options.out, [data])
    Output(is_json=True, out=output.out).result(asdict(facts))


@command(GROUP, "apply", ApplyOptions)
def apply(options: ApplyOptions, output: Output) -> None:
    """Sum payloads and write the direction, int8 [tiles, 64, 64]; prints its SHA-256."""
    from troth_client.compression.debug import direction_from_files
    from troth_client.compression.known_answer import choose_path

    path, files = choose_path("cpu"), options.files or []
    data, digest = direction_from_files(files, options.tiles, options.k, path)
    _write(options.out, [data])
    values = {"length": len(data), "sha256": digest, "num_payloads": len(files)}
    output.result(values, Facts(list(values.items())))


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    from troth_client.runtime.files import atomic_write

    if path.is_dir():
        raise OutputFileError("a file to write", "a folder", "Name a file in it.", str(path))
    atomic_write(path, chunks)
