"""The files of a run that we show to others, and those that others may push to us.

Owns: which bytes belong to which hash. Never: returns bytes that do not hash to what was asked for,
or keeps a byte that the run does not name. So what is kept is bounded by the manifest, which a
stranger may have written: pieces are taken only where all that is missing fits on the disk.
Next: `transport/blob_cache.py`, which serves what `shown` returns; `folder.py`.

    <folder>/config.json, manifest.json, tokenizer.json      canonical bytes, whole or absent
"""

import shutil
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from troth_client.data.errors import ManifestError
from troth_client.data.manifest import (
    FILE_NAME,
    MAX_BYTES,
    MAX_TOKENIZER_BYTES,
    TOKENIZER_FILE,
    Manifest,
    load_manifest,
    parse_manifest,
)
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.folder import DataFolder, ShardPiece
from troth_client.runtime.files import atomic_write, read_file
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import BlobRefusedError
from troth_coordinator.rules.config import RunConfig

CONFIG_FILE: Final = "config.json"
MAX_CONFIG_BYTES: Final = 64 * 2**10
LIMITS: Final = {
    BlobKind.CONFIG: MAX_CONFIG_BYTES,
    BlobKind.MANIFEST: MAX_BYTES,
    BlobKind.TOKENIZER: MAX_TOKENIZER_BYTES,
}
"""The most bytes that a file of a run may have."""


class KeptFiles:
    """The files of one run in a folder; see `transport.base.ShownFiles`. Any thread may call it."""

    def __init__(
        self,
        folder: Path,
        config_hash: bytes,
        manifest_hash: bytes,
        *,
        takes_pieces: bool = True,
    ) -> None:
        """Show what is in the folder, if it is this run's. Raises ManifestError, OSError.

        Without `takes_pieces` nobody may push pieces of shards: who needs some fetches them.
        """
        self.folder = folder
        self._takes_pieces = takes_pieces
        self._accepting = threading.Lock()
        self._config = BlobId(0, BlobKind.CONFIG, config_hash)
        self._manifest = BlobId(0, BlobKind.MANIFEST, manifest_hash)
        self._config_bytes: bytes | None = None
        found = read_file(folder / CONFIG_FILE, MAX_CONFIG_BYTES)
        if found is not None and self._config.matches(found):
            self._config_bytes = found
        self._manifest_bytes = b""
        self.data: DataFolder | None = None
        if (folder / FILE_NAME).is_file():
            self._open(load_manifest(folder, manifest_hash))

    def show_config(self, config: RunConfig) -> None:
        """Show this config, which the caller has compared with the run's hash."""
        self._config_bytes = config.canonical_json()

    def files(self) -> list[BlobId]:
        """Return the config, the manifest and the tokenizer that are here, in this order."""
        kinds = (BlobKind.CONFIG, BlobKind.MANIFEST, BlobKind.TOKENIZER)
        named = ((kind, self._key(kind)) for kind in kinds)
        return [BlobId(0, kind, key) for kind, key in named if key and self.has(kind, key)]

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        """Return a file or a piece by its hash, checked."""
        if kind is BlobKind.PIECE:
            return None if self.data is None else self.data.find(key)
        if kind is BlobKind.CONFIG:
            return self._config_bytes if key == self._config.key else None
        if not self.has(kind, key):
            return None
        if kind is BlobKind.MANIFEST:
            return self._manifest_bytes
        found = read_file(self.folder / TOKENIZER_FILE, MAX_TOKENIZER_BYTES)
        return found if found is not None and BlobId(0, kind, key).matches(found) else None

    def has(self, kind: BlobKind, key: bytes) -> bool:
        """Return whether a file or a piece is here, without reading it."""
        if kind is BlobKind.CONFIG:
            return key == self._config.key and self._config_bytes is not None
        if self.data is None:
            return False
        if kind is BlobKind.PIECE:
            return self.data.has(key)
        is_here = kind is BlobKind.MANIFEST or self._tokenizer_path().is_file()
        return is_here and key == self._key(kind)

    def welcome(self, kind: BlobKind, key: bytes) -> Collection[int]:
        """Return the sizes of what is named by the run, not here yet, and taken by us."""
        if self.has(kind, key):
            return ()
        if kind is BlobKind.PIECE:
            return {piece.num_bytes for piece in self._places(key)}
        return range(1, LIMITS[kind] + 1) if key == self._key(kind) else ()

    def accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        """Keep bytes that have this key; slow, for a thread. BlobRefusedError, DiskFullError."""
        try:
            with self._accepting:  # two of one file would write one temporary file
                if kind is BlobKind.PIECE or not self.has(kind, key):
                    self._accept(kind, key, data)
        except (RunFileError, ManifestError) as error:
            raise BlobRefusedError(error.expected, error.found, error.next_step) from error

    def _accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        if kind is BlobKind.PIECE:
            self._put(key, data)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if kind is BlobKind.CONFIG:
            atomic_write(self.folder / CONFIG_FILE, [data])
            self._config_bytes = data
        elif kind is BlobKind.MANIFEST:
            manifest = canonical_manifest(data)
            atomic_write(self.folder / FILE_NAME, [data])
            self._open(manifest)
        else:
            atomic_write(self._tokenizer_path(), [data])

    def _put(self, hash_: bytes, data: bytes) -> None:
        for piece in self._places(hash_):
            if self.data is not None:
                self.data.put(piece, data)

    def _places(self, hash_: bytes) -> Collection[ShardPiece]:
        """Return where a pushed piece would go: nowhere, unless all that is missing has room.

        One piece may have any number of places: the bytes that come say nothing of those written.
        """
        if self.data is None or not self._takes_pieces:
            return ()
        has_room = self.data.missing_bytes <= shutil.disk_usage(self.folder).free
        return self.data.wanted(hash_) if has_room else ()

    def _key(self, kind: BlobKind) -> bytes | None:
        """Return the hash that the run names for a file of this kind, as far as it is known."""
        if kind is BlobKind.TOKENIZER:
            return None if self.data is None else tokenizer_key(self.data.manifest)
        return self._config.key if kind is BlobKind.CONFIG else self._manifest.key

    def _open(self, manifest: Manifest) -> None:
        self._manifest_bytes = manifest.canonical  # up to 32 MB: not written anew for each caller
        self.data = DataFolder(self.folder, manifest)

    def _tokenizer_path(self) -> Path:
        return self.folder / TOKENIZER_FILE


def member_files(folder: Path, config: RunConfig) -> KeptFiles:
    """Return what a member shows: its config, and the data set in its folder.

    A member never has every shard, and has fetched those that it needs: it takes no pieces.
    """
    hashes = config.config_hash(), config.manifest_digest()
    kept = KeptFiles(folder, *hashes, takes_pieces=False)
    kept.show_config(config)
    return kept


def tokenizer_key(manifest: Manifest) -> bytes | None:
    """Return the SHA-256 of the tokenizer's file; None where a token is a byte."""
    entry = manifest.tokenizer
    return None if entry.kind == "bytes" else bytes.fromhex(entry.sha256)


def canonical_manifest(data: bytes) -> Manifest:
    """Return the manifest in bytes that have the hash on chain.

    Raises ManifestError, and RunFileError where it is canonical in another version only.
    """
    manifest = parse_manifest(data, "the run's data manifest")
    if manifest.canonical != data:
        raise other_version("data manifest")
    return manifest


def other_version(what: str) -> RunFileError:
    """Return the error for bytes that the chain names and that we would write in another way."""
    return RunFileError(
        f"the run's {what} in the canonical form of this version",
        "another form",
        "Its creator had another version of troth: install that one.",
    )
