"""The openings store: sets of sampled trainers, made, fetched or pushed, and shown to anybody.

Owns: a folder with the sets of unsettled audits, one file each, and which sets may lie there.
Never: opens a tile by itself. Only three methods add a set. `make` takes a `Sampled` that follows
from a frozen seed (`audit/drawn.py`); `fetch` keeps bytes that read as exactly that set. `accept`
keeps pushed bytes that read as the set of an audit that `want` named.
Next: `residual_archive.py` for the opened u; `transport/blob_cache.py`, which reads `shown`;
`audit/push_openings.py` for who pushes to whom.

    <folder>/<round>-<index>-<openings root>

A file is whole or absent, so a killed process finds its sets again. `shown` and `find` check every
byte against the root in the file's name, and again once the file has changed.
"""

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from troth_attestation import openings
from troth_attestation.errors import OpeningError, OpeningNotFiniteError
from troth_attestation.openings import Residual, Sampled
from troth_client.runtime.files import DiskFullError, atomic_write, remove_temporaries
from troth_client.storage.room import Room
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.errors import BlobRefusedError
from troth_coordinator.rules.ids import Digest

MAX_SPARE_SETS = 128
"""Above so many sets, about 256 MiB at 64 drawn tiles, we take only those that we must judge."""
NUM_VERIFIED = 4
"""So many sets, 2 MiB each at 64 drawn tiles, stay in memory as they were checked last."""
_NAME = re.compile(r"(\d{1,20})-(\d{1,5})-([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One set that others may push: the root that is on chain, and what its bytes must show.

    `is_ours` says that we judge this audit: such a set is taken however many we hold.
    """

    root: Digest
    sampled: Sampled
    is_ours: bool

    def fits(self, data: bytes) -> bool:
        """Tell whether bytes with this root are the opened tiles of this audit."""
        return len(data) == openings.size(self.sampled) and _is_readable(data, self.sampled)


class OpeningsStore:
    """Opening sets of one run by round and target, served through `Transport.show`."""

    def __init__(self, folder: Path, room: Room | None = None, *, durable: bool = True) -> None:
        """Open or make the folder; the store beside it keeps other processes out.

        `room` is that store's, `durable` as there.
        """
        folder.mkdir(parents=True, exist_ok=True)
        remove_temporaries(folder, _NAME)
        self._folder = folder
        self._room = room or Room()
        self._durable = durable
        self._roots: dict[tuple[int, int], Digest] = {}
        self._wanted: tuple[Wanted, ...] = ()
        self._judged: tuple[bytes, Wanted] | None = None
        self._read: dict[tuple[int, int], tuple[Digest, Sampled]] = {}
        self._verified: dict[bytes, tuple[_Version, bytes]] = {}
        for path in folder.iterdir():
            found = _NAME.fullmatch(path.name)
            if found:
                self._roots[int(found[1]), int(found[2])] = Digest(bytes.fromhex(found[3]))

    def make(self, sampled: Sampled, after: Residual, before: Residual | None) -> Digest:
        """Keep and show our own set, and return the root for `post_openings`.

        Raises OpeningFieldError without the u before that the header names, OpeningPathError for a
        u that is not the signed one, DiskFullError.
        """
        data = openings.encode(sampled, after, before)
        root = openings.openings_root(data)
        self._room.write(lambda: self.keep(sampled, root, data, durable=self._durable))
        self._read[sampled.round, sampled.index] = root, sampled
        return root

    async def fetch(
        self, transport: Transport, sampled: Sampled, root: Digest, holders: Sequence[str]
    ) -> bytes:
        """Return the set whose root is on chain, from this store or from any holder.

        A set that reads as the audit's is kept, so that the other seats can fetch it here. Other
        bytes with that root are returned but not kept: the target recorded them, and a judge can
        give a verdict on them. Raises FetchError when nobody delivers; no set is longer than
        `openings.size`.
        """
        blob = BlobId(sampled.round, BlobKind.OPENINGS, root)
        key = sampled.round, sampled.index
        data, is_readable = await transport.fetch(
            blob,
            holders,
            openings.size(sampled),
            lambda data: (data, self._reads(data, sampled, root)),
        )
        if is_readable and self._roots.get(key) != root:
            # Serving others is optional: a full disk must not cost us our own verdict.
            with contextlib.suppress(DiskFullError):
                self.keep(sampled, root, data, durable=False)
        if is_readable and self._roots.get(key) == root:
            self._read[key] = root, sampled
        return data

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The sets that others may push now."""
        return self._wanted

    def want(self, wanted: Iterable[Wanted]) -> None:
        """Accept pushes of these sets from now on, and of no others."""
        self._wanted = tuple(wanted)

    def welcome(self, root: bytes) -> Collection[int]:
        """Return the sizes of a set with this root that may be pushed; none: it is not wanted.

        An openings root may be copied from another audit, so several sets may claim one root.
        """
        return {openings.size(one.sampled) for one in self._claims(root)}

    def judge(self, root: bytes, data: bytes) -> None:
        """Check pushed bytes, changing nothing. Raises BlobRefusedError."""
        if not data or openings.openings_root(data) != root:
            raise BlobRefusedError(
                f"bytes with the root {root.hex()}", "another root", "Send what was posted."
            )
        self._judged = data, self._claim(root, data)

    def accept(self, root: bytes, data: bytes) -> None:
        """Keep pushed bytes that passed `judge`. Raises BlobRefusedError, DiskFullError."""
        judged, self._judged = self._judged, None
        # `judge` read these very bytes in a thread: reading them again would hold up the loop.
        is_judged = judged is not None and judged[0] is data and judged[1] in self._claims(root)
        found = judged[1] if judged is not None and is_judged else self._claim(root, data)
        self.keep(found.sampled, found.root, data, durable=False)
        self._read[found.sampled.round, found.sampled.index] = found.root, found.sampled

    def _claim(self, root: bytes, data: bytes) -> Wanted:
        """Return the wanted set that these bytes are; BlobRefusedError if they are none."""
        found = next((one for one in self._claims(root) if one.fits(data)), None)
        if found is None:
            raise BlobRefusedError(
                f"the opened tiles of an open audit, root {root.hex()}",
                f"{len(data)} bytes that are none",
                "Send the set whose root is on chain.",
            )
        return found

    def _claims(self, root: bytes) -> Iterator[Wanted]:
        is_full = len(self._roots) >= MAX_SPARE_SETS
        for one in self._wanted:
            if one.root == root and (one.is_ours or not is_full):
                yield one

    def holds(self, round_: int, index: int, root: bytes) -> bool:
        """Return whether this set of an audit was kept here; its bytes are not checked."""
        return self._roots.get((round_, index)) == root

    @property
    def held(self) -> list[tuple[int, int]]:
        """The rounds and targets of the stored sets."""
        return list(self._roots)

    def find(self, round_: int, index: int) -> Digest | None:
        """Return the root of an audit's set if it is here and whole."""
        root = self._roots.get((round_, index))
        return root if root is not None and self.shown(root) is not None else None

    def find_set(self, sampled: Sampled) -> Digest | None:
        """Return the root of this audit's set if it is here and shows the tiles drawn now.

        After a fork that drew the seed anew, the stored set shows other tiles.
        """
        root = self._roots.get((sampled.round, sampled.index))
        data = None if root is None else self.shown(root)
        if root is None or data is None:
            return None
        return root if self._reads(data, sampled, root) else None

    def shown(self, root: bytes) -> bytes | None:
        """Return the set with this root for any reader; None if it is missing or damaged."""
        # Readers run in threads. Only a copy is made in one step.
        roots = self._roots.copy()
        held = next((key for key, value in roots.items() if value == root), None)
        if held is None:
            return None
        path = self._path(*held, root)
        try:
            version = _version_of(path)
            if (known := self._verified.get(root)) is not None and known[0] == version:
                return known[1]
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        if not data or openings.openings_root(data) != root:
            return None
        self._remember(root, version, data)
        return data

    def settle(self, round_: int, index: int) -> None:
        """Forget the set of an audit that is settled; harmless when repeated."""
        root = self._roots.pop((round_, index), None)
        self._read.pop((round_, index), None)
        if root is not None:
            self._path(round_, index, root).unlink(missing_ok=True)

    def keep(self, sampled: Sampled, root: Digest, data: bytes, *, durable: bool) -> None:
        """Keep bytes as the set of an audit, under their root. Raises DiskFullError."""
        if self._roots.get((sampled.round, sampled.index)) != root:
            # One draw only: two sets of one payload would show more tiles than the seed drew.
            self.settle(sampled.round, sampled.index)
        path = self._path(sampled.round, sampled.index, root)
        atomic_write(path, [data], durable)
        self._roots[sampled.round, sampled.index] = root
        self._remember(root, _version_of(path), data)

    def _reads(self, data: bytes, sampled: Sampled, root: Digest) -> bool:
        """Tell whether bytes with this root are the opened tiles of this audit.

        The caller compared bytes and root. So they are not decoded if the set that was read here
        for this very draw has that root: no other bytes have it, whatever became of a file.
        """
        if self._read.get((sampled.round, sampled.index)) == (root, sampled):
            return True
        return _is_readable(data, sampled)

    def _remember(self, root: bytes, version: "_Version", data: bytes) -> None:
        """Keep checked bytes in memory, as long as their file is of this version."""
        # Readers run in threads: they see the old memory or the new one.
        others = [(key, one) for key, one in self._verified.items() if key != root]
        self._verified = dict([*others[1 - NUM_VERIFIED :], (root, (version, data))])

    def _path(self, round_: int, index: int, root: bytes) -> Path:
        return self._folder / f"{round_}-{index}-{root.hex()}"


_Version = tuple[int, int, int]


def _version_of(path: Path) -> _Version:
    """Return what changes with the content of a file: its number, length and time of writing."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_readable(data: bytes, sampled: Sampled) -> bool:
    """Tell whether bytes are the opened tiles of this audit and nothing else."""
    try:
        openings.decode(data, sampled)
    except OpeningNotFiniteError:
        return True  # signed for and opened as drawn: the other seats must see it, too
    except OpeningError:
        return False
    return True
