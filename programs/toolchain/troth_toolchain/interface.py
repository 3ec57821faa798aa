"""The program's interface as data: the Anchor IDL and the account layout.

Owns: running the two exporters on the host with Debian's cargo. Never: touches the image.
Next: `idl/src/main.rs` (the IDL exporter); the layout exporter is the program crate's example
`export_layout`.
"""

import json
from pathlib import Path

from troth_toolchain import cache
from troth_toolchain.compilers import CARGO
from troth_toolchain.crate import Crate
from troth_toolchain.errors import ArtifactError
from troth_toolchain.process import run

_EXPORTER = Path(__file__).resolve().parents[1] / "idl"
_LAYOUT_EXAMPLE = "export_layout"
# Only the printed text counts: no debug information, nothing kept for incremental builds.
_PROFILE = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_INCREMENTAL": "0"}
_PACKAGED = Path("target", "packaged")
"""Where `make rust` builds with the same compiler: the layout and the tests use the same crates."""


def idl(described: Crate, cache_directory: Path) -> bytes:
    """Return the Anchor IDL (spec 0.1.0) of the crate, as JSON text."""
    exporter = ("--manifest-path", _EXPORTER / "Cargo.toml", "--", described.directory)
    working = cache_directory / ("host-" + cache.key(str(described.workspace)))
    with cache.lock(cache_directory, working.name):
        printed = _cargo_run(described.workspace, working, exporter)
    return _checked("the IDL", printed, ("address", "instructions"))


def layout(described: Crate) -> bytes:
    """Return what the crate's example `export_layout` prints: seeds, sizes, offsets, codes."""
    place = described.directory / "examples" / _LAYOUT_EXAMPLE
    if not place.with_suffix(".rs").is_file() and not (place / "main.rs").is_file():
        raise ArtifactError(
            f"expected the example {_LAYOUT_EXAMPLE} in {described.directory}, found none"
        )
    example = ("--example", _LAYOUT_EXAMPLE)
    printed = _cargo_run(described.directory, described.workspace / _PACKAGED, example)
    return _checked("the layout", printed, ("program_id",))


def _cargo_run(directory: Path, working: Path, arguments: tuple[str | Path, ...]) -> str:
    return run(
        [CARGO, "run", "--locked", *arguments],
        cwd=directory,
        env={"CARGO_TARGET_DIR": str(working), "CARGO": str(CARGO), **_PROFILE},
        is_streamed=True,
    )


def _checked(what: str, printed: str, expected: tuple[str, ...]) -> bytes:
    try:
        value = json.loads(printed)
    except ValueError as error:
        raise ArtifactError(f"expected {what} as JSON, found {printed[:200]!r}") from error
    missing = [name for name in expected if name not in value]
    if missing:
        raise ArtifactError(f"expected {missing} in {what}, found {sorted(value)}")
    return (json.dumps(value, indent=1) + "\n").encode()
