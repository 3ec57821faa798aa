"""Blobs in a folder with a bound: what a hub keeps of the last rounds.

Owns: the size of the folder, and which round makes room. Never: decides what is wanted.
Next: `files.py`, whose layout this is; `blob_cache.py`, which is built over it.
"""

from pathlib import Path

from troth_client.runtime.files import DiskFullError
from troth_client.transport.base import BlobId
from troth_client.transport.files import FolderBlobs


class BoundedBlobs:
    """Blobs in a folder of at most `max_bytes`; a newer round takes the place of the oldest."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Open or make the folder; what lies there is kept and served as before."""
        self._blobs = FolderBlobs(folder)
        self._max_bytes = max_bytes
        self._sizes: dict[int, dict[str, int]] = {}
        for path in sorted(folder.glob("*/*/*")):
            if path.parent.name.isdecimal() and not path.name.endswith(".tmp"):
                sizes = self._sizes.setdefault(int(path.parent.name), {})
                sizes[path.name.replace("-", "/", 1)] = path.stat().st_size
            else:
                path.unlink(missing_ok=True)  # half-written by a process that was killed

    @property
    def num_bytes(self) -> int:
        """How many bytes lie here."""
        return sum(sum(sizes.values()) for sizes in self._sizes.values())

    def put(self, blob: BlobId, data: bytes) -> None:
        """Keep bytes, after earlier rounds gave way. Raises DiskFullError if that is not enough."""
        while self.num_bytes + len(data) > self._max_bytes:
            oldest = min(self._sizes, default=blob.round)
            if oldest >= blob.round:
                raise DiskFullError(
                    f"room for {len(data)} bytes of round {blob.round}",
                    f"{self.num_bytes} of {self._max_bytes} bytes in use",
                    "Give the hub more room with --max-gb.",
                )
            self.drop_before(oldest + 1)
        self._blobs.put(blob, data)
        self._sizes.setdefault(blob.round, {})[blob.address] = len(data)

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
