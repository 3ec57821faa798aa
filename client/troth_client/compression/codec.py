"""Signs to payload bytes and back, with every check before use (protocol sections 5.3 and 5.4).

Owns: the bit layout, the canonical form, the Merkle root of a payload, `VerifiedPayload`.
Never: adds a sign to anything; never allocates by a number that a peer sent.
Next: `apply.py`, which takes only what `decode` has made.

A leaf is a little-endian bit stream. Two 12-bit indices are three bytes, so a column of index
pairs is a strided view of the leaves: packing is a few passes over whole arrays.
Shape legend: L leaves of one width, m tiles in each, j = m * k fields, P = pairs of fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from troth_attestation import merkle
from troth_attestation.signs import Bools, Indices, Signs
from troth_attestation.sizes import INDEX_BITS, PAYLOAD_LEAF_BYTES
from troth_client.compression.errors import (
    AbsentTileError,
    DecodedOtherError,
    IndexOrderError,
    PaddingError,
    PayloadLengthError,
    PayloadRootError,
)
from troth_client.compression.limits import num_leaves, tiles_per_leaf

Bytes = npt.NDArray[np.uint8]

_BLOCK_LEAVES = 1024
_INDEX_MASK: Final = (1 << INDEX_BITS) - 1
_MADE_BY_DECODE: Final = object()


class VerifiedPayload:
    """A payload that passed every check of section 5.4; only `decode` can make one.

    `signs` holds canonical signs: indices ascend, absent tiles have zero fields and add nothing.
    `root` is the payload root of the bytes.
    """

    __slots__ = ("root", "signs")

    def __init__(self, signs: Signs, root: bytes, *, seal: object) -> None:
        if seal is not _MADE_BY_DECODE:
            raise TypeError("VerifiedPayload is made by troth_client.compression.codec.decode only")
        self.signs: Final[Signs] = signs
        self.root: Final[bytes] = root

    @property
    def num_tiles(self) -> int:
        """T."""
        return self.signs.num_tiles

    @property
    def k(self) -> int:
        """Coefficients per tile."""
        return self.signs.k


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive leaves with the same number of tiles."""

    leaves: slice
    tiles: slice
    per_leaf: int


def payload_root(data: bytes) -> bytes:
    """Return the Merkle root over the 1024-byte leaves; EmptyTreeError for no bytes."""
    return merkle.root(merkle.cut(data, PAYLOAD_LEAF_BYTES))


def encode(signs: Signs) -> bytes:
    """Pack signs into payload bytes of exactly `payload_length(T, k)`.

    Raises UnsupportedKError. The signs must come from `topk.select`: canonical form is checked by
    `decode`, not here.
    """
    num_tiles, k = signs.num_tiles, signs.k
    leaves = np.zeros((num_leaves(num_tiles, k), PAYLOAD_LEAF_BYTES), np.uint8)
    for span in _spans(num_tiles, k):
        block = leaves[span.leaves]
        fields = (len(block), span.per_leaf * k)
        _or_bits(block, 0, signs.present[span.tiles].reshape(len(block), -1))
        _or_indices(block, span.per_leaf, signs.indices[span.tiles].reshape(fields))
        negative = signs.negative[span.tiles].reshape(fields)
        _or_bits(block, span.per_leaf + INDEX_BITS * fields[1], negative)
    return leaves.tobytes()


