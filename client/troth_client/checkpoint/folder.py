"""A checkpoint in a folder: safetensors shards and `manifest.json`, whole or not there at all.

Owns: the files, drafts that a fetch or a writer fills piece by piece, and reading back.
Never: decides what a draft should hold; the piece list does.
Next: `troth_attestation/shards.py` for what lies where; `fetch.py` and `making.py` fill drafts.

    <name>/manifest.json, model-00001-of-0000N.safetensors ...
    <name>.part/                 a draft: sparse files of full length; a restart goes on with it
"""

import fcntl
import os
import re
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from troth_attestation.errors import CheckpointManifestError
from troth_attestation.manifest import MAX_MANIFEST_BYTES, CheckpointManifest
from troth_attestation.pieces import Piece, PieceList, piece_hash
from troth_attestation.shards import Shard, shards_of
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.model.shapes import trainable_shapes
from troth_client.runtime.files import (
    TEMPORARY_SUFFIX,
    Closable,
    DiskFullError,
    FolderInUseError,
    atomic_write,
    explain_full_disk,
    flush,
    write_at,
)

MANIFEST_FILE = "manifest.json"
DRAFT_SUFFIX = ".part"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_OURS = re.compile(rf"{_SHARD.pattern}|{re.escape(MANIFEST_FILE)}({re.escape(TEMPORARY_SUFFIX)})?")
Weights = dict[str, NDArray[np.float32]]


class CheckpointFolder:
    """A whole checkpoint on disk. `open` checks manifest, lengths and headers, not the weights."""

    def __init__(self, path: Path, manifest: CheckpointManifest, pieces: PieceList) -> None:
        self.path = path
        self.manifest = manifest
        self.pieces = pieces
        self._places = _places(pieces)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the manifest. Raises CheckpointFileError for a file that is missing or not one."""
        file = path / MANIFEST_FILE
        if file.is_symlink():
            raise _damaged(file, "the manifest of a checkpoint", "a link to another place")
        try:
            if file.exists() and not file.is_file():  # opening a pipe would wait for ever
                raise _damaged(file, "the manifest of a checkpoint", "no ordinary file")
            with file.open("rb") as stream:
                manifest = CheckpointManifest.read(stream.read(MAX_MANIFEST_BYTES + 1))
            pieces = manifest.pieces(trainable_shapes)
        except OSError as error:
            raise _damaged(file, "the manifest of a checkpoint", error.strerror) from error
        except CheckpointManifestError as error:
            raise _damaged(file, error.expected, error.found) from error
        for shard in shards_of(pieces.shapes):
            file = path / shard.file
            _check_shard(file, shard)
        return cls(path, manifest, pieces)

    def read(self, piece: Piece) -> bytes | None:
        """Return the bytes of a piece, not checked; None if they are not there."""
        shard, offset = self._places[piece.tensor]
        try:
            with (self.path / shard.file).open("rb") as stream:
                stream.seek(offset + piece.offset)
                return stream.read(piece.num_bytes)
        except OSError:
            return None

    def weights(self) -> Weights:
        """Return all tensors, float32 by canonical name, not checked.

        Raises CheckpointFileError for a shard that is gone or cut short.
        """
        found: Weights = {}
        for tensor in self.pieces.tensors:
            shard, offset = self._places[tensor.name]
            file = self.path / shard.file
            try:
                values = np.fromfile(file, "<f4", tensor.num_bytes // 4, offset=offset)
            except OSError as error:
                raise _damaged(file, f"{shard.num_bytes} bytes", error.strerror) from error
            if values.nbytes != tensor.num_bytes:
                raise _damaged(file, f"{shard.num_bytes} bytes", f"{tensor.name} cut short")
            found[tensor.name] = values.astype(np.float32, copy=False).reshape(tensor.shape)
        return found


class Draft(Closable):
    """A checkpoint that is being filled, piece by piece, in any order and from several threads."""

    def __init__(self, path: Path, pieces: PieceList) -> None:
        """Open or make the draft of `path`; what a killed process wrote stays.

        Raises CheckpointFileError if something else than a checkpoint lies at `path`,
        FolderInUseError while another draft of it is open, DiskFullError.
        """
        self.pieces = pieces
        self._path = path
        self._folder = path.with_name(path.name + DRAFT_SUFFIX)
        self._places = _places(pieces)
        self._files: dict[str, int] = {}
        self._use = threading.Lock()
        _check_place(path)
        if not self._folder.is_dir() or self._folder.is_symlink():  # a file is no draft either
            remove(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        shards = shards_of(pieces.shapes)
        try:
            for shard in shards:
                self._files[shard.file] = _locked(self._folder / shard.file)
            # A file of another model, or half a manifest, must not end up in the checkpoint.
            for left in [one for one in self._folder.iterdir() if one.name not in self._files]:
                remove(left)
            for shard in shards:
                with explain_full_disk(self._folder / shard.file):
                    os.ftruncate(self._files[shard.file], shard.num_bytes)
                    write_at(self._files[shard.file], shard.header, 0)
        except BaseException:
            self.close()
            raise

    def missing(self) -> list[Piece]:
        """Return the pieces that are not here yet, in order; reads and hashes everything."""
        return [piece for piece in self.pieces.pieces() if not self.has(piece)]

    def has(self, piece: Piece) -> bool:
        """Tell whether the bytes of a piece are here already; reads and hashes them."""
        shard, offset = self._places[piece.tensor]
        with self._use:
            data = os.pread(self._file(shard), piece.num_bytes, offset + piece.offset)
        return len(data) == piece.num_bytes and piece_hash(data) == piece.hash

    def put(self, piece: Piece, data: bytes | memoryview) -> None:
        """Write the bytes of a piece, which the caller has checked. Raises DiskFullError."""
        shard, offset = self._places[piece.tensor]
        with self._use, explain_full_disk(self._folder / shard.file):
            write_at(self._file(shard), data, offset + piece.offset)

    def finish(self, manifest: CheckpointManifest) -> CheckpointFolder:
        """Make the filled draft the checkpoint: flushed, then renamed.

        Raises DiskFullError, CheckpointFileError if somebody has removed the draft.
        """
        for file, handle in self._files.items():
            with explain_full_disk(self._folder / file):
                os.fsync(handle)
        try:
            atomic_write(self._folder / MANIFEST_FILE, [manifest.encode()])
            # An older folder in its place was not whole, or it would have been used.
            remove(self._path)
            self._folder.replace(self._path)
        except FileNotFoundError as error:
            raise _damaged(self._folder, "the pieces of a checkpoint", error.strerror) from error
        self.close()  # only now: the lock holds until nobody finds a draft to open any more
        flush(self._path.parent)
        return CheckpointFolder(self._path, manifest, self.pieces)

    def drop(self) -> None:
        """Remove the draft."""
        self.close()
        remove(self._folder)

    def close(self) -> None:
        """Close the files; the draft stays. A thread that still writes is waited for."""
        with self._use:
            for handle in self._files.values():
                os.close(handle)
            self._files = {}

    def _file(self, shard: Shard) -> int:
        """Return the open file of a shard.

        A cancelled fetch leaves threads behind. They must not write into another file that has
        got the number of a closed one.
        """
        if shard.file not in self._files:
            raise ValueError(f"the draft {self._folder} is closed")
        return self._files[shard.file]


def write_weights(
    path: Path, manifest: CheckpointManifest, pieces: PieceList, weights: Mapping[str, memoryview]
) -> CheckpointFolder:
    """Write weights that have these pieces as a checkpoint; `weights` are bytes by tensor name.

    Raises DiskFullError; nothing is left behind then. Other errors are those of `Draft`.
    """
    try:
        draft = Draft(path, pieces)
    except DiskFullError:
        remove(path.with_name(path.name + DRAFT_SUFFIX))
        raise
    with draft:
        try:
            for piece in pieces.pieces():
                data = weights[piece.tensor][piece.offset : piece.offset + piece.num_bytes]
                draft.put(piece, data)
            return draft.finish(manifest)
        except BaseException:
            draft.drop()
            raise


def remove(path: Path) -> None:
    """Remove a folder or a file, and of a link only the link itself. It reports no failure."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def remove_ours(path: Path) -> None:
    """Remove a checkpoint or a draft, whole or damaged; what holds other files is left as it is."""
    if not _others(path):
        remove(path)


