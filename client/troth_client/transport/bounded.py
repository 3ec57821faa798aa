"""Blobs in a folder with a bound: what a hub keeps of the last rounds.

Owns: the size of the folder, and which round makes room. Never: decides what is wanted, or
touches a file of the folder that has no name of ours.
Next: `files.py`, whose layout this is; `blob_cache.py`, which is built over it.
"""

import shutil
from pathlib import Path
from typing import Final

from troth_client.runtime.files import DiskFullError, remove_temporaries
from troth_client.transport.base import BlobId
from troth_client.transport.files import FILE_NAME, FolderBlobs, round_folders

SPARE_BYTES: Final = 2**20
"""So much of the disk stays free: names and folders take room as well."""


class BoundedBlobs:
    """Blobs in a folder of at most `max_bytes`; a newer round takes the place of the oldest."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Open or make the folder; what lies there is kept and served as before."""
        self._blobs = FolderBlobs(folder)
        self._max_bytes = max_bytes
        self._sizes: dict[int, dict[str, int]] = {}
        for round_folder in round_folders(folder):
            remove_temporaries(round_folder, FILE_NAME)
            for path in sorted(round_folder.iterdir()):
                if FILE_NAME.fullmatch(path.name) and path.is_file():
                    sizes = self._sizes.setdefault(int(round_folder.name), {})
                    sizes[path.name.replace("-", "/", 1)] = path.stat().st_size

    @property
    def num_bytes(self) -> int:
        """How many bytes lie here."""
        return sum(sum(sizes.values()) for sizes in self._sizes.values())

    def put(self, blob: BlobId, data: bytes) -> None:
        """Keep bytes, after earlier rounds gave way. Raises DiskFullError if that is not enough.

        The disk itself may be fuller than the bound says: what it cannot take is not kept at all,
        for a hub is not there to hold it in memory.
        """
        while not self._has_room(len(data)):
            oldest = min(self._sizes, default=blob.round)
            if oldest >= blob.round:
                raise DiskFullError(
                    f"room for {len(data)} bytes of round {blob.round}",
                    f"{self.num_bytes} of {self._max_bytes} bytes in use, {self._free} free",
                    "Free some space, or give the hub more room with --max-gb.",
                )
            self.drop_before(oldest + 1)
        self._blobs.put(blob, data)
        self._sizes.setdefault(blob.round, {})[blob.address] = len(data)

    @property
    def _free(self) -> int:
        return shutil.disk_usage(self._blobs.folder).free

    def _has_room(self, num_bytes: int) -> bool:
        return (
            self.num_bytes + num_bytes <= self._max_bytes and num_bytes + SPARE_BYTES <= self._free
        )

    def get(self, address: str) -> bytes | None:
        """Return bytes, whether served or not."""
        return self._blobs.get(address)

    def served(self, address: str) -> bytes | None:
        """Return bytes that others may read."""
        return self._blobs.served(address)

    def serve_through(self, round_: int) -> None:
        """Let others read all rounds up to this one."""
        self._blobs.serve_through(round_)

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds."""
        self._blobs.drop_before(round_)
        self._sizes = {r: sizes for r, sizes in self._sizes.items() if r >= round_}
