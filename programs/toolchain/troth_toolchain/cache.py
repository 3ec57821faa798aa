"""The cache directory: built standard libraries and cargo's working directories.

Owns: names, locks and the atomic appearance of finished directories. A build that is killed
leaves only `building-*` directories, which the next build removes.
Never: stores anything that decides the image except what its key names.
Next: `sysroot.py`, `crate.py`.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_BUILDING = "building-"


def default_directory() -> Path:
    """TROTH_TOOLCHAIN_CACHE, or troth-toolchain in the user's cache directory."""
    if chosen := os.environ.get("TROTH_TOOLCHAIN_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "troth-toolchain"


def key(*parts: str | bytes) -> str:
    """Name a set of inputs; a change of any of them changes the name."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]


@contextmanager
def lock(directory: Path, name: str) -> Iterator[None]:
    """Hold an exclusive lock among processes; the system frees it when a process dies."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def ensure(directory: Path, name: str, build: Callable[[Path], None]) -> Path:
    """Return the directory `<directory>/<name>`, filled by `build` once and then only read.

    `build` gets an empty directory that takes its final name only when `build` returns.
    """
    final = directory / name
    if final.is_dir():
        return final
    with lock(directory, name):
        if final.is_dir():
            return final
        for leftover in directory.glob(f"{_BUILDING}{name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        working = Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{name}-", dir=directory))
        try:
            build(working)
            working.rename(final)
        except BaseException:
            shutil.rmtree(working, ignore_errors=True)
            raise
    return final
