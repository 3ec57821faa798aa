"""Sequences out of pieces of shards by their hash, for a reader that lacks the data folder.

Owns: which pieces a sequence lies in, and a few pieces in memory.
Never: believes bytes: whoever returns them has held them against their hash.
Next: `shards.py`, the same out of a folder; `transport/sources.py` for the bytes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from troth_client.data.errors import PieceMissingError
from troth_client.data.manifest import PIECE_BYTES, Manifest, ShardEntry
from troth_client.data.places import Places
from troth_client.data.shards import check_tokens

MOST_KEPT: Final = 64
"""Pieces of 1 MiB that stay in memory."""


class Pieces(Protocol):
    """Where pieces may be had; the bytes have their address."""

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        """Return bytes with this address, None where nobody has them."""
        ...


class PieceData:
    """The sequences to train on, fetched piece by piece."""

    def __init__(self, manifest: Manifest, pieces: Pieces) -> None:
        self._manifest, self._pieces = manifest, pieces
        self._places = Places(manifest, "train")
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def sequences(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Return the tokens of these sequences, int64 [len(ids), sequence_tokens + 1].

        Raises SequenceIdError; PieceMissingError where nobody has a piece; ShardTokenError.
        """
        rows = [self._row(sequence) for sequence in ids]
        return np.stack(rows) if rows else np.empty((0, self._manifest.row_tokens), np.int64)

    def _row(self, sequence: int) -> NDArray[np.int64]:
        manifest = self._manifest
        shard, row = self._places.find(sequence)
        entry, width = manifest.train[shard], manifest.row_tokens * manifest.token_bytes
        begin, end = row * width, (row + 1) * width
        first, last = begin // PIECE_BYTES, (end - 1) // PIECE_BYTES
        data = b"".join(self._piece(entry, number) for number in range(first, last + 1))
        start = begin - first * PIECE_BYTES
        tokens = np.frombuffer(data[start : start + width], f"<u{manifest.token_bytes}")
        check_tokens(tokens, manifest, Path(entry.file))
        return tokens.astype(np.int64)

    def _piece(self, entry: ShardEntry, number: int) -> bytes:
        name = entry.pieces[number]
        if name not in self._kept:
            size = min(PIECE_BYTES, self._manifest.num_bytes(entry) - number * PIECE_BYTES)
            data = self._pieces.get("piece", bytes.fromhex(name), size)
            if data is None or len(data) != size:
                raise PieceMissingError(
                    f"piece {number} of {entry.file} in one of the sources",
                    "it is in none",
                    "Name the data folder, or somebody who holds the run's data.",
                )
            self._kept[name] = data
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return self._kept[name]
