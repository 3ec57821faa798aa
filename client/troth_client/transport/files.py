"""A store on disk: blobs as files of a folder, which the next process finds.

Owns: `FolderBlobs`, one file per blob.
Never: shows a file of a round before its release: the gate is the name of the folder it lies in.
Next: `http.py`, which keeps its blobs here; `bounded.py`, which bounds them for a hub.

    <folder>/held/<round>/<kind>-<hex>     for us alone
    <folder>/served/<round>/<kind>-<hex>   what `serve_through` has moved, for all
"""

import contextlib
import re
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from troth_client.runtime.files import DiskFullError, atomic_write, explain_full_disk
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.blob_cache import MemoryBlobs

BLOBS_FOLDER = "blobs"
"""The folder of a participant's blobs, in its state folder."""
_HELD, _SERVED = "held", "served"
FILE_NAME = re.compile(rf"({'|'.join(BlobKind)})-[0-9a-f]+")
"""The name of a blob's file; `round_folders` are where such files lie."""


class FolderBlobs:
    """Blobs as files; a second process, or a restart, finds the files of the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (_HELD, _SERVED):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._last_served = max(_rounds(folder / _SERVED), default=-1)
        # Most blobs that anybody asks about are not here: no folder of a round is searched for one.
        self._rounds_of: dict[str, set[int]] = {}
        for path in chain.from_iterable(map(Path.iterdir, round_folders(folder))):
            self._rounds_of.setdefault(path.name, set()).add(int(path.parent.name))
        # A full disk must not keep us from serving, nor end us.
        self._unwritten = MemoryBlobs()
        self._unwritten.serve_through(self._last_served)

    def put(self, blob: BlobId, data: bytes) -> None:
        """Keep bytes; not readable by others unless their round is served already."""
        name = _SERVED if blob.round <= self._last_served else _HELD
        folder = self.folder / name / str(blob.round)
        try:
            with explain_full_disk(self.folder):
                folder.mkdir(parents=True, exist_ok=True)
            atomic_write(folder / _file_name(blob.address), [data], durable=False)
        except DiskFullError:
            self._unwritten.put(blob, data)
        else:
            self._rounds_of.setdefault(_file_name(blob.address), set()).add(blob.round)

    def get(self, address: str) -> bytes | None:
        """Return bytes, whether served or not."""
        found = self.served(address) or self._find(_HELD, address)
        return found or self._unwritten.get(address)

    def served(self, address: str) -> bytes | None:
        """Return bytes that others may read."""
        return self._find(_SERVED, address) or self._unwritten.served(address)

    def _find(self, name: str, address: str) -> bytes | None:
        """Return a blob from the folder of that name, of its newest round."""
        file_name = _file_name(address)
        # Readers run in threads. Only a copy is made in one step.
        for round_ in sorted(self._rounds_of.get(file_name, set()).copy(), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                return (self.folder / name / str(round_) / file_name).read_bytes()
        return None

    def serve_through(self, round_: int) -> None:
        """Let others read all rounds up to this one."""
        self._last_served = max(self._last_served, round_)
        self._unwritten.serve_through(round_)
        with contextlib.suppress(DiskFullError), explain_full_disk(self.folder):
            self._show()

    def _show(self) -> None:
        """Move what may be read by now; on a full disk the next call goes on with it."""
        (self.folder / _SERVED / str(self._last_served)).mkdir(exist_ok=True)
        for held in _rounds(self.folder / _HELD):
            if held > self._last_served:
                continue
            target = self.folder / _SERVED / str(held)
            target.mkdir(exist_ok=True)
            for file in (self.folder / _HELD / str(held)).iterdir():
                file.replace(target / file.name)
            (self.folder / _HELD / str(held)).rmdir()

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds."""
        self._unwritten.drop_before(round_)
        for file_name, rounds in self._rounds_of.copy().items():
            rounds.difference_update([old for old in rounds if old < round_])
            if not rounds:
                del self._rounds_of[file_name]
        for name in (_HELD, _SERVED):
            for old in _rounds(self.folder / name):
                if old < round_:
                    shutil.rmtree(self.folder / name / str(old), ignore_errors=True)


def _file_name(address: str) -> str:
    return address.replace("/", "-")


def round_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders of the rounds that are held or served in a folder of blobs."""
    for name in (_HELD, _SERVED):
        places = (folder / name / str(round_) for round_ in _rounds(folder / name))
        yield from filter(Path.is_dir, places)


def _rounds(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal())
