"""A checkpoint in a folder: safetensors shards and `manifest.json`, whole or not there at all.

Owns: the files, drafts that a fetch or a writer fills piece by piece, and reading back.
Never: decides what a draft should hold; the piece list does.
Next: `troth_attestation/shards.py` for what lies where; `fetch.py` and `making.py` fill drafts.

    <name>/manifest.json, model-00001-of-0000N.safetensors ...
    <name>.part/                 a draft: sparse files of full length; a restart goes on with it
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from troth_attestation.errors import ManifestError
from troth_attestation.manifest import MAX_MANIFEST_BYTES, CheckpointManifest
from troth_attestation.pieces import Piece, PieceList, Shape, piece_hash
from troth_attestation.shards import Shard, shards_of
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.model.shapes import trainable_shapes
from troth_client.runtime.files import Closable, atomic_write, explain_full_disk, flush_folder

MANIFEST_FILE = "manifest.json"
DRAFT_SUFFIX = ".part"
Weights = dict[str, NDArray[np.float32]]


class CheckpointFolder:
    """A whole checkpoint on disk. `open` checks the manifest and the lengths, not the weights."""

    def __init__(self, path: Path, manifest: CheckpointManifest, pieces: PieceList) -> None:
        self.path = path
        self.manifest = manifest
        self.pieces = pieces
        self._places = _places(pieces)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the manifest. Raises CheckpointFileError for a file that is missing or not one."""
        file = path / MANIFEST_FILE
        try:
            with file.open("rb") as stream:
                manifest = CheckpointManifest.read(stream.read(MAX_MANIFEST_BYTES + 1))
            pieces = manifest.pieces(trainable_shapes)
        except OSError as error:
            raise _damaged(file, "the manifest of a checkpoint", error.strerror) from error
        except ManifestError as error:
            raise _damaged(file, error.expected, error.found) from error
        for shard in shards_of(_shapes(pieces)):
            file = path / shard.file
            size = file.stat().st_size if file.is_file() else "no file"
            if size != shard.num_bytes:
                raise _damaged(file, f"{shard.num_bytes} bytes", size)
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

        Raises CheckpointFileError for a shard that is cut short.
        """
        found: Weights = {}
        for tensor in self.pieces.tensors:
            shard, offset = self._places[tensor.name]
            file = self.path / shard.file
            values = np.fromfile(file, "<f4", tensor.num_bytes // 4, offset=offset)
            if values.nbytes != tensor.num_bytes:
                raise _damaged(file, f"{shard.num_bytes} bytes", f"{tensor.name} cut short")
            found[tensor.name] = values.astype(np.float32, copy=False).reshape(tensor.shape)
        return found


class Draft(Closable):
    """A checkpoint that is being filled, piece by piece, in any order and from several threads."""

    def __init__(self, path: Path, pieces: PieceList) -> None:
        """Open or make the draft of `path`; what a killed process wrote stays. DiskFullError."""
        self.pieces = pieces
        self._path = path
        self._folder = path.with_name(path.name + DRAFT_SUFFIX)
        self._places = _places(pieces)
        self._files: dict[str, int] = {}
        self._folder.mkdir(parents=True, exist_ok=True)
        for shard in shards_of(_shapes(pieces)):
            file = self._folder / shard.file
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
            self._files[shard.file] = handle
            with explain_full_disk(file):
                os.ftruncate(handle, shard.num_bytes)
                os.pwrite(handle, shard.header, 0)

    def has(self, piece: Piece) -> bool:
        """Tell whether the bytes of a piece are here already; reads and hashes them."""
        shard, offset = self._places[piece.tensor]
        data = os.pread(self._files[shard.file], piece.num_bytes, offset + piece.offset)
        return len(data) == piece.num_bytes and piece_hash(data) == piece.hash

    def put(self, piece: Piece, data: bytes | memoryview) -> None:
        """Write the bytes of a piece, which the caller has checked. Raises DiskFullError."""
        shard, offset = self._places[piece.tensor]
        with explain_full_disk(self._folder / shard.file):
            written = os.pwrite(self._files[shard.file], data, offset + piece.offset)
            if written != piece.num_bytes:  # the disk filled up in the middle
                os.pwrite(self._files[shard.file], data[written:], offset + piece.offset + written)

    def finish(self, manifest: CheckpointManifest) -> CheckpointFolder:
        """Make the filled draft the checkpoint: flushed, then renamed. Raises DiskFullError."""
        for file, handle in self._files.items():
            with explain_full_disk(self._folder / file):
                os.fsync(handle)
        self.close()
        atomic_write(self._folder / MANIFEST_FILE, [manifest.encode()])
        # An older folder in its place was not whole, or it would have been used.
        shutil.rmtree(self._path, ignore_errors=True)
        self._folder.replace(self._path)
        flush_folder(self._path.parent)
        return CheckpointFolder(self._path, manifest, self.pieces)

    def drop(self) -> None:
        """Remove the draft."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Close the files; the draft stays."""
        for handle in self._files.values():
            os.close(handle)
        self._files = {}


def write_weights(
    path: Path, manifest: CheckpointManifest, pieces: PieceList, weights: Mapping[str, memoryview]
) -> CheckpointFolder:
    """Write weights that have these pieces as a checkpoint; `weights` are bytes by tensor name.

    Raises DiskFullError; nothing is left behind then.
    """
    with Draft(path, pieces) as draft:
        try:
            for piece in pieces.pieces():
                data = weights[piece.tensor][piece.offset : piece.offset + piece.num_bytes]
                draft.put(piece, data)
            return draft.finish(manifest)
        except BaseException:
            draft.drop()
            raise


def _shapes(pieces: PieceList) -> dict[str, Shape]:
    return {tensor.name: tensor.shape for tensor in pieces.tensors}


def _places(pieces: PieceList) -> dict[str, tuple[Shard, int]]:
    """Return the shard of each tensor, and where it begins in it."""
    return {
        name: (shard, offset)
        for shard in shards_of(_shapes(pieces))
        for name, offset in shard.offsets.items()
    }


def _damaged(file: Path, expected: str, found: object) -> CheckpointFileError:
    return CheckpointFileError(
        f"{file} with {expected}", str(found), "Fetch the checkpoint again: nothing was loaded."
    )
