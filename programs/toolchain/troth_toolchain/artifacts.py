"""The shipped files of the program: images, IDL, layout and build information.

Owns: their names, their size budget, `build-info.json`, and the comparison of a rebuild with
what is shipped. Never: decides how an image is made (see `image.py`).
Next: `interface.py` (IDL and layout).
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from troth_toolchain import compilers, crate, image, interface
from troth_toolchain.crate import Crate
from troth_toolchain.errors import ArtifactError, CompilerError

IMAGE = "coordinator_v0.so"
IMAGE_V3 = "coordinator_v3.so"
IDL = "coordinator.idl.json"
LAYOUT = "layout.json"
BUILD_INFO = "build-info.json"
MAX_IMAGE_BYTES = 700_000


@dataclass(frozen=True)
class Outcome:
    """Answer of `check`: what to print, and whether CI may go on."""

    is_acceptable: bool
    message: str


@dataclass(frozen=True)
class BuildInfo:
    """The content of `build-info.json`: compilers, hashes of the inputs, hash of each file."""

    compilers: dict[str, str]
    sources_sha256: str
    cargo_lock_sha256: str
    files: dict[str, str]


def build(directory: Path, destination: Path, cache_directory: Path) -> list[str]:
    """Build all shipped files into `destination`; returns one line per file."""
    found = compilers.find()
    described = crate.describe(directory)
    files = _make(described, found, cache_directory)
    files[BUILD_INFO] = _json(_build_info(described, found, files))
    destination.mkdir(parents=True, exist_ok=True)
    # The build information comes last: a killed build leaves files that fail the check.
    for name, data in files.items():
        write_atomically(destination / name, data)
    return [f"{destination / name} {len(data)} bytes" for name, data in files.items()]


def check(directory: Path, shipped: Path, cache_directory: Path) -> Outcome:
    """Compare the shipped files with their sources and, where possible, with a rebuild."""
    described = crate.describe_without_cargo(directory)
    stale = differences(described, shipped)
    if stale:
        return Outcome(
            False, _join("the shipped program is out of date; run `make program`", stale)
        )
    info = read_build_info(shipped)
    try:
        found = compilers.find()
    except CompilerError as error:
        return Outcome(True, f"not rebuilt, hashes of the shipped files hold: {error}")
    if found.versions != info.compilers:
        return Outcome(
            True,
            "not rebuilt, hashes of the shipped files hold: expected the compilers "
            f"{info.compilers}, found {found.versions}",
        )
    files = _make(described, found, cache_directory)
    differing = [
        f"{name}: shipped {(shipped / name).stat().st_size} bytes, rebuilt {len(data)} bytes"
        for name, data in files.items()
        if (shipped / name).read_bytes() != data
    ]
    if differing:
        return Outcome(False, _join("a rebuild differs; run `make program`", differing))
    return Outcome(True, f"rebuilt with the same compilers: {len(files)} files are identical")


def read_build_info(shipped: Path) -> BuildInfo:
    """Read `build-info.json`; raises `ArtifactError` when it is missing or damaged."""
    path = shipped / BUILD_INFO
    try:
        content = json.loads(path.read_text())
        return BuildInfo(
            dict(content["compilers"]),
            str(content["sources_sha256"]),
            str(content["cargo_lock_sha256"]),
            {name: str(facts["sha256"]) for name, facts in content["files"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"expected {path}, found {error!r}; run `make program`") from error


def sha256(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` in one step, so that a reader sees the old or the new file."""
    handle, name = tempfile.mkstemp(prefix=path.name, dir=path.absolute().parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def source_hash(described: Crate) -> str:
    """One hash over everything in the repository that decides the shipped files."""
    files = [*(described.directory / "src").rglob("*.rs")]
    files += (described.directory / "examples").rglob("*.rs")
    files += [described.directory / "Cargo.toml", described.workspace / "Cargo.toml"]
    digest = hashlib.sha256()
    for path in sorted(set(files)):
        name = path.relative_to(described.workspace).as_posix()
        digest.update(f"{name} {sha256(path.read_bytes())}\n".encode())
    return digest.hexdigest()


def _make(described: Crate, found: compilers.Compilers, cache_directory: Path) -> dict[str, bytes]:
    bitcode = crate.compile_bitcode(described, found, cache_directory, is_locked=True)
    linked = image.link(bitcode)
    data = image.write(linked, 0)
    if len(data) > MAX_IMAGE_BYTES:
        raise ArtifactError(
            f"expected an image of at most {MAX_IMAGE_BYTES} bytes, found {len(data)}; "
            "one #[inline(never)] creation helper instead of Anchor's `init` saves most"
        )
    return {
        IMAGE: data,
        IMAGE_V3: image.write(linked, 3),
        IDL: interface.idl(described, cache_directory),
        LAYOUT: interface.layout(described),
    }


def _build_info(
    described: Crate, found: compilers.Compilers, files: Mapping[str, bytes]
) -> dict[str, object]:
    return {
        "compilers": found.versions,
        "cargo_lock_sha256": sha256(described.lock_file.read_bytes()),
        "sources_sha256": source_hash(described),
        "files": {
            name: {"bytes": len(data), "sha256": sha256(data)} for name, data in files.items()
        },
    }


def differences(described: Crate, shipped: Path) -> list[str]:
    """Compare files and sources with the recorded hashes; needs no compilers."""
    info = read_build_info(shipped)
    found: list[str] = []
    for name, expected in info.files.items():
        path = shipped / name
        actual = sha256(path.read_bytes()) if path.is_file() else "no file"
        if actual != expected:
            found.append(f"{name}: expected sha256 {expected}, found {actual}")
    sources = source_hash(described)
    if sources != info.sources_sha256:
        found.append(f"sources: built from {info.sources_sha256}, found {sources}")
    lock = sha256(described.lock_file.read_bytes())
    if lock != info.cargo_lock_sha256:
        found.append(f"Cargo.lock: built from {info.cargo_lock_sha256}, found {lock}")
    return found


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _join(title: str, lines: list[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])
