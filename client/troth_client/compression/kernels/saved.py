"""Machine code that numba saves for later processes, under a seal: whole, and of these sources.

Owns: the seal of each entry, and the removal of files without a right one.
Never: compiles or loads. numba believes its files: a flipped bit in one ends the process by a
signal. After a kill between two of them, old machine code counts as that of new source.
Next: `choice.py`, which clears before the first call and seals what has answered right.
"""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import llvmlite
import numba

from troth_client.runtime.files import DiskFullError, atomic_write

Entry = Callable[..., object]

SOURCES: Final = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).digest()
"""Of all kernels: numba compares the file of an entry only, and not the parts that it calls."""

_PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
"""How numba names an interpreter; several may use one folder."""


def is_sealed(entry: Entry) -> bool:
    """Whether an earlier process has left this entry whole, so that it loads and need not compile.

    Raises OSError where the files cannot be read.
    """
    folder, files = _files(entry)
    try:
        return bool(files) and _seal(entry, folder).read_bytes() == _digest(files)
    except FileNotFoundError:  # no seal yet, or another process removes what has none
        return False


def clear(entries: Iterable[Entry]) -> None:
    """Remove the files of each entry that has no right seal; numba then compiles it anew.

    Raises OSError where they cannot be read or removed: then they must not be loaded.
    """
    for entry in entries:
        if not is_sealed(entry):
            for path in _files(entry)[1]:
                path.unlink(missing_ok=True)


def seal(entries: Iterable[Entry]) -> None:
    """Seal what is saved of each entry now. Where that fails a later process compiles again."""
    for entry in entries:
        folder, files = _files(entry)
        with contextlib.suppress(OSError, DiskFullError):
            if files and not is_sealed(entry):
                atomic_write(_seal(entry, folder), [_digest(files)], durable=False)


def _files(entry: Entry) -> tuple[Path, list[Path]]:
    """Return the folder, and the index and data files of an entry; none where numba saves none."""
    stats = getattr(entry, "stats", None)  # of numba's dispatcher; none where it is switched off
    if stats is None:
        return Path(), []
    folder = Path(stats.cache_path)
    return folder, sorted(folder.glob(f"*.{entry.__name__}-*.{_PYTHON}.*nb[ic]"))


def _seal(entry: Entry, folder: Path) -> Path:
    return folder / f"{entry.__name__}.{_PYTHON}.seal"


def _digest(files: Iterable[Path]) -> bytes:
    """Return the digest of sources, compilers and files: names, lengths and bytes."""
    found = hashlib.sha256(SOURCES)
    found.update(f"numba {numba.__version__} llvmlite {llvmlite.__version__}\n".encode())
    for path in files:
        data = path.read_bytes()
        found.update(f"{path.name} {len(data)}\n".encode())
        found.update(data)
    return found.digest()
