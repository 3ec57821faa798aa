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


def idl(described: Crate, cache_directory: Path) -> bytes:
    """Return the Anchor IDL (spec 0.1.0) of the crate, as JSON text."""
    working = cache_directory / ("idl-" + cache.key(str(described.workspace)))
    with cache.lock(cache_directory, working.name):
        printed = run(
            [
                *(CARGO, "run", "--quiet", "--locked", "--manifest-path"),
                *(_EXPORTER / "Cargo.toml", "--", described.directory),
            ],
            cwd=described.workspace,
            env={"CARGO_TARGET_DIR": str(working), "CARGO": str(CARGO)},
            is_streamed=True,
        )
    return _checked("the IDL", printed, ("address", "instructions"))


def layout(described: Crate, cache_directory: Path) -> bytes:
    """Return what the crate's example `export_layout` prints: seeds, sizes, offsets, codes."""
    if not (described.directory / f"examples/{_LAYOUT_EXAMPLE}.rs").is_file():
        raise ArtifactError(
            f"expected the example {_LAYOUT_EXAMPLE} in {described.directory}, found none"
        )
    working = cache_directory / ("host-" + cache.key(str(described.workspace)))
    with cache.lock(cache_directory, working.name):
        printed = run(
            [CARGO, "run", "--quiet", "--locked", "--example", _LAYOUT_EXAMPLE],
            cwd=described.directory,
            env={"CARGO_TARGET_DIR": str(working)},
            is_streamed=True,
        )
    return _checked("the layout", printed, ("program_id",))


def _checked(what: str, printed: str, expected: tuple[str, ...]) -> bytes:
    try:
        value = json.loads(printed)
    except ValueError as error:
        raise ArtifactError(f"expected {what} as JSON, found {printed[:200]!r}") from error
    missing = [name for name in expected if name not in value]
    if missing:
        raise ArtifactError(f"expected {missing} in {what}, found {sorted(value)}")
    return (json.dumps(value, indent=1) + "\n").encode()
