"""The folder of a participant in one run: survives kill -9, full disks and damaged files.

Owns: file names, the order of writes, the lock, what happens to a damaged file. Never: interprets
what it keeps, or touches the folder of another participant.
Next: `entries.py`; `steps/commit.py` saves a submission, `steps/settle.py` saves weights.

    with Store(folder, identity, report) as store:
        store.save_submission(submission, residual)     # before anything leaves the machine
        store.save_weights(WeightState(...))            # when the round is closed and applied
        store.drop_before(round - keep)

Promises. A save that raises or is killed changed nothing. One's own submission and its u are on
the disk (`durable`), whole, when their save returns. A file that does not verify is reported and
counts as absent: loading the newest weights or residual goes on to the one before it. On a full
disk the copies of others' payloads are dropped first, then for new weights old ones; for one's own
work `room` drops more. Weights and copies for which there is no room are reported and left out:
training needs neither. One process at a time.
"""

import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, Self, TypeVar

from troth_client.errors import ClientError
from troth_client.runtime.files import (
    PRIVATE_FOLDER_MODE,
    Closable,
    DiskFullError,
    FolderLock,
    atomic_write,
    remove_temporaries,
)
from troth_client.storage.entries import ResidualEntry, StoreIdentity, Submission, WeightState
from troth_client.storage.errors import StoreConflictError
from troth_client.storage.identity import check_identity
from troth_client.storage.room import Room
from troth_client.storage.sealed import (
    DamagedFileError,
    Record,
    read_field,
    read_integer,
    read_record,
    read_span,
    write_record,
)
from troth_client.telemetry.events import EventSink

IDENTITY_FILE = "identity.json"
DISPUTE_FILE = "dispute.json"
SALT_KEY_FILE = "salt.key"
SALT_KEY_BYTES = 32
_FILES = (IDENTITY_FILE, DISPUTE_FILE, SALT_KEY_FILE)
RECORDS = "*.record"
"""The pattern of the files that hold weights, residuals and submissions."""
_NAME = re.compile(r"^(submission|residual|weights|peer)-(\d{20})(?:-(\d{5}))?\.record$")
_OURS = re.compile("|".join((_NAME.pattern, *map(re.escape, _FILES))))
_NAME_FIELD = "file"


class _Entry(Protocol):
    @classmethod
    def from_record(cls, record: Record) -> Self: ...


E = TypeVar("E", bound=_Entry)


