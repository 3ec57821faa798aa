"""Builds the standard library for Solana once per set of compilers.

Owns: the sysroot in the cache: `sbpf-solana.json`, and `lib/rustlib/sbpf-solana/lib/*.rlib`.
Never: uses the network; Debian's source package carries std's dependencies.
Next: `crate.py` compiles programs against it.
"""

import shlex
import shutil
from pathlib import Path

from troth_toolchain import cache, remap, std_patches, target
from troth_toolchain.compilers import CARGO, RUSTC, Compilers
from troth_toolchain.errors import CommandError
from troth_toolchain.process import run

_MANIFEST = """\
[package]
name = "seed"
version = "0.1.0"
edition = "2021"

[workspace]

[profile.release]
panic = "abort"
opt-level = "z"
overflow-checks = true
codegen-units = 1
"""
_VENDORED = """\
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "{directory}"
"""
# The sysroot follows from these files, so their text is part of its key.
_SOURCES = ("sysroot.py", "target.py", "std_patches.py", "remap.py", "std_files/alloc_solana.rs")


def ensure(cache_directory: Path, compilers: Compilers) -> Path:
    """Return the sysroot for `compilers`, built on first use (about half a minute)."""
    here = Path(__file__).parent
    sources = [(here / name).read_bytes() for name in _SOURCES]
    name = "sysroot-" + cache.key(compilers.rustc, compilers.cargo, compilers.rustc_llvm, *sources)
    return cache.ensure(cache_directory, name, lambda working: _build(working, compilers))


def _build(working: Path, compilers: Compilers) -> None:
    # Cargo hashes the place of the std sources into every symbol, relative to rustc's sysroot.
    # So the patched copy is given to it inside a sysroot; anywhere else the image would depend
    # on the directory of this cache.
    scratch = working / "build"
    rustlib = scratch / "sysroot/lib/rustlib"
    library = rustlib / "src/rust/library"
    shutil.copytree(compilers.std_library, library, symlinks=True)
    std_patches.apply(library)
    for installed in (compilers.sysroot / "lib/rustlib").iterdir():
        if installed.name != "src":
            (rustlib / installed.name).symlink_to(installed)
    target.write_specification(working)
    seed = scratch / "seed"
    (seed / "src").mkdir(parents=True)
    (seed / "src/lib.rs").touch()
    (seed / "Cargo.toml").write_text(_MANIFEST)
    (seed / ".cargo").mkdir()
    (seed / ".cargo/config.toml").write_text(_VENDORED.format(directory=library / "vendor"))
    _compile(working, seed, scratch / "sysroot")
    _keep_libraries(working, seed / "target" / target.TARGET / "release/deps")
    shutil.rmtree(scratch)


def _compile(working: Path, seed: Path, sysroot: Path) -> None:
    rustc = seed / "rustc"
    rustc.write_text(f'#!/bin/sh\nexec {RUSTC} --sysroot {shlex.quote(str(sysroot))} "$@"\n')
    rustc.chmod(0o755)
    flags = [
        "-Zunstable-options",
        remap.flag(working, remap.CACHE),
        remap.flag(sysroot / "lib/rustlib/src/rust/library", remap.STD),
    ]
    environment = {
        "RUSTC": str(rustc),
        "RUSTC_BOOTSTRAP": "1",
        # Lifts `restricted_std`: crates need no feature attribute to use this std.
        "RUSTC_BOOTSTRAP_SYNTHETIC_TARGET": "1",
        "RUST_TARGET_PATH": str(working),
        "CARGO_ENCODED_RUSTFLAGS": remap.encode(flags),
        "CARGO_TARGET_DIR": str(seed / "target"),
        "CARGO_NET_OFFLINE": "true",
    }
    run(
        [
            *(CARGO, "build", "--release", "--target", target.TARGET),
            "-Zbuild-std=std,panic_abort",
            "-Zbuild-std-features=compiler-builtins-mem,optimize_for_size",
        ],
        cwd=seed,
        env=environment,
        is_streamed=True,
    )


def _keep_libraries(working: Path, built: Path) -> None:
    kept = working / "lib/rustlib" / target.TARGET / "lib"
    kept.mkdir(parents=True)
    libraries = [path for path in built.glob("lib*.rlib") if not path.name.startswith("libseed-")]
    for path in libraries:
        shutil.copy(path, kept)
    if not any(path.name.startswith("libstd-") for path in libraries):
        raise CommandError(f"expected libstd in {built}, found {len(libraries)} other libraries")
