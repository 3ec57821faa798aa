"""Compiles a program crate to one bitcode module, with Debian's cargo.

Owns: cargo's command line, environment and working directory for programs.
Never: optimises or links (see `image.py`).
Next: `image.py`.
"""

import json
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from troth_toolchain import cache, remap, sysroot, target
from troth_toolchain.compilers import CARGO, LLVM_MAJOR, Compilers
from troth_toolchain.errors import ArtifactError
from troth_toolchain.process import run


@dataclass(frozen=True)
class Crate:
    """A program crate: its directory, its workspace's root and the name of its library."""

    directory: Path
    workspace: Path
    library: str

    @property
    def lock_file(self) -> Path:
        """Path of Cargo.lock of the workspace."""
        return self.workspace / "Cargo.lock"


def describe(directory: Path) -> Crate:
    """Ask cargo about the crate in `directory`; raises when it is not a cdylib."""
    manifest = directory.absolute() / "Cargo.toml"
    if not manifest.is_file():
        raise ArtifactError(f"expected a program crate, found no {manifest}")
    answer = run(
        [CARGO, "metadata", "--no-deps", "--format-version=1", "--manifest-path", manifest]
    )
    metadata = json.loads(answer)
    for package in metadata["packages"]:
        if Path(package["manifest_path"]) != manifest:
            continue
        for each in package["targets"]:
            if "cdylib" in each["crate_types"]:
                name = each["name"].replace("-", "_")
                return Crate(manifest.parent, Path(metadata["workspace_root"]), name)
    raise ArtifactError(f'expected [lib] crate-type with "cdylib" in {manifest}, found none')


def describe_without_cargo(directory: Path) -> Crate:
    """`describe` for machines without Debian's cargo: reads the manifests itself."""
    manifest = directory.absolute() / "Cargo.toml"
    if not manifest.is_file():
        raise ArtifactError(f"expected a program crate, found no {manifest}")
    content = tomllib.loads(manifest.read_text())
    library = content.get("lib", {}).get("name") or content["package"]["name"]
    workspace = next(
        (
            parent
            for parent in (manifest.parent, *manifest.parent.parents)
            if (parent / "Cargo.toml").is_file()
            and "workspace" in tomllib.loads((parent / "Cargo.toml").read_text())
        ),
        manifest.parent,
    )
    return Crate(manifest.parent, workspace, library.replace("-", "_"))


def compile_bitcode(
    crate: Crate, compilers: Compilers, cache_directory: Path, *, is_locked: bool
) -> bytes:
    """Compile `crate` and everything it uses into one bitcode module.

    With `is_locked` cargo refuses to change Cargo.lock.
    """
    root = sysroot.ensure(cache_directory, compilers)
    name = "target-" + cache.key(str(crate.workspace), root.name)
    working = cache_directory / name
    locked = ["--locked"] if is_locked else []
    with cache.lock(cache_directory, name):
        run([CARGO, "fetch", *locked], cwd=crate.directory, is_streamed=True)
        flags = [
            *("-Zunstable-options", "--sysroot", str(root)),
            *remap.crate_flags(crate.workspace, working),
        ]
        environment = {
            "RUSTC_BOOTSTRAP": "1",
            "RUST_TARGET_PATH": str(root),
            "CARGO_ENCODED_RUSTFLAGS": remap.encode(flags),
            "CARGO_TARGET_SBPF_SOLANA_LINKER": str(_linker(cache_directory)),
            "CARGO_TARGET_DIR": str(working),
        }
        build = (CARGO, "build", "--release", "--lib", "--target", target.TARGET)
        run([*build, *locked], cwd=crate.directory, env=environment, is_streamed=True)
        return (working / target.TARGET / f"release/lib{crate.library}.so").read_bytes()


def _linker(cache_directory: Path) -> Path:
    """Return a script that starts `collect.py` with this Python: rustc wants one file."""
    script = Path(__file__).parent / "collect.py"
    words = [sys.executable, "-I", str(script), str(LLVM_MAJOR)]
    content = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'

    def build(working: Path) -> None:
        path = working / "collect"
        path.write_text(content)
        path.chmod(0o755)

    return cache.ensure(cache_directory, "linker-" + cache.key(content), build) / "collect"
