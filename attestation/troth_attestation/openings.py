"""The opening set of a sampled trainer: drawn tiles of u_r and of the u before (section 7).

Owns: the bytes of an opening set, its root, and the strict reading of somebody else's.
Never: judges the values, except that they must be finite; `work.py` does the rest.
Next: `work.py`.

An opening set has three parts. First comes the head: version u8, run, round u64, index u16,
previous included round u64, tile count u64. Then comes one record of u_r per drawn tile, ascending,
each tile once. Last come the same records of the u of the previous included round, unless that is
NONE. A record is the tile's number u64, its leaf (16 KiB) and its Merkle path, bottom first. The
number of siblings follows from the tile and the tile count. So head and draw fix the length: about
2 MiB with 64 tiles.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from troth_attestation import bulk, merkle
from troth_attestation.errors import (
    OpeningFieldError,
    OpeningLengthError,
    OpeningNotFiniteError,
    OpeningPathError,
    OpeningRootError,
    OpeningTileError,
)
from troth_attestation.header import Header
from troth_attestation.pieces import Float32
from troth_attestation.sampling import drawn_tiles
from troth_attestation.sizes import TILE_BYTES
from troth_coordinator.rules.ids import (
    NONE,
    Address,
    Digest,
    ParticipantIndex,
    RoundIndex,
)

_HEAD = struct.Struct("<B32sQHQQ")
_HEAD_FIELDS = ("version", "run", "round", "index", "previous_included", "num_tiles")
_TILE_NUMBER = struct.Struct("<Q")
VERSION = 2
PIECE_BYTES = TILE_BYTES
"""Leaves of the openings root: holders can check a transfer piece by piece."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled payload as the chain, the header and the seed describe it.

    `tiles` are those of `sampling.drawn_tiles`, ascending, each once. The residual roots are those
    of the header; `root_before` means nothing if `previous_included` is NONE (zero residual).
    """

    run: Address
    round: RoundIndex
    index: ParticipantIndex
    previous_included: RoundIndex
    num_tiles: int
    tiles: tuple[int, ...]
    root_after: Digest
    root_before: Digest

    @classmethod
    def of(cls, header: Header, seed: bytes, num_tiles: int, count: int) -> "Sampled":
        """Return what a signed header must open under a frozen seed: `count` tiles."""
        return cls(
            run=header.run,
            round=header.round,
            index=header.index,
            previous_included=header.previous_included,
            num_tiles=num_tiles,
            tiles=drawn_tiles(seed, header.index, num_tiles, count),
            root_after=header.residual_after,
            root_before=header.residual_before,
        )

    @property
    def has_previous(self) -> bool:
        """Whether the payload builds on an earlier included round."""
        return self.previous_included != NONE


@dataclass(frozen=True, slots=True)
class Residual:
    """A committed u: fp32 [tiles, 64, 64] and the tree over its tiles."""

    u: Float32
    tree: merkle.Tree


@dataclass(frozen=True, slots=True)
class Openings:
    """Opened tiles that lie under the signed roots; made by `decode` only.

    after, before: float32 [n, 4096] in the order of `tiles`; `before` is zero without a previous
    round.
    """

    tiles: tuple[int, ...]
    after: Float32
    before: Float32

    def parts(self, num_tiles: int) -> Iterator["Openings"]:
        """Yield the same in parts of so many tiles, in order; the last one may be shorter."""
        for first in range(0, len(self.tiles), num_tiles):
            own = slice(first, first + num_tiles)
            yield Openings(self.tiles[own], self.after[own], self.before[own])


def encode(sampled: Sampled, after: Residual, before: Residual | None = None) -> bytes:
    """Return the opening set of a trainer; `before` is required iff there is a previous round.

    Raises OpeningFieldError if it is missing, OpeningPathError where a tree is not the header's.
    """
    parts = [_head(sampled)]
    parts += _records(sampled, after, sampled.root_after)
    if sampled.has_previous:
        if before is None:
            raise OpeningFieldError(
                "residual before",
                f"u of round {sampled.previous_included}",
                "nothing",
                "keep u of the previous included round until the seed is frozen",
            )
        parts += _records(sampled, before, sampled.root_before)
    return b"".join(parts)


def openings_root(data: bytes) -> Digest:
    """Return the Merkle root over the 16 KiB pieces, which `post_openings` records on chain."""
    return merkle.root(merkle.cut(data, PIECE_BYTES))


def check_root(data: bytes, expected: bytes) -> None:
    """Check fetched bytes against the root on chain; OpeningRootError otherwise."""
    found = openings_root(data) if data else "no bytes"
    if found != expected:
        raise OpeningRootError(
            "openings", f"root {expected.hex()}", found, "fetch them from another holder"
        )


def size(sampled: Sampled) -> int:
    """Return the number of bytes of the opening set, which bounds a fetch in advance."""
    return _HEAD.size + sum(_record_sizes(sampled)) * (1 + sampled.has_previous)


def decode(data: bytes, sampled: Sampled) -> Openings:
    """Read an opening set strictly.

    Raises OpeningFieldError, OpeningLengthError, OpeningTileError or OpeningPathError for bytes
    that prove nothing: the openings then count as unavailable. Raises OpeningNotFiniteError for a
    value that the trainer did commit to.
    """
    _check_head(data, sampled)
    roots = [sampled.root_after] + [sampled.root_before] * sampled.has_previous
    sizes = _record_sizes(sampled) * len(roots)
    if len(data) != _HEAD.size + sum(sizes):
        raise OpeningLengthError(
            "openings",
            f"{_HEAD.size + sum(sizes)} bytes",
            f"{len(data)} bytes",
            "fetch them from another holder",
        )
    records = list(_cut(data, sizes))
    hashes = bulk.leaf_hashes(leaf for _, leaf, _ in records)
    num = len(sampled.tiles)
    for which, root in enumerate(roots):
        own = slice(which * num, (which + 1) * num)
        _check_under(root, sampled, records[own], hashes[own])
    values = np.frombuffer(b"".join(leaf for _, leaf, _ in records), "<f4")
    values = values.astype(np.float32, copy=False).reshape(len(roots), num, -1)
    _check_finite(values, sampled.tiles)
    before = values[1] if sampled.has_previous else np.zeros_like(values[0])
    return Openings(sampled.tiles, values[0], before)


def _head(sampled: Sampled) -> bytes:
    return _HEAD.pack(VERSION, *(getattr(sampled, name) for name in _HEAD_FIELDS[1:]))


def _check_head(data: bytes, sampled: Sampled) -> None:
    if len(data) < _HEAD.size:
        raise OpeningLengthError(
            "openings", f"{size(sampled)} bytes", f"{len(data)} bytes", "fetch them again"
        )
    expected = _HEAD.unpack(_head(sampled))
    found = _HEAD.unpack_from(data)
    for name, want, have in zip(_HEAD_FIELDS, expected, found, strict=True):
        if want != have:
            raise OpeningFieldError(f"openings, {name}", str(want), have, "ask for this audit's")


def _records(sampled: Sampled, residual: Residual, root: bytes) -> Iterator[bytes]:
    if residual.tree.root != root or residual.tree.count != sampled.num_tiles:
        raise OpeningPathError(
            "residual",
            f"root {root.hex()} over {sampled.num_tiles} tiles",
            f"{residual.tree.root.hex()} over {residual.tree.count}",
            "open the u that the header was signed for",
        )
    for tile in sampled.tiles:
        yield _TILE_NUMBER.pack(tile)
        yield residual.u[tile].astype("<f4", copy=False).tobytes()
        yield from residual.tree.path(tile).siblings


_Record = tuple[int, memoryview, tuple[bytes, ...]]
"""The number of a tile, its leaf, and the siblings on its path."""


def _cut(data: bytes, sizes: Sequence[int]) -> Iterator[_Record]:
    """Yield the records of these sizes; they fill `data` behind the head."""
    view, at = memoryview(data), _HEAD.size
    for record_bytes in sizes:
        (number,) = _TILE_NUMBER.unpack_from(data, at)
        leaf = at + _TILE_NUMBER.size
        path = leaf + TILE_BYTES
        at += record_bytes
        yield number, view[leaf:path], tuple([data[one : one + 32] for one in range(path, at, 32)])


def _check_under(
    root: bytes, sampled: Sampled, records: Sequence[_Record], hashes: Sequence[Digest]
) -> None:
    """Check that the records are of the drawn tiles, and that their leaves lie under a root."""
    paths = merkle.Verifier(root, sampled.num_tiles)
    for tile, (number, _, siblings), leaf in zip(sampled.tiles, records, hashes, strict=True):
        if number != tile:
            raise OpeningTileError("openings", f"tile {tile}", number, "ask for the drawn tiles")
        if not paths.holds(leaf, tile, siblings):
            raise OpeningPathError(
                f"tile {tile}", f"a leaf under {root.hex()}", "another tree", "ask another holder"
            )


def _check_finite(values: Float32, tiles: tuple[int, ...]) -> None:
    is_finite = np.isfinite(values)
    if not is_finite.all():
        bad = np.argwhere(~is_finite)
        raise OpeningNotFiniteError(
            f"tile {tiles[int(bad[0][1])]}",
            "finite values of u",
            f"{len(bad)} NaN or infinite values",
            "the verdict is mismatch",
        )


def _record_sizes(sampled: Sampled) -> list[int]:
    return [_record_bytes(tile, sampled.num_tiles) for tile in sampled.tiles]


def _record_bytes(tile: int, num_tiles: int) -> int:
    return _TILE_NUMBER.size + TILE_BYTES + 32 * _num_siblings(tile, num_tiles)


def _num_siblings(index: int, count: int) -> int:
    num = 0
    while count > 1:
        num += index ^ 1 < count
        index >>= 1
        count = (count + 1) // 2
    return num
