"""The opening sets and run files that a hub keeps, in folders that never grow beyond a bound.

Owns: one file for each set, under its root; whether there is room for a run's data.
Never: decides which sets are wanted.
Next: `follow.py`, which reads that from the chain; `transport/bounded.py` for bytes of rounds.
"""

import contextlib
import re
from collections.abc import Collection
from pathlib import Path

from troth_attestation.openings import openings_root
from troth_client.run_files.files import LIMITS, KeptFiles
from troth_client.runtime.files import DiskFullError, atomic_write, remove_temporaries
from troth_client.state.unneeded import Unneeded
from troth_client.transport.base import BlobKind
from troth_client.transport.errors import BlobRefusedError

MAX_SET_BYTES = 64 * 2**20
"""No opening set is longer: a hub does not know the model, so it cannot tell the exact size."""
_ROOT = re.compile(r"[0-9a-f]{64}")


class KeptSets:
    """The opening sets of open audits, by root; see `transport.base.OpeningSets`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        remove_temporaries(folder, _ROOT)
        self._folder = folder
        self._max_bytes = max_bytes
        self._wanted: frozenset[bytes] = frozenset()
        self._unneeded: Unneeded[bytes] = Unneeded()
        self._sizes = {
            bytes.fromhex(path.name): path.stat().st_size
            for path in folder.iterdir()
            if _ROOT.fullmatch(path.name)
        }

    @property
    def num_bytes(self) -> int:
        """How many bytes lie here."""
        return sum(self._sizes.values())

    def want(self, roots: Collection[bytes], slot: int) -> None:
        """Accept the sets with these roots; forget what views have not named for long."""
        self._wanted = frozenset(roots)
        for root in self._unneeded.ripe(self._sizes.keys() - self._wanted, slot):
            self._forget(root)

    def shown(self, root: bytes) -> bytes | None:
        """Return the set with this root, checked; None if there is none. Called in threads."""
        with contextlib.suppress(FileNotFoundError):
            data = self._path(root).read_bytes()
            return data if data and openings_root(data) == root else None
        return None

    def welcome(self, root: bytes) -> Collection[int]:
        """Return the sizes of a set with this root that may be pushed; none: it is not wanted."""
        return range(1, MAX_SET_BYTES + 1) if root in self._wanted else ()

    def judge(self, root: bytes, data: bytes) -> None:
        """Check a pushed set, changing nothing. Raises BlobRefusedError."""
        if root not in self._wanted or not data or openings_root(data) != root:
            raise BlobRefusedError(
                f"bytes with the root {root.hex()} of an open audit",
                f"{len(data)} bytes that are none",
                "Send the set whose root is on chain.",
            )

    def accept(self, root: bytes, data: bytes) -> None:
        """Keep and show a pushed set that passed. Raises BlobRefusedError, DiskFullError."""
        self.judge(root, data)
        self._make_room(len(data))
        if self.num_bytes + len(data) > self._max_bytes:
            raise DiskFullError(
                f"room for an opening set of {len(data)} bytes",
                f"{self.num_bytes} of {self._max_bytes} bytes in use",
                "Give the hub more room with --max-gb.",
            )
        atomic_write(self._path(root), [data], durable=False)
        self._sizes[root] = len(data)

    def _make_room(self, num_bytes: int) -> None:
        """Forget sets that nobody wants, then larger ones that take more than an equal part.

        The largest goes first. So nobody's large sets keep the others' out.
        """
        share = self._max_bytes // max(1, len(self._wanted))
        while self.num_bytes + num_bytes > self._max_bytes:
            unwanted = self._sizes.keys() - self._wanted
            root = max(unwanted or self._sizes, key=self._sizes.__getitem__, default=b"")
            if not unwanted and self._sizes.get(root, 0) <= max(share, num_bytes):
                return
            self._forget(root)

    def _forget(self, root: bytes) -> None:
        del self._sizes[root]
        self._path(root).unlink(missing_ok=True)

    def _path(self, root: bytes) -> Path:
        return self._folder / root.hex()


class BoundedFiles(KeptFiles):
    """The files of the run, of at most `max_bytes`; no part of a larger data set is taken."""

    def __init__(self, folder: Path, hashes: tuple[bytes, bytes], max_bytes: int) -> None:
        """Show what lies here; `hashes` are those of config and manifest on chain."""
        super().__init__(folder, *hashes)
        self._max_bytes = max_bytes
        if self.data is not None:
            self.data.take_up()

    def welcome(self, kind: BlobKind, key: bytes) -> Collection[int]:
        """Return the sizes of what is named by the run, not here yet, and not too large."""
        if kind is BlobKind.PIECE and not self._has_room():
            return ()
        return super().welcome(kind, key)

    def _has_room(self) -> bool:
        if self.data is None:
            return False
        manifest = self.data.manifest
        shards = (*manifest.train, *manifest.validation)
        return sum(LIMITS.values()) + sum(map(manifest.num_bytes, shards)) <= self._max_bytes
