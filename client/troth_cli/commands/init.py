"""`troth run init`: a config to begin with.

Owns: options and printing. Never: overwrites a file. Next: `../presets/`, where the texts lie.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from troth_cli.options import Common, command
from troth_cli.presets import PRESETS
from troth_cli.view.output import Output

_LIST = "; ".join(f"{name}, {about}" for name, about in PRESETS.items())


@dataclass(frozen=True, kw_only=True)
class InitOptions(Common):
    """Options of `troth run init`."""

    preset: Annotated[str, typer.Option("--preset", metavar="NAME", help=f"One of: {_LIST}.")] = (
        "localnet"
    )
    start: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--from",
            metavar="DIR",
            help="Take the model from the config.json in this folder.",
            show_default=False,
        ),
    ] = None
    out: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--out",
            metavar="FILE",
            help="The new file; else NAME.toml or DIR.toml here.",
            show_default=False,
        ),
    ] = None


def register(group: typer.Typer) -> None:
    """Add the command to `troth run`."""
    command(group, "init", InitOptions)(init)


def init(options: InitOptions, output: Output) -> None:
    """Write a config to begin with: TOML with comments, in units like 0.0015 and 0.1 SOL.

    Change what you like, prepare data with the same file, and create the run. The file is yours:
    nothing is overwritten. With --from the run begins from a Llama as transformers saves it, and
    bounds of the judge that belong to the preset's model are left out.
    """
    from troth_cli.errors import InputError
    from troth_cli.presets import preset_text
    from troth_cli.run_file import write_run_file
    from troth_cli.workflows.settings_from import text_from

    if options.preset not in PRESETS:
        raise InputError(
            " or ".join(PRESETS), repr(options.preset), "Name one of these.", "--preset"
        )
    start = options.start
    name = options.preset if start is None else start.resolve().name
    out = options.out or Path(f"{name}.toml")
    text = preset_text(options.preset) if start is None else text_from(options.preset, start)
    write_run_file(out, text)
    source, begin, bounds = "--stdlib", "", ""
    if start is not None:
        source, begin = "--text PATH", f" --from {start}"
        bounds = (
            f"for a public cluster troth calibrate --config {out} --data data --start {start}, "
        )
        if (start / "tokenizer.json").is_file():
            source += f" --tokenizer {start / 'tokenizer.json'}"
    output.result(
        {"preset": options.preset, "config_file": str(out)},
        f"Wrote {out}. Next: troth data prepare {source} --config {out} --out data, {bounds}"
        f"and then troth run create --config {out} --data data --key FILE{begin}",
    )
