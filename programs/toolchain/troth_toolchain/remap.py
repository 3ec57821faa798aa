"""Path remapping: no directory of this machine may reach the image.

Owns: the names under which sources appear in panic messages. Never: changes a file.
Next: `sysroot.py`, `crate.py` pass these flags to rustc.
"""

import os
from pathlib import Path

STD = "/rust"
REGISTRY = "/registry"
WORKSPACE = "/workspace"
CACHE = "/cache"


def flag(directory: Path, name: str) -> str:
    """Return the rustc flag that shows `directory` as `name`."""
    return f"--remap-path-prefix={directory}={name}"


def cargo_home() -> Path:
    """Where cargo keeps the registry's sources."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").absolute()


def crate_flags(workspace: Path, target_directory: Path) -> list[str]:
    """Return the flags for a crate; general prefixes first: rustc takes the last that matches.

    Call it after `cargo fetch`: the registry's directory names hold a hash of its address.
    """
    home = cargo_home()
    registries = sorted((home / "registry/src").glob("*"))
    return [
        flag(home, "/cargo"),
        *(flag(registry, REGISTRY) for registry in registries),
        flag(target_directory, CACHE),
        flag(workspace, WORKSPACE),
    ]


def encode(flags: list[str]) -> str:
    """Value of CARGO_ENCODED_RUSTFLAGS, which allows spaces in paths."""
    return "\x1f".join(flags)