def _check_place(path: Path) -> None:
    """Raise CheckpointFileError if files that are not of a checkpoint would have to make room."""
    other = _others(path)
    if other:
        raise CheckpointFileError(
            f"{path} to be free, or a checkpoint",
            f"there is {', '.join(other[:3])}",
            "Choose another folder: a checkpoint replaces everything in its own.",
        )


def _others(path: Path) -> list[str]:
    """Return the names in a folder that no checkpoint has. Of a link only the link would go."""
    if path.is_symlink():
        return []
    if path.is_dir():
        return sorted(one.name for one in path.iterdir() if not _OURS.fullmatch(one.name))
    return [path.name] if path.is_file() and path.stat().st_size else []


def _locked(file: Path) -> int:
    """Open a shard of a draft for this draft alone. Raises FolderInUseError."""
    if file.is_symlink() or (file.exists() and not file.is_file()):
        remove(file)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = file.exists() and os.path.samestat(os.fstat(handle), file.stat())
    except BlockingIOError:
        is_free = False
    if not is_free:
        os.close(handle)
        raise FolderInUseError(
            f"{file.parent} to be free",
            "another process or thread that fills it",
            "Wait until it has ended, then try again.",
        )
    return handle


def _places(pieces: PieceList) -> dict[str, tuple[Shard, int]]:
    """Return the shard of each tensor, and where it begins in it."""
    return {
        name: (shard, offset)
        for shard in shards_of(pieces.shapes)
        for name, offset in shard.offsets.items()
    }


def _check_shard(file: Path, shard: Shard) -> None:
    """Raise CheckpointFileError unless the file has the header and the length of this shard."""
    if file.is_symlink():
        raise _damaged(file, f"{shard.num_bytes} bytes of its own", "a link to another place")
    size = file.stat().st_size if file.is_file() else "no file"
    if size != shard.num_bytes:
        raise _damaged(file, f"{shard.num_bytes} bytes", size)
    try:
        with file.open("rb") as stream:
            found = stream.read(len(shard.header))
    except OSError as error:
        raise _damaged(file, f"{shard.num_bytes} readable bytes", error.strerror) from error
    if found != shard.header:
        raise _damaged(file, "the header that its tensors have", "another header")


def _damaged(file: Path, expected: str, found: object) -> CheckpointFileError:
    return CheckpointFileError(
        f"{file} with {expected}", str(found), "Fetch the checkpoint again: nothing was loaded."
    )