def decode(data: bytes, num_tiles: int, k: int, root: bytes | None = None) -> VerifiedPayload:
    """Check payload bytes and unpack them; the only maker of VerifiedPayload.

    The order is length, root if given, then padding, absent tiles and index order of each block of
    leaves. The root comes early because bytes broken on the way are not the sender's fault. Raises
    PayloadLengthError,
    PayloadRootError, PaddingError, AbsentTileError, IndexOrderError, UnsupportedKError.
    """
    length = num_leaves(num_tiles, k) * PAYLOAD_LEAF_BYTES
    if len(data) != length or num_tiles < 1:
        raise PayloadLengthError(
            f"{length} bytes for {num_tiles} tiles with k = {k}",
            f"{len(data)} bytes",
            "Check that sender and receiver use the same model and k.",
        )
    found_root = payload_root(data)
    if root is not None and found_root != root:
        raise PayloadRootError(
            f"payload root {root.hex()}", found_root.hex(), "Fetch it from another holder."
        )
    # Four bytes are read for each index, so the last ones need room behind the leaf.
    leaves = np.zeros((len(data) // PAYLOAD_LEAF_BYTES, PAYLOAD_LEAF_BYTES + 4), np.uint8)
    leaves[:, :PAYLOAD_LEAF_BYTES] = np.frombuffer(data, np.uint8).reshape(-1, PAYLOAD_LEAF_BYTES)
    present = np.empty(num_tiles, np.bool_)
    indices = np.empty((num_tiles, k), np.int16)
    negative = np.empty((num_tiles, k), np.bool_)
    for span in _spans(num_tiles, k):
        fields = _unpack(leaves[span.leaves], span.per_leaf, k)
        _check_canonical(*fields, first_tile=span.tiles.start)
        present[span.tiles], indices[span.tiles], negative[span.tiles] = fields
    return VerifiedPayload(Signs(present, indices, negative), found_root, seal=_MADE_BY_DECODE)


def check_decoded(data: bytes, signs: Signs) -> VerifiedPayload:
    """Decode our own payload as everybody will, and check that it says what was encoded.

    Raises MalformedPayloadError, or DecodedOtherError if the decoded signs are others.
    """
    found = decode(data, signs.num_tiles, signs.k)
    pairs = [(getattr(found.signs, name), getattr(signs, name)) for name in Signs.__slots__]
    if not all(np.array_equal(one, other) for one, other in pairs):
        raise DecodedOtherError(
            "the signs that were encoded",
            "others after decoding",
            "Check this machine's memory; this round sends no payload.",
        )
    return found


def _spans(num_tiles: int, k: int) -> Iterator[_Span]:
    """Cut the payload into blocks of full leaves and, if one is left, the partly filled leaf."""
    per_leaf = tiles_per_leaf(k)
    full = num_tiles // per_leaf
    for first in range(0, full, _BLOCK_LEAVES):
        end = min(first + _BLOCK_LEAVES, full)
        yield _Span(slice(first, end), slice(first * per_leaf, end * per_leaf), per_leaf)
    if num_tiles % per_leaf:
        tiles = slice(full * per_leaf, num_tiles)
        yield _Span(slice(full, full + 1), tiles, num_tiles % per_leaf)


def _or_bits(leaves: Bytes, offset: int, bits: Bools) -> None:
    """Set bits [L, n] from bit `offset` of each leaf on."""
    first, shift = divmod(offset, 8)
    packed = np.packbits(np.pad(bits, ((0, 0), (shift, 0))), axis=1, bitorder="little")
    leaves[:, first : first + packed.shape[1]] |= packed


def _or_indices(leaves: Bytes, offset: int, indices: Indices) -> None:
    """Set 12-bit indices [L, j] from bit `offset` of each leaf on."""
    first, shift = divmod(offset, 8)
    words = indices[:, 0::2].astype(np.uint32)
    words[:, : indices.shape[1] // 2] |= indices[:, 1::2].astype(np.uint32) << INDEX_BITS
    words <<= shift  # at most 7: 31 bits in all
    split = words.astype("<u4", copy=False).view(np.uint8).reshape(len(leaves), -1, 4)
    # The signs behind the indices leave room for the carry of the last pair.
    end = first + 3 * split.shape[1]
    leaves[:, first:end] |= split[:, :, :3].reshape(len(leaves), -1)
    leaves[:, first + 3 : end + 1 : 3] |= split[:, :, 3]


def _unpack(leaves: Bytes, per_leaf: int, k: int) -> tuple[Bools, Indices, Bools]:
    """Return present [n], indices [n, k], negative [n, k] of all tiles of padded leaves."""
    fields = per_leaf * k
    signs_at = per_leaf + INDEX_BITS * fields
    first, shift = divmod(signs_at, 8)
    present = np.unpackbits(leaves, axis=1, count=per_leaf, bitorder="little")
    rest = np.unpackbits(leaves[:, first:], axis=1, bitorder="little")[:, shift:]
    if rest[:, fields:].any():
        raise PaddingError(
            "zero bits behind the last field of every leaf",
            "bits that are set",
            "The sender's client is broken or lies.",
        )
    indices = _read_indices(leaves, per_leaf, fields)
    return (
        present.view(np.bool_).reshape(-1),
        indices.reshape(-1, k),
        rest[:, :fields].view(np.bool_).reshape(-1, k),
    )


def _read_indices(leaves: Bytes, offset: int, fields: int) -> Indices:
    """Read 12-bit indices [L, j] from bit `offset` of each padded leaf on."""
    indices = np.empty((len(leaves), fields), np.int16)
    for parity in range(min(2, fields)):
        first, shift = divmod(offset + parity * INDEX_BITS, 8)
        column = indices[:, parity::2]
        words: npt.NDArray[np.uint32] = np.ndarray(
            column.shape, "<u4", leaves, first, (leaves.strides[0], 3)
        )
        column[...] = (words >> shift) & _INDEX_MASK
    return indices


def _check_canonical(present: Bools, indices: Indices, negative: Bools, first_tile: int) -> None:
    dirty = ~present & (indices.any(axis=1) | negative.any(axis=1))
    if dirty.any():
        raise AbsentTileError(
            "zero fields in absent tiles",
            f"bits in tile {first_tile + int(dirty.argmax())}",
            "The sender's client is broken or lies.",
        )
    wrong = present & (indices[:, 1:] <= indices[:, :-1]).any(axis=1)
    if wrong.any():
        tile = int(wrong.argmax())
        raise IndexOrderError(
            "strictly ascending indices in each tile",
            f"{indices[tile].tolist()} in tile {first_tile + tile}",
            "The sender's client is broken or lies.",
        )
