"""Transport through folders: for tests with real processes and no sockets, and as a store on disk.

Owns: `FolderBlobs`, one file per blob, and a wire that reads other participants' folders.
Never: shows a file of a round before its release: the gate is the name of the folder it lies in.
Next: `exchange.py`; `http.py` can keep its blobs in `FolderBlobs` too.

    <folder>/held/<round>/<kind>-<hex>     not readable by the others' wire
    <folder>/served/<round>/<kind>-<hex>   what `release` has moved
    <folder>/inbox/<kind>-<hex>            pushed by others, checked when it is asked for
    <folder>/openings/                     the sets of `state/openings_store.py`, if there are any

Weights and the files of a run do not travel through folders: pieces lie inside larger files of
their holder and have no file of their own. A holder lacks them here; to show them, use HTTP.
"""

import contextlib
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from troth_client.runtime.files import DiskFullError, atomic_write, explain_full_disk
from troth_client.transport.base import OF_RUN, OF_STATES, BlobId, BlobKind
from troth_client.transport.blob_cache import BlobCache, MemoryBlobs
from troth_client.transport.errors import (
    HolderLacksError,
    HolderRefusedError,
    HolderUnreachableError,
)
from troth_client.transport.exchange import Exchange, Patience
from troth_client.transport.wire import Partial

_HELD, _SERVED, _INBOX, _OPENINGS = "held", "served", "inbox", "openings"
_NOT_HERE = OF_STATES | OF_RUN


class FolderBlobs:
    """Blobs as files; a second process, or a restart, finds the files of the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (_HELD, _SERVED, _INBOX):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._last_served = max(_rounds(folder / _SERVED), default=-1)
        # Most blobs that anybody asks about are not here: no folder of a round is searched for one.
        self._rounds_of: dict[str, set[int]] = {}
        for path in chain((folder / _HELD).glob("*/*"), (folder / _SERVED).glob("*/*")):
            if path.parent.name.isdecimal():
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


class FolderWire:
    """Reads and writes the folders of other participants; the endpoint is the folder's path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def start(self, cache: BlobCache) -> str:
        """Nothing to start: the folder is there."""
        del cache  # others read its FolderBlobs from the disk
        return str(self._folder)

    async def stop(self) -> None:
        """Nothing to stop: the files stay."""

    async def read(self, holder: str, blob: BlobId, into: Partial) -> None:
        """Append the missing bytes from our own inbox or from what the holder serves."""
        if not (Path(holder) / _SERVED).is_dir():
            raise HolderUnreachableError(f"a folder at {holder}", "none", "Asking another holder.")
        if blob.kind in _NOT_HERE:
            raise _lacks(holder, blob)
        inbox = self._folder / _INBOX / _file_name(blob.address)
        pushed = _read(inbox, into.num_bytes)
        inbox.unlink(missing_ok=True)
        if len(pushed) == into.num_bytes and blob.matches(pushed):
            into.restart()
            into.append(holder, pushed)
            return
        for file in _readable(Path(holder), blob):
            if file.exists():
                into.append(holder, _read(file, into.num_bytes)[len(into.data) :])
                return
        raise _lacks(holder, blob)

    async def write(self, holder: str, blob: BlobId, data: bytes) -> None:
        """Lay bytes into the holder's inbox; it checks them when it wants them."""
        if blob.kind in _NOT_HERE:
            raise HolderRefusedError("a blob that is pushed", f"{blob.kind}", "It is fetched.")
        inbox = Path(holder) / _INBOX
        if not inbox.is_dir():
            raise HolderUnreachableError(f"a folder at {holder}", "none", "Serving them instead.")
        atomic_write(inbox / _file_name(blob.address), [data], durable=False)


def folder_transport(folder: Path) -> Exchange:
    """Make a transport whose endpoint is a folder; all participants must see each other's."""
    return Exchange(BlobCache(FolderBlobs(folder)), FolderWire(folder), Patience())


def _lacks(holder: str, blob: BlobId) -> HolderLacksError:
    return HolderLacksError(f"{blob.address} at {holder}", "nothing", "Asking another holder.")


def _file_name(address: str) -> str:
    return address.replace("/", "-")


def _read(file: Path, num_bytes: int) -> bytes:
    """Return at most one byte more than wanted, so that a file that is too long shows."""
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        return stream.read(num_bytes + 1)
    return b""


def _rounds(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal())


def _readable(holder: Path, blob: BlobId) -> Iterator[Path]:
    """Where a holder may let us read a blob."""
    if blob.kind is BlobKind.OPENINGS:
        # The holder has not checked its inbox; the reader checks the root.
        return chain(
            (holder / _OPENINGS).glob(f"*-{blob.key.hex()}"),
            iter([holder / _INBOX / _file_name(blob.address)]),
        )
    return _places(holder / _SERVED, blob.address)


def _places(folder: Path, address: str) -> Iterator[Path]:
    """Where a blob may lie, newest round first."""
    for round_ in reversed(_rounds(folder)):
        yield folder / str(round_) / _file_name(address)
