"""The interface of every transport: hold, release, push, fetch, show, offer (protocol section 4).

Owns: the address of a blob, the hash that its bytes must have, and the calls.
Never: moves bytes; `http.py`, `files.py` and `memory.py` do, with the same meaning.
Next: `exchange.py`, the one implementation of the interface over those three wires.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from troth_attestation.header import HEADER_BYTES
from troth_attestation.openings import openings_root
from troth_attestation.pieces import piece_hash
from troth_client.compression.codec import payload_root
from troth_client.transport.errors import HolderError
from troth_client.transport.tally import Tally
from troth_coordinator.rules.hashing import H, var

T = TypeVar("T")

Check = Callable[[bytes], T]
"""Judges bytes that already have the right size and address.

Returns what they mean, or raises ClientError or AttestationError. It may run in a thread and may
call `Transport.expect`.
"""


class BlobKind(StrEnum):
    """The kind of bytes, which decides how their address follows from them."""

    HEADER = "header"
    PAYLOAD = "payload"
    OPENINGS = "openings"
    PIECES = "pieces"
    PIECE = "piece"
    CONFIG = "config"
    MANIFEST = "manifest"
    TOKENIZER = "tokenizer"


OF_STATES = frozenset({BlobKind.PIECES, BlobKind.PIECE})
"""Kinds of blobs that weights travel as; shards of tokens travel as pieces too."""
OF_RUN = frozenset({BlobKind.CONFIG, BlobKind.MANIFEST, BlobKind.TOKENIZER})
"""Kinds of blobs that are a file of a run. Only a bound of their size is known before."""
OF_FILES = OF_STATES | OF_RUN
"""Kinds of blobs that lie in files: a push of them is flushed to the disk, which takes its time."""
SHOWN = OF_FILES | {BlobKind.OPENINGS}
"""Kinds of blobs that are shown from a place of their own, and that the blob cache never keeps."""

_ROOTS: Final[Mapping[BlobKind, Callable[[bytes], bytes]]] = {
    BlobKind.PAYLOAD: payload_root,
    BlobKind.OPENINGS: openings_root,
    BlobKind.PIECE: piece_hash,
}


@dataclass(frozen=True, slots=True)
class BlobId:
    """Bytes of a round by the hash they must have.

    HEADER: key is the header hash on chain, bytes are the header and its 64-byte signature.
    PAYLOAD: key is the payload root in the header.
    OPENINGS: key is the openings root in the audit on chain, bytes are the whole opening set.
    PIECES: key is a state root on chain, bytes are the piece list of that state.
    PIECE: key is a hash of a piece list or of a data manifest, bytes are that piece of a tensor or
    of a shard.
    CONFIG, MANIFEST: key is the hash in the Run account, bytes are the canonical JSON.
    TOKENIZER: key is the SHA-256 in the data manifest, bytes are the file.
    The keys of all but the first two tell them apart without the round.
    """

    round: int
    kind: BlobKind
    key: bytes

    @property
    def address(self) -> str:
        """How the blob is named on every wire: kind/hex."""
        return f"{self.kind}/{self.key.hex()}"

    @property
    def is_whole(self) -> bool:
        """True if the address alone tells whether the bytes are right.

        A header's signature is not covered. A piece list is checked by its reader, who knows the
        shapes of the tensors.
        """
        return self.kind not in (BlobKind.HEADER, BlobKind.PIECES)

    def matches(self, data: bytes) -> bool:
        """Return whether the bytes have this address."""
        if self.kind is BlobKind.PIECES:
            return True  # only its reader can tell
        if self.kind in _ROOTS:
            return bool(data) and _ROOTS[self.kind](data) == self.key
        if self.kind is BlobKind.TOKENIZER:
            return hashlib.sha256(data).digest() == self.key
        if self.kind is BlobKind.HEADER:
            return H("troth:header", data[:HEADER_BYTES]) == self.key
        return H(f"troth:{self.kind}", var(data)) == self.key


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of a push to one holder."""

    holder: str
    num_accepted: int
    error: HolderError | None = None