class Store(Closable):
    """Local state of one participant in one run."""

    def __init__(
        self,
        folder: Path,
        identity: StoreIdentity,
        report: Callable[[DamagedFileError | DiskFullError], None],
        durable: bool = True,
        draw: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Open or make the folder, and hold it until `close`.

        Raises FolderInUseError, StoreIdentityError, DiskFullError. `durable=False` leaves flushing
        to the operating system: enough for kill -9, not for a power cut.
        """
        self._folder = folder
        self._report = report
        self.room = Room(report)
        self.room.add(self._drop_peers)
        self._room_of_weights = Room(report)
        self._room_of_weights.add(self._drop_peers)
        self._room_of_weights.add(partial(self._drop_weights, 1))
        self._needed: Callable[[], Iterable[int]] = tuple
        self._durable = durable
        self._peers = threading.Lock()
        folder.mkdir(PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        try:
            remove_temporaries(folder, _OURS)
            path = folder / IDENTITY_FILE
            check_identity(path, identity.to_json(), "--state", durable=durable)
            self.salt_key = self._salt_key(draw)
        except BaseException:
            self._lock.close()
            raise

    @property
    def durable(self) -> bool:
        """Whether a save is flushed to the disk before it returns."""
        return self._durable

    @property
    def folder(self) -> Path:
        """The folder; other files in it are under the same lock."""
        return self._folder

    def save_submission(self, submission: Submission, residual: ResidualEntry) -> None:
        """Keep one's own payload of a round, and the u behind it, before it is sent.

        Saving the same bytes again changes nothing. Raises StoreConflictError when other bytes of
        that round are there (the first commitment counts), DiskFullError.
        """
        if submission.round != residual.round:
            raise ValueError(f"submission of {submission.round}, residual of {residual.round}")
        known = self.load_submission(submission.round)
        if known is not None and known != submission:
            raise StoreConflictError(
                f"one submission of round {submission.round}",
                f"another one in {self._folder}",
                "Send the stored one again: the chain keeps the first commitment.",
            )
        # The residual first: a submission on disk can then always be settled.
        self._write("residual", residual.round, residual.to_record())
        self._write("submission", submission.round, submission.to_record())

    def load_submission(self, round_: int) -> Submission | None:
        """One's own submission of a round, if there is one that verifies."""
        return self._load(Submission, self._path("submission", round_))

    def submission_rounds(self) -> list[int]:
        """Return the rounds with a submission of one's own, ascending."""
        return self._rounds("submission")

    def load_residual(self, round_: int) -> ResidualEntry | None:
        """Return the u of one's own submission of a round."""
        return self._load(ResidualEntry, self._path("residual", round_))

    def residual_links(self) -> dict[int, int]:
        """Return the round that each kept u builds on, from the heads of the files."""
        links = {}
        for round_ in self._rounds("residual"):
            try:
                links[round_] = read_integer(self._path("residual", round_), "previous_round")
            except DamagedFileError as error:
                self._report(error)
        return links

    def drop_residuals(self, keep: Collection[int]) -> None:
        """Forget the u of one's own submissions, except that of these rounds."""
        for kind, r, _, path in self._names():
            if kind == "residual" and r not in keep:
                path.unlink(missing_ok=True)

    def newest_residual(self) -> ResidualEntry | None:
        """Return the latest u that verifies; damaged ones are reported and passed over."""
        return self._newest(ResidualEntry, "residual", None)

    def save_weights(self, state: WeightState) -> None:
        """Keep w_r under its round, replacing an earlier w_r, if there is room.

        On a full disk older ones give way, but not the newest.
        """
        path = self._path("weights", state.round)
        named = _named(path, state.to_record())
        with contextlib.suppress(DiskFullError):  # it is reported
            self._room_of_weights.write(lambda: write_record(path, named, self._durable))

    def load_weights(self, round_: int) -> WeightState | None:
        """w_r of exactly this round, if it is kept."""
        return self._load(WeightState, self._path("weights", round_))

    def holds_weights(self, round_: int, root: bytes) -> bool:
        """Tell whether a file of w_r names this state root; its content is not checked."""
        try:
            return read_field(self._path("weights", round_), "state_root") == root.hex()
        except (OSError, DamagedFileError):
            return False

    def read_weights(self, round_: int, tensor: str, offset: int, num_bytes: int) -> bytes | None:
        """Return some bytes of one tensor of w_r, not checked; None if they are not there."""
        try:
            return read_span(self._path("weights", round_), tensor, offset, num_bytes)
        except (OSError, DamagedFileError):
            return None

    def newest_weights(self, at_most: int | None = None) -> WeightState | None:
        """Return the latest weights that verify, of a round up to `at_most`, reporting damage."""
        return self._newest(WeightState, "weights", at_most)

    def weight_rounds(self) -> list[int]:
        """Return the rounds whose weights are kept, ascending."""
        return self._rounds("weights")

    def save_peer(self, submission: Submission) -> None:
        """Keep a peer's verified payload for replay, if there is room.

        Not flushed: it can be fetched again. An audit and a replay may save the same one at once.
        """
        path = self._path("peer", submission.round, submission.index)
        with self._peers:
            try:
                write_record(path, _named(path, submission.to_record()), durable=False)
            except DiskFullError as error:
                self._report(error)
                self._drop_peers()

    def load_peer(self, round_: int, index: int) -> Submission | None:
        """Return a peer's payload, if it is kept."""
        return self._load(Submission, self._path("peer", round_, index))

    def peer_indices(self, round_: int) -> list[int]:
        """Return the indices of the trainers whose payloads of a round are kept, ascending."""
        names = self._names()
        return sorted(index for kind, r, index, _ in names if kind == "peer" and r == round_)

    def drop_before(
        self, round_: int, payloads_from: int | None = None, keep: Collection[int] = ()
    ) -> None:
        """Forget the rounds before `round_`, except those in `keep` (open audits, last included).

        Submissions, our own and those of others, stay from `payloads_from` on where that is given.

        The newest weights at or before `round_` stay in any case: replay starts from them. Momentum
        stays as well: audits decide about it, see `drop_residuals`.
        """
        oldest_submission = round_ if payloads_from is None else payloads_from
        base = max((r for r in self.weight_rounds() if r <= round_), default=round_)
        for kind, r, _, path in self._names():
            stays = kind == "residual" or (kind == "weights" and r == base)
            oldest = oldest_submission if kind in ("submission", "peer") else round_
            if r < oldest and r not in keep and not stays:
                path.unlink(missing_ok=True)

    def drop_after(self, round_: int) -> None:
        """Forget weights of rounds after `round_`: a fork or a correction changed them."""
        for kind, r, _, path in self._names():
            if kind == "weights" and r > round_:
                path.unlink(missing_ok=True)

    def needs_weights(self, rounds: Callable[[], Iterable[int]]) -> None:
        """Let the weights of these rounds give way after all others, in this order.

        It is called in threads, at each full disk.
        """
        self._needed = rounds

    def drop_old_weights(self) -> bool:
        """Forget the weights that are missed least, of all but the newest two.

        Others have older ones, or replay makes them. Returns whether there are more of them.
        """
        return self._drop_weights(2)

    def save_dispute(self, round_: int, canonical: bytes, own: bytes) -> None:
        """Keep the evidence of a root that exact replay contradicts, until the user removes it."""
        values = {"round": round_, "canonical": canonical.hex(), "own": own.hex()}
        text = json.dumps(values, indent=2, sort_keys=True)
        chunks = [text.encode(), b"\n"]
        self.room.write(lambda: atomic_write(self.dispute_file, chunks, self._durable))

    @property
    def dispute_file(self) -> Path:
        """The file of `save_dispute`; while it is there, weights of others are not loaded."""
        return self._folder / DISPUTE_FILE

    def close(self) -> None:
        """Give the folder up; harmless when repeated."""
        self._lock.close()

    def _salt_key(self, draw: Callable[[int], bytes]) -> bytes:
        """Secret of this folder, drawn once; the salts of headers are derived from it."""
        path = self._folder / SALT_KEY_FILE
        if path.exists():
            key = path.read_bytes()
            if len(key) == SALT_KEY_BYTES:
                return key
            self._report(DamagedFileError(path, f"{SALT_KEY_BYTES} bytes", f"{len(key)}"))
        key = draw(SALT_KEY_BYTES)
        atomic_write(path, [key], self._durable, is_secret=True)
        return key

    def _path(self, kind: str, round_: int, index: int | None = None) -> Path:
        suffix = "" if index is None else f"-{index:05d}"
        return self._folder / f"{kind}-{round_:020d}{suffix}.record"

    def _write(self, kind: str, round_: int, record: Record) -> None:
        """Write one's own work. Raises DiskFullError when there is no room to be made.

        It is secret: before its commit has closed, anybody could copy it.
        """
        path = self._path(kind, round_)
        named = _named(path, record)
        self.room.write(lambda: write_record(path, named, self._durable, is_secret=True))

    def _drop_weights(self, num_kept: int) -> bool:
        """Forget one w_r, none of the newest `num_kept`; return whether more can be forgotten."""
        old = self.weight_rounds()[:-num_kept]
        needed = [round_ for round_ in self._needed() if round_ in old]
        for round_ in [*(r for r in old if r not in needed), *needed][:1]:
            self._path("weights", round_).unlink(missing_ok=True)
        return len(old) > 1

    def _drop_peers(self) -> None:
        """Drop the copies of payloads: their makers still have them."""
        for kind, _, _, path in self._names():
            if kind == "peer":
                path.unlink(missing_ok=True)

    def _load(self, entry: type[E], path: Path) -> E | None:
        try:
            record = read_record(path)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            self._report(error)
            return None
        name = record.fields.get(_NAME_FIELD)
        if name != path.name:
            # A sound file that was copied or renamed must not pass for another round's.
            self._report(DamagedFileError(path, "its own name inside", repr(name)))
            return None
        return entry.from_record(record)

    def _newest(self, entry: type[E], kind: str, at_most: int | None) -> E | None:
        for round_ in reversed(self._rounds(kind)):
            if at_most is not None and round_ > at_most:
                continue
            found = self._load(entry, self._path(kind, round_))
            if found is not None:
                return found
        return None

    def _rounds(self, kind: str) -> list[int]:
        return sorted(r for k, r, _, _ in self._names() if k == kind)

    def _names(self) -> Iterator[tuple[str, int, int, Path]]:
        """Kind, round, index (0 where there is none) and path of every record."""
        for path in self._folder.iterdir():
            match = _NAME.match(path.name)
            if match:
                yield match[1], int(match[2]), int(match[3] or 0), path


def report_damage(events: EventSink) -> Callable[[ClientError], None]:
    """Return what reports a damaged file, or a full disk, as an event."""

    def report(error: ClientError) -> None:
        name = "disk_full" if isinstance(error, DiskFullError) else "file_damaged"
        events.emit(name, reason=str(error))

    return report


def _named(path: Path, record: Record) -> Record:
    """Seal the file name in with the content."""
    return Record({**record.fields, _NAME_FIELD: path.name}, record.arrays)
