"""The weights of a run as an auditor replays them: one state, and a copy of the stored one.

Owns: first weights, the step from round to round, the state root, states taken up piece by piece.
Never: believes a piece that is not under a root that the caller names.
Next: `compression/apply.py` for the step; `troth_audit/replay/ports.py`, whose port this fills.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from troth_attestation.errors import PieceListError
from troth_attestation.pieces import (
    FP32_BYTES,
    Float32,
    Piece,
    PieceList,
    StateName,
    bytes_of,
    in_order,
    list_bytes,
    pieces_of,
)
from troth_client.compression import codec
from troth_client.compression.apply import update
from troth_client.compression.codec import VerifiedPayload
from troth_client.compression.errors import MalformedPayloadError
from troth_client.compression.kernels.choice import has_compiled
from troth_client.compression.known_answer import COMPILED_FROM_TILES, ApplyPath, choose_path
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.init import initial_weights
from troth_client.model.shapes import trainable_shapes
from troth_client.runtime.files import atomic_write
from troth_coordinator.rules.assignment import next_cursor
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest
from troth_coordinator.rules.schedule import constants_of

SUFFIX = ".weights"
WEIGHTS_NAME = re.compile(r"[0-9a-f]{64}" + re.escape(SUFFIX))
"""The name of a state; `yolo.weights` in the same folder is somebody's own."""
MANY_ROUNDS, SOME_ROUNDS = 300, 100
"""Replays that are worth compiling kernels, and loading compiled ones, however small the model."""


class Pieces(Protocol):
    """Where piece lists and pieces may be had; pieces have their address."""

    def get(
        self,
        kind: str,
        key: bytes,
        most_bytes: int,
        is_right: Callable[[bytes], bool] | None = None,
    ) -> bytes | None:
        """Return bytes that are right, None where nobody has them."""
        ...


def replay_path(config: RunConfig, num_rounds: int) -> ApplyPath:
    """Return the way to apply so many rounds: compiled kernels are worth their start for many."""
    num_tiles = TileLayout.from_shapes(trainable_shapes(config.model)).num_tiles
    is_long = num_rounds >= (SOME_ROUNDS if has_compiled() else MANY_ROUNDS)
    return choose_path("cpu", num_tiles=max(num_tiles, COMPILED_FROM_TILES if is_long else 0))


