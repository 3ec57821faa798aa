"""The weights that a hub keeps: piece lists and pieces of the newest checkpoints, in a folder.

Owns: one file for each list, under its round and cursor, and one for each piece, under its hash.
Never: takes a list whose root is not the chain's newest, a piece that no list names, or a byte of
weights that are larger than the bound. Needs no torch.
Next: `follow.py`, which says what is newest; `run_files/files.py`, whose config says the shapes.
"""

import contextlib
import re
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from troth_attestation.committed import CommittedState
from troth_attestation.errors import PieceListError
from troth_attestation.pieces import (
    PieceList,
    Shape,
    StateName,
    list_bytes,
    piece_hash,
    tensor_bytes,
)
from troth_client.model.shapes import trainable_shapes
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import KeptFiles
from troth_client.runtime.files import atomic_write, remove_temporaries
from troth_client.transport.base import BlobKind
from troth_client.transport.errors import BlobRefusedError

MOST_STATES = 2
"""The newest, and the one before while there is room: a newcomer may still be fetching that."""
_LIST = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
_HASH = re.compile(r"[0-9a-f]{64}")
_OURS = re.compile(f"{_LIST.pattern}|{_HASH.pattern}")
"""The names of all files here: a user may have named a folder with others."""


class KeptStates:
    """The weights of the newest checkpoints; see `transport.base.ShownFiles`."""

    def __init__(self, folder: Path, files: KeptFiles, config_hash: bytes, max_bytes: int) -> None:
        """Show what lies in the folder, and remove what is of no use. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        remove_temporaries(folder, _OURS)
        self._folder = folder
        self._files = files
        self._config_hash = config_hash
        self._max_bytes = max_bytes
        self._accepting = threading.Lock()
        self._known_shapes: Mapping[str, Shape] = {}
        self._wanted: CommittedState | None = None
        self._lists: tuple[PieceList, ...] = ()
        self._sizes: dict[bytes, int] = {}
        self._here: set[bytes] = set()
        found = sorted(self._found_lists(), key=lambda one: one.state.round, reverse=True)
        self._show(found[: self._most()])

    @property
    def num_pieces(self) -> int:
        """How many pieces lie here."""
        return len(self._here)

    def want(self, newest: CommittedState) -> None:
        """Accept the list of this state from now on."""
        self._wanted = newest

    def shown(self, kind: BlobKind, key: bytes) -> bytes | None:
        """Return a list by its root, or a piece by its hash, checked."""
        if kind is BlobKind.PIECES:
            return next((one.encode() for one in self._lists if one.root == key), None)
        if key not in self._here:
            return None
        with contextlib.suppress(OSError):
            data = self._path(key).read_bytes()
            if data and piece_hash(data) == key:
                return data
        self._here.discard(key)  # the disk spoilt it: whoever offers it again is welcome
        return None

    def has(self, kind: BlobKind, key: bytes) -> bool:
        """Return whether a list or a piece is here, without reading it."""
        if kind is BlobKind.PIECES:
            return any(one.root == key for one in self._lists)
        return key in self._here

    def welcome(self, kind: BlobKind, key: bytes) -> Collection[int]:
        """Return the size of the newest list, or of a piece that a list names, if it lacks here."""
        if self.has(kind, key):
            return ()
        if kind is BlobKind.PIECE:
            return {self._sizes[key]} if key in self._sizes else ()
        is_newest = self._wanted is not None and key == self._wanted.root
        return {list_bytes(self._shapes())} if is_newest and self._most() else ()

    def accept(self, kind: BlobKind, key: bytes, data: bytes) -> None:
        """Keep a list or a piece that has this key; see `ShownFiles.accept`."""
        with self._accepting:
            wanted = self._wanted
            if len(data) not in self.welcome(kind, key) or wanted is None:
                return  # another one was faster, or the chain has moved on
            if kind is BlobKind.PIECE:
                atomic_write(self._path(key), [data], durable=False)
                self._here.add(key)
                return
            try:
                found = wanted.check_pieces(data, self._shapes())
            except PieceListError as error:
                raise BlobRefusedError(error.expected, error.found, error.next_step) from error
            atomic_write(self._folder / _list_name(found), [data], durable=False)
            older = [one for one in self._lists if one.state.round != found.state.round]
            self._show([found, *older][: self._most()])

    def _show(self, lists: Iterable[PieceList]) -> None:
        """Show these lists and their pieces, newest first; remove all other ones."""
        self._lists = tuple(lists)
        self._sizes = {p.hash: p.num_bytes for one in self._lists for p in one.pieces()}
        names = set(map(_list_name, self._lists))
        here = set()
        for path in self._folder.iterdir():
            if not _OURS.fullmatch(path.name) or not path.is_file():
                continue
            key = bytes.fromhex(path.name) if _HASH.fullmatch(path.name) else b""
            if self._sizes.get(key) == path.stat().st_size:
                here.add(key)
            elif path.name not in names:
                path.unlink()
        self._here = here

    def _found_lists(self) -> Iterable[PieceList]:
        """Yield the lists in the folder; without the config of the run none can be read."""
        for path in self._folder.iterdir():
            name = _LIST.fullmatch(path.name)
            if name is not None:
                state = StateName(int(name[1]), int(name[2]), self._config_hash)
                with contextlib.suppress(PieceListError):
                    yield PieceList.decode(path.read_bytes(), self._shapes(), state)

    def _most(self) -> int:
        """Return how many states there is room for; 0 while the shapes are not known."""
        shapes = self._shapes()
        size = sum(map(tensor_bytes, shapes.values())) + list_bytes(shapes)
        return min(MOST_STATES, self._max_bytes // size) if size else 0

    def _shapes(self) -> Mapping[str, Shape]:
        """Return the shapes of the run's tensors, once somebody has pushed its config."""
        config = None
        if not self._known_shapes:
            config = self._files.shown(BlobKind.CONFIG, self._config_hash)
        if config is not None:
            with contextlib.suppress(RunFileError):  # of another version of troth
                self._known_shapes = trainable_shapes(parse_config(config).model)
        return self._known_shapes

    def _path(self, hash_: bytes) -> Path:
        return self._folder / hash_.hex()


def _list_name(pieces: PieceList) -> str:
    """Return the name of a list's file, which tells what its root binds beside the tensors."""
    return f"{pieces.state.round}-{pieces.state.cursor}"
