"""Commands of the toolchain.

    image     build one crate into an image (for experiments and tests)
    program   build the shipped program: images, IDL, layout, build information
    check     rebuild and compare with what is shipped
    compilers show the packaged compilers

Owns: arguments and exit codes. stdout is for results, stderr for progress.
Next: `artifacts.py` (program, check), `crate.py` and `image.py` (image).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from troth_toolchain import artifacts, cache, compilers, crate, image
from troth_toolchain.errors import ToolchainError

_REPOSITORY = Path(__file__).resolve().parents[3]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parse(arguments)
    try:
        return int(options.run(options) or 0)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the process with status 2 when it is wrong."""
    return _parser().parse_args(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="troth_toolchain", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    image_ = commands.add_parser("image", help="build one crate into an image")
    image_.add_argument("--crate", type=Path, default=_REPOSITORY / "programs/coordinator")
    image_.add_argument("--out", type=Path, required=True, help="file to write")
    image_.add_argument("--version", choices=("v0", "v3"), default="v0", help="sBPF version")
    image_.add_argument(
        "--opt-level",
        choices=sorted(image.OPT_LEVELS),
        default=image.DEFAULT_OPT_LEVEL,
        help="whole-program optimisation",
    )
    image_.set_defaults(run=_image)
    for name, run, text in (
        ("program", _program, "build the shipped program's files"),
        ("check", _check, "rebuild and compare with the shipped files"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--crate", type=Path, default=_REPOSITORY / "programs/coordinator")
        command.add_argument(
            "--artifacts",
            type=Path,
            default=_REPOSITORY / "coordinator/troth_coordinator/artifacts",
        )
        command.set_defaults(run=run)
    commands.add_parser("compilers", help="show the packaged compilers").set_defaults(run=_show)
    return parser


def _image(options: argparse.Namespace) -> None:
    found = compilers.find()
    described = crate.describe(options.crate)
    bitcode = crate.compile_bitcode(described, found, cache.default_directory(), is_locked=False)
    linked = image.link(bitcode, options.opt_level)
    data = image.write(linked, 0 if options.version == "v0" else 3)
    artifacts.write_atomically(options.out, data)
    for rule, number in sorted(linked.num_fired.items()):
        print(f"  {rule}: {number}", file=sys.stderr)
    print(f"{options.out} {len(data)} bytes sha256 {artifacts.sha256(data)}")


def _program(options: argparse.Namespace) -> None:
    for line in artifacts.build(options.crate, options.artifacts, cache.default_directory()):
        print(line)


def _check(options: argparse.Namespace) -> int:
    outcome = artifacts.check(options.crate, options.artifacts, cache.default_directory())
    print(outcome.message)
    return 0 if outcome.is_acceptable else 1


def _show(options: argparse.Namespace) -> None:
    del options
    found = compilers.find()
    for name, version in found.versions.items():
        print(f"{name}: {version}")