class AuditedWeights:
    """Weights at the start of `round`; fp32 on the CPU, changed in place."""

    def __init__(
        self,
        run: bytes,
        config: RunConfig,
        pieces: Pieces,
        hashers: Executor | None = None,
        *,
        path: ApplyPath | None = None,
        folder: Path | None = None,
    ) -> None:
        """Make room for the weights; `take_up` fills it, from `folder` first.

        `hashers` are threads for the root, `path` is that of `replay_path` for a short run.
        """
        self._run, self._config, self._pieces = run, config, pieces
        self._hashers = hashers
        self._config_hash = config.config_hash()
        self._shapes = trainable_shapes(config.model)
        self.layout = TileLayout.from_shapes(self._shapes)
        self._path = path or replay_path(config, 0)
        self._weights = {name: torch.zeros(shape) for name, shape in self._shapes.items()}
        self._folder = folder
        self._whole: set[Path] = set()
        """The files that this process has written, or read to the end under their root."""
        self._kept: Mapping[str, Tensor] | None = None
        self._kept_root: Digest | None = None
        self._root: Digest | None = None
        self.round = 0
        self.cursor = 0

    @property
    def payload_bytes(self) -> int:
        """The length of every payload of the run."""
        return payload_length(self.layout.num_tiles, self._config.demo.k)

    def decode(self, payload: bytes, root: bytes) -> VerifiedPayload | str:
        """Return a payload in canonical form, else what is wrong with it. For threads, too."""
        try:
            return codec.decode(payload, self.layout.num_tiles, self._config.demo.k, root)
        except MalformedPayloadError as error:
            return error.found

    def apply(self, num_trainers: int, payloads: Sequence[VerifiedPayload | None]) -> None:
        """Go to the next round; see `compression.apply.update`."""
        constants = constants_of(self._config.schedule, self.round)
        update(self._weights, payloads, self.layout, (constants.a, constants.b), self._path)
        per_payload = self._config.train.sequences_per_payload
        self._move(self.round + 1, next_cursor(self.cursor, num_trainers, per_payload))

    def root(self) -> Digest:
        """Return the state root; hashed once for each state."""
        if self._root is None:
            name = StateName(self.round, self.cursor, self._config_hash)
            self._root = pieces_of(self.arrays(), name, self._hashers).root
        return self._root

    def arrays(self) -> dict[str, Float32]:
        """Return the weights; they share the memory."""
        return {name: w.numpy() for name, w in self._weights.items()}

    def remember(self) -> None:
        """Keep a copy of this state in place of the one before."""
        if self._kept is None:
            self._kept = {name: torch.empty_like(w) for name, w in self._weights.items()}
        for name, w in self._weights.items():
            self._kept[name].copy_(w)
        self._kept_root = self.root()

    def recall(self, round_: int, cursor: int, root: bytes) -> bool:
        """Take the kept copy for the weights of a round, if it had this root when it was kept."""
        if self._kept is None or self._kept_root != root:
            return False
        self._load({name: w.numpy() for name, w in self._kept.items()})
        self._move(round_, cursor)
        return True

    def take_up(self, round_: int, cursor: int, root: bytes) -> bool:
        """Take the state with this root: drawn for round 0, else piece by piece.

        Drawn weights are taken whatever their root is: the caller compares it.
        """
        if (self.round, self.cursor, self._root) == (round_, cursor, root):
            return True
        state = StateName(round_, cursor, self._config_hash)
        saved = self._saved(state, root)
        if saved is not None:
            self._load(saved)
        elif round_ == 0 and not self._config.has_given_start:
            self._load(initial_weights(self._run, self._config.model))
        else:
            found = self._fetched(state, root)
            if found is None:
                return False
            self._load(found)
        self._move(round_, cursor)
        return True

    def save(self) -> None:
        """Write this state and the kept one to the folder; forget all others there.

        A file of an earlier process that was not read may be torn: it is written anew. Raises
        OSError, DiskFullError; what was there before is still there then.
        """
        if self._folder is None:
            return
        wanted = {self.root(): self._weights}
        if self._kept is not None and self._kept_root is not None:
            wanted[self._kept_root] = dict(self._kept)
        for root, weights in wanted.items():
            path = self._file(self._folder, root)
            if path not in self._whole:
                chunks = (bytes_of(name, weights[name].numpy()) for name in in_order(weights))
                atomic_write(path, chunks, durable=False)
                self._whole.add(path)

    def forget_others(self, stored: bytes | None) -> None:
        """Remove the states that `save` did not just write; call it when they are not needed.

        That of the root `stored` stays: an earlier process may have written it, and a restart of
        the run takes it up.
        """
        if self._folder is not None:
            roots = (self._root, self._kept_root, stored)
            names = {self._file(self._folder, root) for root in roots if root}
            for path in self._folder.glob("*" + SUFFIX):
                is_ours = WEIGHTS_NAME.fullmatch(path.name) and not path.is_dir()
                if is_ours and path not in names:
                    path.unlink(missing_ok=True)
            self._whole &= names

    def _saved(self, state: StateName, root: bytes) -> dict[str, Float32] | None:
        """Return a state from the folder, if it is there and has this root."""
        path = None if self._folder is None else self._file(self._folder, root)
        if path is None or not path.is_file():
            return None
        found = {name: np.empty(shape, np.float32) for name, shape in self._shapes.items()}
        with path.open("rb") as stream:
            for name in in_order(found):
                if stream.readinto(bytes_of(name, found[name])) != found[name].nbytes:
                    return None
        if pieces_of(found, state, self._hashers).root != root:
            return None
        self._whole.add(path)
        return found

    def _file(self, folder: Path, root: bytes) -> Path:
        return folder / (root.hex() + SUFFIX)

    def _fetched(self, state: StateName, root: bytes) -> dict[str, Float32] | None:
        def is_right(data: bytes) -> bool:
            try:
                return PieceList.decode(data, self._shapes, state).root == root
            except PieceListError:
                return False

        data = self._pieces.get("pieces", root, list_bytes(self._shapes), is_right)
        if data is None:
            return None
        listed = PieceList.decode(data, self._shapes, state)
        found = {name: np.empty(shape, np.float32) for name, shape in self._shapes.items()}
        whole = all(self._fill(found[piece.tensor], piece) for piece in listed.pieces())
        return found if whole else None

    def _fill(self, tensor: Float32, piece: Piece) -> bool:
        data = self._pieces.get("piece", piece.hash, piece.num_bytes)
        if data is None or len(data) != piece.num_bytes:
            return False
        first = piece.offset // FP32_BYTES
        values = np.frombuffer(data, "<f4")
        tensor.reshape(-1)[first : first + len(values)] = values
        return True

    def _load(self, arrays: Mapping[str, Float32]) -> None:
        for name, w in self._weights.items():
            w.numpy()[...] = arrays[name]

    def _move(self, round_: int, cursor: int) -> None:
        self.round, self.cursor, self._root = round_, cursor, None
