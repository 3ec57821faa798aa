"""A folder of token data that may still lack shards: which pieces are here, and where they go.

Owns: the drafts of shards, and when a draft becomes a shard. Never: keeps a piece whose hash is not
the manifest's, or takes a file of another name than the manifest's for a shard.
Next: `fetch.py`, which brings what is missing; `files.py`, which shows what is here.

    <folder>/<shard>.bin         a whole shard; `data/shards.py` checks it again at its first use
    <folder>/<shard>.bin.part    a draft: a killed fetch goes on with its good pieces
"""

import os
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_attestation.pieces import piece_hash
from troth_client.data.manifest import PIECE_BYTES, Manifest, ShardEntry
from troth_client.runtime.files import OPEN_MODE, explain_full_disk, flush, write_at

DRAFT_SUFFIX: Final = ".part"


@dataclass(frozen=True, slots=True)
class ShardPiece:
    """At most 1 MiB of one shard: its place in the file, and its hash."""

    shard: ShardEntry
    number: int
    offset: int
    num_bytes: int
    hash: bytes


class DataFolder:
    """The shards of one manifest in a folder. Any thread may call it."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Look at what is here, changing nothing: drafts are hashed, whole shards are not.

        Raises OSError for unreadable files.
        """
        self.folder = folder
        self.manifest = manifest
        self._lock = threading.Lock()
        self._places: dict[bytes, list[ShardPiece]] = {}
        self._missing: dict[str, set[int]] = {}
        self._missing_bytes = 0
        for shard in (*manifest.train, *manifest.validation):
            for piece in self.pieces(shard):
                self._places.setdefault(piece.hash, []).append(piece)
            if not self._has_size(shard):
                self._note_missing(shard, self._wrong(shard, self._draft(shard)))

    def take_up(self, *, is_checked: bool = False) -> None:
        """Make drafts of damaged shards and shards of filled drafts; call it before `put`.

        With `is_checked` whole shards are hashed too; else they count as damaged by size only.
        Only one process may fill a folder. Raises OSError, DiskFullError.
        """
        with self._lock:
            for shard in (*self.manifest.train, *self.manifest.validation):
                self._take_up(shard, is_checked=is_checked)

    def pieces(self, shard: ShardEntry) -> Iterator[ShardPiece]:
        """Yield the pieces of a shard in order."""
        size = self.manifest.num_bytes(shard)
        for number, hash_ in enumerate(shard.pieces):
            offset = number * PIECE_BYTES
            length = min(PIECE_BYTES, size - offset)
            yield ShardPiece(shard, number, offset, length, bytes.fromhex(hash_))

    def missing(self, shards: Iterable[ShardEntry]) -> list[ShardPiece]:
        """Return the pieces of these shards that are not here, in this order."""
        with self._lock:
            return [
                piece
                for shard in shards
                if shard.file in self._missing
                for piece in self.pieces(shard)
                if piece.number in self._missing[shard.file]
            ]

    @property
    def missing_bytes(self) -> int:
        """The bytes of all pieces that are not here, validation's too; quick, for each caller."""
        with self._lock:
            return self._missing_bytes

    def here(self) -> list[ShardPiece]:
        """Return the pieces that are here, each hash once."""
        with self._lock:
            first = [same[0] for same in self._places.values()]
            return [piece for piece in first if not self._lacks(piece)]

    def has(self, hash_: bytes) -> bool:
        """Return whether a piece with this hash is here."""
        with self._lock:
            return any(not self._lacks(piece) for piece in self._places.get(hash_, ()))

    def wanted(self, hash_: bytes) -> list[ShardPiece]:
        """Return the places of this piece that are still empty."""
        with self._lock:
            return [piece for piece in self._places.get(hash_, ()) if self._lacks(piece)]

    def find(self, hash_: bytes) -> bytes | None:
        """Return the piece with this hash, checked; None if no file has it."""
        with self._lock:
            here = [piece for piece in self._places.get(hash_, ()) if not self._lacks(piece)]
        for piece in here:
            for path in (self._path(piece.shard), self._draft(piece.shard)):
                data = _read(path, piece)
                if data is not None and piece_hash(data) == hash_:
                    return data
        return None

    def put(self, piece: ShardPiece, data: bytes) -> None:
        """Write a piece whose hash was checked; the last one of a shard makes it whole.

        Raises DiskFullError; what was written before stays.
        """
        with self._lock:
            missing = self._missing.get(piece.shard.file, set())
            if piece.number not in missing:
                return
            if self._has_size(piece.shard):  # another process was faster
                self._note_missing(piece.shard, [])
                return
            with explain_full_disk(self.folder / piece.shard.file):
                self._write(piece, data)
                missing.remove(piece.number)
                self._missing_bytes -= piece.num_bytes
                if not missing:
                    self._complete(piece.shard)

    def _write(self, piece: ShardPiece, data: bytes) -> None:
        handle = _open_draft(self._draft(piece.shard))
        try:
            write_at(handle, data, piece.offset)
        finally:
            os.close(handle)

    def _lacks(self, piece: ShardPiece) -> bool:
        return piece.number in self._missing.get(piece.shard.file, ())

    def _has_size(self, shard: ShardEntry) -> bool:
        path = self._path(shard)
        return path.is_file() and path.stat().st_size == self.manifest.num_bytes(shard)

    def _take_up(self, shard: ShardEntry, *, is_checked: bool) -> None:
        path, draft, is_whole = self._path(shard), self._draft(shard), self._has_size(shard)
        if is_whole and not (is_checked and self._wrong(shard, path)):
            return
        if is_whole or (path.is_file() and not draft.exists()):
            path.replace(draft)
        with explain_full_disk(path):
            self._complete(shard)

    def _complete(self, shard: ShardEntry) -> None:
        """Make a shard of its draft if all pieces are there now, whoever else wrote into it."""
        wrong = self._wrong(shard, self._draft(shard))
        self._note_missing(shard, wrong)
        if not wrong:
            self._finish(shard)

    def _note_missing(self, shard: ShardEntry, numbers: list[int]) -> None:
        self._missing_bytes -= self._size_of(shard, self._missing.pop(shard.file, set()))
        if numbers:
            self._missing[shard.file] = set(numbers)
            self._missing_bytes += self._size_of(shard, numbers)

    def _size_of(self, shard: ShardEntry, numbers: Collection[int]) -> int:
        """Return the bytes of these pieces of a shard, of which only the last may be short."""
        last = len(shard.pieces) - 1
        short = len(shard.pieces) * PIECE_BYTES - self.manifest.num_bytes(shard)
        return len(numbers) * PIECE_BYTES - (short if last in numbers else 0)

    def _wrong(self, shard: ShardEntry, path: Path) -> list[int]:
        """Return the numbers of the pieces that a file does not have."""
        wrong = []
        for piece in self.pieces(shard):
            data = _read(path, piece)
            if data is None or piece_hash(data) != piece.hash:
                wrong.append(piece.number)
        return wrong

    def _finish(self, shard: ShardEntry) -> None:
        draft, path = self._draft(shard), self._path(shard)
        os.truncate(draft, self.manifest.num_bytes(shard))
        flush(draft)
        draft.replace(path)
        flush(self.folder)

    def _path(self, shard: ShardEntry) -> Path:
        return self.folder / shard.file

    def _draft(self, shard: ShardEntry) -> Path:
        return self.folder / (shard.file + DRAFT_SUFFIX)


def _read(path: Path, piece: ShardPiece) -> bytes | None:
    """Return the bytes at the place of a piece; None if the file does not reach so far."""
    try:
        with path.open("rb") as stream:
            stream.seek(piece.offset)
            data = stream.read(piece.num_bytes)
    except (FileNotFoundError, IsADirectoryError):
        return None
    return data if len(data) == piece.num_bytes else None


def _open_draft(path: Path) -> int:
    """Open a draft for writing. A link is refused: it would lead out of the folder."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, OPEN_MODE)
