"""Sequences out of memory-mapped shards, none of them before its shard is hash-checked.

Owns: sequence id -> tokens, and the checks of files against the manifest. Never: writes, tokenises,
or chooses ids. Next: train/step.py turns a batch of sequences into a gradient.

A shard is checked at first use: size and pieces. Each later access compares the file's identity,
size and times with those at the check. When they differ, the shard is checked again. No participant
trains on a file that was replaced or changed during the run.

A hash proves bytes, and no range: the tokens of each sequence are compared with the vocabulary. So
a creator that hides one token too large costs the rounds with that sequence, and no others.
"""

import mmap
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from troth_attestation.pieces import piece_hash
from troth_client.data.errors import (
    ShardContentError,
    ShardError,
    ShardMissingError,
    ShardSizeError,
    ShardTokenError,
)
from troth_client.data.manifest import PIECE_BYTES, Manifest, ShardEntry, Split
from troth_client.data.places import Places
from troth_client.runtime.files import Closable, Mark

_CHECK_TOKENS = 1 << 22


class _Mapped(NamedTuple):
    mark: Mark
    rows: NDArray[np.unsignedinteger]


class TokenData(Closable):
    """One split of a prepared data set, as sequences. Not thread-safe on first use of a shard."""

    def __init__(self, folder: Path, manifest: Manifest, split: Split = "train") -> None:
        self.manifest = manifest
        self.split = split
        self._folder = folder
        self._entries = manifest.shards(split)
        self._places = Places(manifest, split)
        self._mapped: dict[int, _Mapped] = {}

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._places)

    def sequences(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Tokens of the given sequences, int64 [len(ids), sequence_tokens + 1], in that order.

        Raises SequenceIdError, ShardMissingError, ShardSizeError, ShardContentError or
        ShardTokenError; each names the file. Nothing of an unchecked shard is returned.
        """
        out = np.empty((len(ids), self.manifest.row_tokens), np.int64)
        for place, sequence in enumerate(ids):
            shard, row = self._places.find(sequence)
            tokens = self._rows(shard)[row]
            check_tokens(tokens, self.manifest, self._folder / self._entries[shard].file)
            out[place] = tokens
        return out

    def faults(
        self, report: Callable[[int, int], None], shards: Collection[ShardEntry] | None = None
    ) -> list[ShardError]:
        """Check all tokens of every shard, or of these, and return what is wrong.

        `report` gets how many shards are done, and how many there are.
        """
        names = {one.file for one in (self._entries if shards is None else shards)}
        chosen = [at for at, one in enumerate(self._entries) if one.file in names]
        found = []
        for number, shard in enumerate(chosen, start=1):
            try:
                self._check_range(shard)
            except ShardError as error:
                found.append(error)
            report(number, len(chosen))
        return found

    def close(self) -> None:
        """Drop the memory maps."""
        self._mapped.clear()

    def _rows(self, shard: int) -> NDArray[np.unsignedinteger]:
        """Return the shard as checked rows [num rows, sequence_tokens + 1]."""
        entry = self._entries[shard]
        path = self._folder / entry.file
        known = self._mapped.get(shard)
        if known is not None and known.mark == _mark(path, entry):
            return known.rows
        self._mapped.pop(shard, None)
        self._mapped[shard] = mapped = self._check(path, entry)
        return mapped.rows

    def _check(self, path: Path, entry: ShardEntry) -> _Mapped:
        mark = _mark(path, entry)
        expected_size = self.manifest.num_bytes(entry)
        if mark.size != expected_size:
            raise ShardSizeError(path, f"{expected_size} bytes", f"{mark.size} bytes")
        with path.open("rb") as stream:
            for number, wanted in enumerate(entry.pieces):
                found = piece_hash(stream.read(PIECE_BYTES)).hex()
                if found != wanted:
                    raise ShardContentError(path, f"the hash {wanted} of piece {number}", found)
            # The map keeps the very file that was hashed, even if its name is reused later.
            memory = mmap.mmap(stream.fileno(), expected_size, access=mmap.ACCESS_READ)
            if Mark.of(os.fstat(stream.fileno())) != mark:
                raise ShardContentError(path, "unchanging content", "a change during the check")
        tokens = np.frombuffer(memory, np.dtype(f"<u{self.manifest.token_bytes}"))
        return _Mapped(mark, tokens.reshape(-1, self.manifest.row_tokens))

    def _check_range(self, shard: int) -> None:
        """Check a shard, and compare all its tokens with the vocabulary."""
        tokens, path = self._rows(shard).reshape(-1), self._folder / self._entries[shard].file
        for start in range(0, len(tokens), _CHECK_TOKENS):
            check_tokens(tokens[start : start + _CHECK_TOKENS], self.manifest, path)


def check_tokens(tokens: NDArray[np.unsignedinteger], manifest: Manifest, path: Path) -> None:
    """Raise ShardTokenError unless all of these tokens of a shard are in the vocabulary."""
    largest = int(tokens.max())
    if largest >= manifest.vocab_size:
        raise ShardTokenError(path, f"tokens below {manifest.vocab_size}", f"token {largest}")


def _mark(path: Path, entry: ShardEntry) -> Mark:
    try:
        return Mark.of(path.stat())
    except OSError as error:
        reason = (error.strerror or "an unreadable file").lower()
        raise ShardMissingError(path, f"{entry.tokens} tokens", reason) from error
