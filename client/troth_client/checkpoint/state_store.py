"""The state store: weights whose pieces others may read, of recent rounds and checkpoints.

Owns: which states are shown, where the bytes of each piece lie, and the folder of checkpoints.
Never: returns bytes that do not hash to what was asked for, or knows whether a round has closed.
Next: `steps/settle.py`, which shows a round only after its close; `transport/blob_cache.py`, which
serves what `shown` returns; `folder.py`.

    <store>/checkpoints/<round>/         whole checkpoints, the two newest
    <store>/checkpoints/<round>.part/    a draft of `fetch.py` or `making.py`
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from troth_attestation.pieces import Piece, PieceList, piece_hash
from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.folder import DRAFT_SUFFIX, CheckpointFolder, remove
from troth_client.storage import Store
from troth_client.transport.base import BlobKind
from troth_coordinator.rules.ids import Digest

KEPT_CHECKPOINTS = 2
"""The newest, and the one before: a joiner may still be fetching that."""

_ROUND = re.compile(r"0|[1-9][0-9]{0,19}")
Read = Callable[[Piece], bytes | None]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One shown state, and how to read its pieces."""

    pieces: PieceList
    read: Read


class StateStore:
    """The shown states of one participant. Only one thread changes it; many may read."""

    def __init__(self, store: Store, on_damaged: Callable[[CheckpointFileError], None]) -> None:
        """Show the checkpoints in the store's folder; damaged ones are reported and removed."""
        self._store = store
        self._rounds: dict[int, _Shown] = {}
        self._checkpoints: dict[int, CheckpointFolder] = {}
        self._lists: dict[Digest, PieceList] = {}
        self._pieces: dict[Digest, list[tuple[Read, Piece]]] = {}
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            if not _ROUND.fullmatch(path.name):
                continue
            try:
                self._checkpoints[int(path.name)] = _opened(path)
            except CheckpointFileError as error:
                on_damaged(error)
                remove(path)
        self._arrange()

    @property
    def folder(self) -> Path:
        """Where checkpoints lie."""
        return self._store.folder / "checkpoints"

    @property
    def checkpoints(self) -> list[int]:
        """The rounds of the whole checkpoints here, ascending."""
        return sorted(self._checkpoints)

    def path(self, round_: int) -> Path:
        """Return where the checkpoint of a round lies, or would lie."""
        return self.folder / str(round_)

    def checkpoint(self, round_: int) -> CheckpointFolder | None:
        """Return the checkpoint of a round, if it is here."""
        return self._checkpoints.get(round_)

    def show_round(self, pieces: PieceList, keep: int) -> None:
        """Show w_r of a closed round from the store's weights; forget all but the newest `keep`."""
        round_ = pieces.state.round

        def read(piece: Piece) -> bytes | None:
            return self._store.read_weights(round_, piece.tensor, piece.offset, piece.num_bytes)

        self._rounds[round_] = _Shown(pieces, read)
        for old in sorted(self._rounds)[:-keep]:
            del self._rounds[old]
        self._arrange()

    def show_checkpoint(self, folder: CheckpointFolder) -> None:
        """Show a whole checkpoint; remove all but the two newest, and drafts of older ones."""
        self._checkpoints[folder.manifest.round] = folder
        removed = [self._checkpoints.pop(old) for old in self.checkpoints[:-KEPT_CHECKPOINTS]]
        self._arrange()
        for one in removed:
            remove(one.path)
        for draft in self.folder.glob("*" + DRAFT_SUFFIX):
            number = draft.name.removesuffix(DRAFT_SUFFIX)
            if _ROUND.fullmatch(number) and int(number) <= folder.manifest.round:
                remove(draft)

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        """Return a piece list by its state root, or a piece by its hash; see `StatePieces`."""
        if kind is BlobKind.PIECES:
            pieces = self._lists.get(Digest(key))
            return None if pieces is None else pieces.encode()
        return self.find(Digest(key))

    def find(self, hash_: Digest) -> bytes | None:
        """Return the piece with this hash, checked; None if no state here has it whole."""
        for read, piece in self._pieces.get(hash_, []):
            data = read(piece)
            if data and len(data) == piece.num_bytes and piece_hash(data) == hash_:
                return data
        return None

    def _arrange(self) -> None:
        """Index all states anew; readers in other threads see the old index or the new one."""
        lists: dict[Digest, PieceList] = {}
        places: dict[Digest, list[tuple[Read, Piece]]] = {}
        for one in self._all():
            lists[one.pieces.root] = one.pieces
            for piece in one.pieces.pieces():
                places.setdefault(piece.hash, []).append((one.read, piece))
        self._lists, self._pieces = lists, places

    def _all(self) -> Iterable[_Shown]:
        yield from (_Shown(one.pieces, one.read) for one in self._checkpoints.values())
        yield from self._rounds.values()


def _opened(path: Path) -> CheckpointFolder:
    """Open the folder of a round. Raises CheckpointFileError if it holds another round's."""
    folder = CheckpointFolder.open(path)
    if str(folder.manifest.round) != path.name:
        raise CheckpointFileError(
            f"the checkpoint of round {path.name} in {path}",
            f"that of round {folder.manifest.round}",
            "The folder is removed: a checkpoint lies under its own round.",
        )
    return folder
