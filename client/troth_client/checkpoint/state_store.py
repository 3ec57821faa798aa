"""The state store: weights whose pieces others may read, of recent rounds and checkpoints.

Owns: which states are shown, where the bytes of each piece lie, and the folder of checkpoints.
Never: returns bytes that do not hash to what was asked for, or knows whether a round has closed.
Next: `steps/settle.py`, which shows a round only after its close; `transport/blob_cache.py`, which
serves what `shown` returns; `folder.py`.

    <store>/checkpoints/<round>/         whole checkpoints, the two newest
    <store>/checkpoints/<round>.part/    a draft of `fetch.py` or `making.py`
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from troth_attestation.pieces import Piece, PieceList, piece_hash
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.folder import DRAFT_SUFFIX, CheckpointFolder, remove_ours
from troth_client.storage import Store
from troth_client.transport.base import BlobKind
from troth_client.transport.errors import BlobRefusedError
from troth_coordinator.rules.ids import Digest

CHECKPOINTS_FOLDER = "checkpoints"
KEPT_CHECKPOINTS = 2
"""The newest, and the one before: a joiner may still be fetching that."""

_ROUND = re.compile(r"0|[1-9][0-9]{0,19}")
Read = Callable[[Piece], bytes | None]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One shown state: how to read its pieces, and where those with a hash lie."""

    pieces: PieceList
    read: Read
    places: Mapping[Digest, Sequence[Piece]]
    folder: CheckpointFolder | None = None

    @classmethod
    def of(cls, pieces: PieceList, read: Read, folder: CheckpointFolder | None = None) -> Self:
        """Index the pieces of a state; `folder` is that of a checkpoint."""
        places: dict[Digest, list[Piece]] = {}
        for piece in pieces.pieces():
            places.setdefault(piece.hash, []).append(piece)
        return cls(pieces, read, places, folder)


class StateStore:
    """The shown states of one participant. Only one thread changes it; many may read."""

    def __init__(self, store: Store, on_damaged: Callable[[CheckpointFileError], None]) -> None:
        """Show the checkpoints in the store's folder; damaged ones are reported and removed.

        A folder with other files is somebody's own: it is reported, and left as it is.
        """
        self._store = store
        self._rounds: dict[int, _Shown] = {}
        self._checkpoints: dict[int, _Shown] = {}
        self._all: tuple[_Shown, ...] = ()
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            if not _ROUND.fullmatch(path.name):
                continue
            try:
                self._add(_opened(path))
            except CheckpointFileError as error:
                on_damaged(error)
                remove_ours(path)
        self._publish()

    @property
    def folder(self) -> Path:
        """Where checkpoints lie."""
        return self._store.folder / CHECKPOINTS_FOLDER

    @property
    def checkpoints(self) -> list[int]:
        """The rounds of the whole checkpoints here, ascending."""
        return sorted(self._checkpoints)

    def path(self, round_: int) -> Path:
        """Return where the checkpoint of a round lies, or would lie."""
        return self.folder / str(round_)

    def checkpoint(self, round_: int) -> CheckpointFolder | None:
        """Return the checkpoint of a round, if it is here."""
        found = self._checkpoints.get(round_)
        return None if found is None else found.folder

    def show_round(self, pieces: PieceList, keep: int) -> None:
        """Show w_r of a closed round from the store's weights; forget all but the newest `keep`."""
        round_ = pieces.state.round

        def read(piece: Piece) -> bytes | None:
            return self._store.read_weights(round_, piece.tensor, piece.offset, piece.num_bytes)

        self._rounds[round_] = _Shown.of(pieces, read)
        for old in sorted(self._rounds)[:-keep]:
            del self._rounds[old]
        self._publish()

    def show_checkpoint(self, folder: CheckpointFolder) -> None:
        """Show a whole checkpoint; remove all but the two newest, and drafts of older ones."""
        self._add(folder)
        removed = self.checkpoints[:-KEPT_CHECKPOINTS]
        for old in removed:
            del self._checkpoints[old]
        self._publish()
        for old in removed:
            remove_ours(self.path(old))
        for draft in self.folder.glob("*" + DRAFT_SUFFIX):
            number = draft.name.removesuffix(DRAFT_SUFFIX)
            if _ROUND.fullmatch(number) and int(number) <= folder.manifest.round:
                remove_ours(draft)

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        """Return a piece list by its state root, or a piece by its hash; see `ShownFiles`."""
        if kind is BlobKind.PIECES:
            lists = (one.pieces for one in self._all if one.pieces.root == key)
            return next((pieces.encode() for pieces in lists), None)
        return self.find(Digest(key))

    def has(self, kind: BlobKind, key: bytes) -> bool:
        """Return whether a state with this root, or a piece with this hash, is shown."""
        if kind is BlobKind.PIECES:
            return any(one.pieces.root == key for one in self._all)
        return any(key in one.places for one in self._all)

    def welcome(self, kind: BlobKind, key: bytes) -> Collection[int]:
        """Return nothing: a participant takes no weights that it has not asked for."""
        del kind, key
        return ()

    def accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        """Raise BlobRefusedError: see `welcome`."""
        raise BlobRefusedError(
            "no weights", f"{len(data)} bytes of {kind}/{key.hex()}", "Serve them instead."
        )

    def find(self, hash_: Digest) -> bytes | None:
        """Return the piece with this hash, checked; None if no state here has it whole."""
        for one in self._all:
            for piece in one.places.get(hash_, ()):
                data = one.read(piece)
                if data and len(data) == piece.num_bytes and piece_hash(data) == hash_:
                    return data
        return None

    def _add(self, folder: CheckpointFolder) -> None:
        shown = _Shown.of(folder.pieces, folder.read, folder)
        self._checkpoints[folder.manifest.round] = shown

    def _publish(self) -> None:
        """Let readers in other threads see the new states; until now they see the old ones."""
        self._all = (*self._checkpoints.values(), *self._rounds.values())


def _opened(path: Path) -> CheckpointFolder:
    """Open the folder of a round. Raises CheckpointFileError if it holds another round's."""
    folder = CheckpointFolder.open(path)
    if str(folder.manifest.round) != path.name:
        raise CheckpointFileError(
            f"the checkpoint of round {path.name} in {path}",
            f"that of round {folder.manifest.round}",
            "A checkpoint lies under its own round: this one is not used.",
        )
    return folder