class OpeningSets(Protocol):
    """The opening sets that others may read or push; `state/openings_store.py` implements it."""

    def shown(self, root: bytes) -> bytes | None:
        """Return the set with this openings root, None if there is none. Called in threads."""

    def welcome(self, root: bytes) -> Collection[int]:
        """Return the sizes of a set with this root that may be pushed; none: it is not wanted."""

    def judge(self, root: bytes, data: bytes) -> None:
        """Check a pushed set, changing nothing. Raises BlobRefusedError. Called in threads."""

    def accept(self, root: bytes, data: bytes) -> None:
        """Keep and show a pushed set that passed. Raises BlobRefusedError, DiskFullError."""


class ShownFiles(Protocol):
    """Bytes that lie in files by their hash: weights, or the files of a run.

    `checkpoint/state_store.py`, `hub/states.py` and `run_files/files.py` implement it.
    """

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        """Return the bytes that others may read under this key. Called in threads."""

    def has(self, kind: BlobKind, key: bytes) -> bool:
        """Return whether `shown` would find it, without reading it."""
        ...

    def welcome(self, kind: BlobKind, key: bytes) -> Collection[int]:
        """Return the sizes of bytes with this key that may be pushed; none: they are not wanted."""

    def accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        """Keep and show pushed bytes that have this key, if they are still wanted.

        Called in threads. Raises BlobRefusedError, DiskFullError.
        """


class Transport(Protocol):
    """How a participant gives and gets headers and payloads. Use it as an async context manager."""

    @property
    def endpoint(self) -> str:
        """The address for the chain's Participant account; known once started."""

    @property
    def tally(self) -> Tally:
        """The bytes that were received and sent so far."""
        ...

    def hold(self, blob: BlobId, data: bytes) -> None:
        """Keep our own bytes; nobody can read them before `release` of their round.

        Raises BlobRefusedError if the bytes do not have that address.
        """

    def release(self, round_: int) -> None:
        """Serve what is held of this round and earlier ones.

        Call it when the chain shows that the Commit phase of the round has ended, never before.
        """

    def show(self, sets: OpeningSets) -> None:
        """Serve opening sets too: those of `sets`, at any time, and no others.

        They belong to no round: `release` does not open them, `drop_before` does not forget them.
        `sets` also says which sets others may push to us.
        """

    def show_states(self, states: ShownFiles) -> None:
        """Serve piece lists and pieces too: those of `states`; a participant's takes no push."""

    def show_files(self, files: ShownFiles) -> None:
        """Serve the files of the run too: those of `files`, which also says what may be pushed."""

    def use_stores(self, urls: Iterable[str], *, signs: bool) -> None:
        """Take these addresses for object stores, which holders may name from now on.

        All others are endpoints, whatever they look like. `signs`: with the user's credentials, for
        stores that the user named or accepted. Signing is never taken back.
        """

    def expect(self, blob: BlobId, num_bytes: int, check: Check[object]) -> None:
        """Accept a push of these bytes from anybody; they are checked like fetched ones."""

    def ranked(self, holders: Iterable[str]) -> list[str]:
        """Return the holders without repetition, those that answered best first."""
        ...

    async def push(self, round_: int, holders: Sequence[str]) -> tuple[PushResult, ...]:
        """Offer our own blobs of a round, headers first, to all these holders at once.

        Best effort: failures are in the results. Raises NotReleasedError before `release`.
        """
        ...

    async def offer(self, blob: BlobId, holders: Sequence[str]) -> tuple[PushResult, ...]:
        """Offer an opening set, weights or a file that we show to all these holders at once.

        Best effort: failures are in the results. A holder that has it already has accepted it.
        Returns nothing if we do not show it.
        """
        ...

    async def fetch(
        self, blob: BlobId, holders: Sequence[str], num_bytes: int, check: Check[T]
    ) -> T:
        """Return `check` of exactly `num_bytes` bytes with that address, from any holder.

        Of the kinds in `OF_RUN` there may be fewer bytes than that, but not more.
        Bytes that passed are kept and served like our own, except those of the kinds in `SHOWN`:
        the caller decides about them. Raises FetchError with every holder's failure. If bytes fail
        the check though their address covers them whole (`BlobId.is_whole`), no holder is to blame:
        the check's own error is raised.
        """
        ...

    def drop_before(self, round_: int) -> None:
        """Forget all blobs and expectations of earlier rounds."""

    async def __aenter__(self) -> Self:
        """Start serving; EndpointInUseError if another process listens there."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop serving and drop connections."""
