"""Runs external commands in a closed environment.

Owns: the environment that compilers see. Never: decides what to run.
Next: `compilers.py` says which commands exist.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from troth_toolchain.errors import CommandError

BUILD_PATH = "/usr/bin:/bin"
# Variables with which a user's shell could change the produced bytes, or bring in rustup.
_DROPPED_PREFIXES = ("RUST", "CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "TROTH_")
_DROPPED = frozenset({"CARGO_ENCODED_RUSTFLAGS", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"})
_STDERR_SHOWN_CHARS = 8000


def build_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the caller's environment without anything that steers Rust, plus `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED_PREFIXES) and name not in _DROPPED
    }
    fixed = {
        "PATH": BUILD_PATH,
        "RUSTC": "/usr/bin/rustc",
        # An empty wrapper switches off one that the user's cargo configuration names.
        "RUSTC_WRAPPER": "",
        "RUSTC_WORKSPACE_WRAPPER": "",
        "LC_ALL": "C.UTF-8",
    }
    return kept | fixed | dict(extra or {})


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    is_streamed: bool = False,
) -> str:
    """Run `argv` and return its standard output.

    With `is_streamed` the command's progress (stderr) goes to ours as it comes.
    Raises `CommandError` with the end of stderr when the command fails or is missing.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            cwd=cwd,
            env=build_environment(env),
            stdout=subprocess.PIPE,
            stderr=None if is_streamed else subprocess.PIPE,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError(f"expected the command {words[0]}, found none: {error}") from error
    if done.returncode:
        detail = "see its messages above" if is_streamed else done.stderr[-_STDERR_SHOWN_CHARS:]
        shown = " ".join(words[:3])
        raise CommandError(f"`{shown} ...` ended with status {done.returncode}: {detail}")
    return done.stdout
