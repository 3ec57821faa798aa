"""`troth data prepare`: text to a token data set whose manifest hash a run is bound to.

Owns: choosing source and tokenizer. Never: tokenises. Next: `troth_client.data.prepare`.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.options import Common, command
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from troth_client.data.manifest import Manifest
    from troth_client.data.prepare import PrepareOptions, PrepareProgress
    from troth_client.data.sources import Source
    from troth_client.data.tokens import Tokenizer

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
            "--hf", metavar="NAME", help="Take a Hugging Face data set (pip install 'troth[data]')."
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
        str, typer.Option("--end-token", metavar="TOKEN", help="Token that ends a document.")
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


@command(GROUP, "prepare", DataOptions)
def prepare(options: DataOptions, output: Output) -> None:
    """Turn text into a token data set and print the manifest hash that names it.

    One source: --stdlib, --text PATH..., or --hf NAME. A killed preparation goes on where it
    stopped when it is started again; a finished one is left as it is.
    """
    source = _source(options)
    started = time.monotonic()
    manifest = _prepare(options, source, _tokenizer(options), output)
    seconds = round(time.monotonic() - started, 3)
    facts = {
        "folder": str(options.out),
        "manifest_hash": manifest.hash.hex(),
        "vocab_size": manifest.vocab_size,
        "sequence_tokens": manifest.sequence_tokens,
        "num_sequences": manifest.num_sequences,
        "num_validation_sequences": manifest.num_validation_sequences,
        "num_shards": len(manifest.train) + len(manifest.validation),
        "seconds": seconds,
    }
    output.result(facts, Facts([(k.replace("_", " "), v) for k, v in facts.items()]))


def _source(options: DataOptions) -> "Source":
    from troth_client.data.sources import HuggingFaceSource, stdlib_source, text_source

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


def _tokenizer(options: DataOptions) -> "Tokenizer":
    from troth_client.data.tokens import ByteTokenizer, FileTokenizer

    if options.tokenizer is None:
        return ByteTokenizer()
    return FileTokenizer(options.tokenizer, options.end_token or None)


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
