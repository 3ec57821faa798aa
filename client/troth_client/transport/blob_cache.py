"""The blob cache: the bytes that a participant holds for others, and the gate in front of them.

Owns: the rounds that others may read, the expected pushes, and what is forgotten. The gate is here,
so that no wire can forget it. Others can read the bytes of a round only after its `release`
(section 4: nothing leaves before Commit has ended).
Never: opens a connection.
Next: `exchange.py`; `MemoryBlobs` and `files.FolderBlobs`, which hold the blobs.
"""

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from troth_attestation.errors import AttestationError
from troth_client.errors import ClientError
from troth_client.transport.base import (
    OF_FILES,
    OF_STATES,
    SHOWN,
    BlobId,
    BlobKind,
    Check,
    OpeningSets,
    ShownFiles,
)
from troth_client.transport.errors import BlobRefusedError, NotReleasedError


class Blobs(Protocol):
    """Where bytes lie; addresses are `BlobId.address`."""

    def put(self, blob: BlobId, data: bytes) -> None:
        """Keep bytes, not readable by others yet."""

    def get(self, address: str) -> bytes | None:
        """Return bytes, whether served or not."""

    def served(self, address: str) -> bytes | None:
        """Return bytes that others may read."""

    def serve_through(self, round_: int) -> None:
        """Let others read all rounds up to this one, also what is put later."""

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds."""


class MemoryBlobs:
    """Bytes in a dictionary."""

    def __init__(self) -> None:
        self._blobs: dict[str, tuple[range, bytes]] = {}
        self._last_served = -1

    def put(self, blob: BlobId, data: bytes) -> None:
        """Keep bytes, not readable by others yet."""
        # Equal bytes of two rounds: open with the first, forgotten with the last.
        rounds = self._blobs.get(blob.address, (range(blob.round, blob.round + 1), b""))[0]
        first, last = min(rounds.start, blob.round), max(rounds[-1], blob.round)
        self._blobs[blob.address] = (range(first, last + 1), data)

    def get(self, address: str) -> bytes | None:
        """Return bytes, whether served or not."""
        found = self._blobs.get(address)
        return found[1] if found else None

    def served(self, address: str) -> bytes | None:
        """Return bytes that others may read."""
        found = self._blobs.get(address)
        return found[1] if found and found[0].start <= self._last_served else None

    def serve_through(self, round_: int) -> None:
        """Let others read all rounds up to this one."""
        self._last_served = max(self._last_served, round_)

    def drop_before(self, round_: int) -> None:
        """Forget earlier rounds."""
        self._blobs = {a: found for a, found in self._blobs.items() if found[0][-1] >= round_}


@dataclass(frozen=True, slots=True)
class _Expected:
    blob: BlobId
    num_bytes: int
    check: Check[object]


class BlobCache:
    """Own blobs and checked foreign ones, with the gate and the list of expected pushes."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._openings: OpeningSets | None = None
        self._states: ShownFiles | None = None
        self._files: ShownFiles | None = None
        self._own: dict[str, BlobId] = {}
        self._expected: dict[str, _Expected] = {}
        self._released = -1

    def hold(self, blob: BlobId, data: bytes) -> None:
        """Keep our own bytes; BlobRefusedError if they do not have that address.

        Bytes that are shown from a place of their own are refused as well.
        """
        if blob.kind in SHOWN:
            raise BlobRefusedError(
                "a header or a payload", f"{blob.kind}", "Keep it where it is shown from."
            )
        if not blob.matches(data):
            raise BlobRefusedError(
                f"bytes with the address {blob.address}",
                f"{len(data)} bytes with another",
                "Compute the key from the bytes that are held.",
            )
        self._own[blob.address] = blob
        self._blobs.put(blob, data)

    def keep(self, blob: BlobId, data: bytes) -> None:
        """Keep foreign bytes that passed every check, in place of others kept before.

        Bytes of the kinds in `SHOWN` are not kept here: the participant that fetched them does.
        Where a push of these was expected, its check runs as well: it may expect the next blob.
        """
        if blob.kind not in SHOWN and self._blobs.get(blob.address) != data:
            self._blobs.put(blob, data)
        expected = self._expected.pop(blob.address, None)
        if expected is not None:
            _follow_up(expected.check, data)

    def accept(self, blob: BlobId, data: bytes) -> None:
        """Keep pushed bytes that passed `judge`: opening sets and files lie in what we show.

        Files that nobody wants any more are dropped. Raises BlobRefusedError, DiskFullError.
        """
        if blob.kind is BlobKind.OPENINGS and self._openings is not None:
            self._openings.accept(blob.key, data)
        elif blob.kind in OF_FILES:
            for place in self._places(blob.kind):
                if len(data) in place.welcome(blob.kind, blob.key):
                    place.accept(blob.kind, blob.key, data)
        else:
            self._expected.pop(blob.address, None)  # `judge` has run its check
            self.keep(blob, data)

    def find(self, blob: BlobId) -> bytes | None:
        """Return bytes for our own use."""
        return self._shown(blob.address) or self._blobs.get(blob.address)

    def served(self, address: str) -> bytes | None:
        """Return bytes for others: what is shown, or a released blob; else None."""
        return self._shown(address) or self._blobs.served(address)

    def show(self, sets: OpeningSets) -> None:
        """Serve these opening sets."""
        self._openings = sets

    def show_states(self, states: ShownFiles) -> None:
        """Serve the pieces of these states."""
        self._states = states

    def show_files(self, files: ShownFiles) -> None:
        """Serve these files of a run."""
        self._files = files

    def release(self, round_: int) -> None:
        """Open the gate for a round and all earlier ones."""
        self._released = max(self._released, round_)
        self._blobs.serve_through(self._released)

    def own(self, round_: int) -> list[tuple[BlobId, bytes]]:
        """Return our own blobs of a released round, headers first; else NotReleasedError."""
        if round_ > self._released:
            raise NotReleasedError(
                f"round {round_} to be released",
                f"{self._released} as the last one",
                "Wait until the chain shows the end of Commit.",
            )
        blobs = sorted((b for b in self._own.values() if b.round == round_), key=lambda b: b.kind)
        return [(blob, data) for blob in blobs if (data := self._blobs.get(blob.address))]

    def is_known(self, address: str) -> bool:
        """Tell whether a push is not needed, because others can read these bytes already.

        Pieces and files are not read for that: a caller must not make us do it.
        """
        file = _of_files(address)
        if file is None:
            return self.served(address) is not None
        return any(place.has(file.kind, file.key) for place in self._places(file.kind))

    def expect(self, blob: BlobId, num_bytes: int, check: Check[object]) -> None:
        """Accept a push of these bytes from now on; BlobRefusedError for those in `SHOWN`.

        Where they are here, as after a restart, `check` runs now: a header's expects its payload.
        """
        if blob.kind in SHOWN:
            raise BlobRefusedError(
                "a header or a payload", f"{blob.kind}", "Opening sets have a list of their own."
            )
        held = self._blobs.get(blob.address)
        if held is None:
            self._expected[blob.address] = _Expected(blob, num_bytes, check)
        else:
            _follow_up(check, held)

    def welcome(self, address: str) -> Collection[int]:
        """Return the sizes of the bytes that may be pushed to an address, none if none may."""
        root = _openings_root(address)
        if root is not None:
            return () if self._openings is None else self._openings.welcome(root)
        file = _of_files(address)
        if file is not None:
            wanted = (place.welcome(file.kind, file.key) for place in self._places(file.kind))
            return next((sizes for sizes in wanted if sizes), ())
        expected = self._expected.get(address)
        return (expected.num_bytes,) if expected else ()

    def judge(self, address: str, data: bytes) -> BlobId:
        """Check pushed bytes, changing nothing (it may run in a thread), and return their id.

        Raises BlobRefusedError. `accept` is the next step.
        """
        root = _openings_root(address)
        if root is not None and self._openings is not None:
            self._openings.judge(root, data)
            return BlobId(0, BlobKind.OPENINGS, root)  # sets belong to no round here
        file = _of_files(address)
        if file is not None:
            if len(data) not in self.welcome(address) or not file.matches(data):
                raise BlobRefusedError(
                    f"bytes of {address}, if they are wanted", "others", "Send what is wanted."
                )
            return file
        expected = self._expected.get(address)
        if expected is None:
            raise BlobRefusedError("bytes that are expected", address, "Serve them instead.")
        if len(data) != expected.num_bytes or not expected.blob.matches(data):
            raise BlobRefusedError(
                f"{expected.num_bytes} bytes with the address {address}",
                f"{len(data)} bytes or another address",
                "Send the bytes that were committed.",
            )
        try:
            expected.check(data)
        except (ClientError, AttestationError) as error:
            raise BlobRefusedError(f"valid bytes of {address}", f"{error}", "Repair it.") from error
        return expected.blob

    def drop_before(self, round_: int) -> None:
        """Forget blobs and expectations of earlier rounds."""
        self._own = {a: b for a, b in self._own.items() if b.round >= round_}
        # A check that runs in a thread may expect more just now. Only a copy is made in one step:
        # a list of the items allocates, so garbage may be collected in between.
        for address, expected in self._expected.copy().items():
            if expected.blob.round < round_:
                self._expected.pop(address, None)
        self._blobs.drop_before(round_)

    def _shown(self, address: str) -> bytes | None:
        kind, _, key = address.partition("/")
        if kind == BlobKind.OPENINGS and self._openings is not None:
            return self._openings.shown(bytes.fromhex(key))
        file = _of_files(address)
        if file is None:
            return None
        found = (place.shown(file.kind, file.key) for place in self._places(file.kind))
        return next((data for data in found if data is not None), None)

    def _places(self, kind: BlobKind) -> list[ShownFiles]:
        """Return where bytes of a kind in `OF_FILES` may lie; pieces are of weights or of data."""
        states = self._states if kind in OF_STATES else None
        files = None if kind is BlobKind.PIECES else self._files
        return [place for place in (states, files) if place is not None]


def _follow_up(check: Check[object], data: bytes) -> None:
    """Let a check expect what these bytes name; those that fail it name nothing."""
    with contextlib.suppress(ClientError, AttestationError):
        check(data)


def _openings_root(address: str) -> bytes | None:
    """Return the root in the address of an opening set; None for another kind of blob."""
    kind, _, key = address.partition("/")
    return bytes.fromhex(key) if kind == BlobKind.OPENINGS else None


def _of_files(address: str) -> BlobId | None:
    """Return the id of a blob of the kinds in `OF_FILES`; None for another kind."""
    kind, _, key = address.partition("/")
    return BlobId(0, BlobKind(kind), bytes.fromhex(key)) if kind in OF_FILES else None
