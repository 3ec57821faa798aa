"""The pieces of a state: what the weights of one round consist of, piece by piece, under its root.

Owns: the piece list of a state, the state root as its fold, and the hash of one piece.
Never: trusts a list: `decode` builds one, and the caller compares its `root` with the chain's.
Next: `state.py` for the root alone; `troth_client/checkpoint/` moves pieces between machines.

A tensor is hashed in chunks of 64 KiB (protocol section 6). A piece is 16 aligned chunks of one
tensor, 1 MiB; the last one of a tensor may be shorter. Its hash is the Merkle node above its
chunks. So the hashes of all pieces give the state root, and each piece can be checked by itself.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from troth_attestation import bulk, merkle
from troth_attestation.errors import PieceListError, TensorError
from troth_coordinator.rules.hashing import H, b32, u8, u64, var
from troth_coordinator.rules.ids import Digest

Float32 = npt.NDArray[np.float32]
Shape = tuple[int, ...]

CHUNK_BYTES = 65_536
"""A tensor's leaves; the last one may be shorter."""
PIECE_CHUNKS = 16
PIECE_BYTES = PIECE_CHUNKS * CHUNK_BYTES
DIGEST_BYTES = 32
DTYPE_FP32 = 0
FP32_BYTES = 4


@dataclass(frozen=True, slots=True)
class StateName:
    """Everything that a state root binds beside the tensors.

    `cursor` is the cursor before `round`, the round that trains on these weights.
    """

    round: int
    cursor: int
    config_hash: bytes

    def bind(self, tensors_root: bytes) -> Digest:
        """Return H("troth:state", root over the tensors, round, cursor, config hash)."""
        config_hash = b32(self.config_hash, "config hash")
        return H("troth:state", b32(tensors_root), u64(self.round), u64(self.cursor), config_hash)


@dataclass(frozen=True, slots=True)
class Piece:
    """At most 1 MiB of one tensor: its place in the little-endian bytes, and its hash."""

    tensor: str
    offset: int
    num_bytes: int
    hash: Digest


@dataclass(frozen=True, slots=True)
class TensorPieces:
    """One float32 tensor by name and shape, with the hashes of its pieces in order."""

    name: str
    shape: Shape
    hashes: tuple[Digest, ...]

    @property
    def num_bytes(self) -> int:
        """The bytes of the whole tensor."""
        return tensor_bytes(self.shape)

    @property
    def digest(self) -> Digest:
        """H("troth:tensor", name, dtype u8, rank u8, dims u64..., Merkle root of its chunks)."""
        num_chunks = -(-self.num_bytes // CHUNK_BYTES)
        dims = b"".join(u64(size) for size in self.shape)
        root = merkle.root_above(self.hashes, num_chunks)
        name = var(self.name.encode())
        return H("troth:tensor", name, u8(DTYPE_FP32), u8(len(self.shape)), dims, root)

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces in order."""
        for at, hash_ in enumerate(self.hashes):
            offset = at * PIECE_BYTES
            yield Piece(self.name, offset, min(PIECE_BYTES, self.num_bytes - offset), hash_)


@dataclass(frozen=True)
class PieceList:
    """All pieces of one state, tensors in canonical order (names sorted as UTF-8 bytes)."""

    state: StateName
    tensors: tuple[TensorPieces, ...]

    @cached_property
    def root(self) -> Digest:
        """The state root that these pieces have, and no others."""
        return self.state.bind(merkle.root(tensor.digest for tensor in self.tensors))

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each tensor by name."""
        return {tensor.name: tensor.shape for tensor in self.tensors}

    @property
    def num_bytes(self) -> int:
        """The bytes of all tensors."""
        return sum(tensor.num_bytes for tensor in self.tensors)

    def pieces(self) -> Iterator[Piece]:
        """Yield all pieces in canonical order."""
        for tensor in self.tensors:
            yield from tensor.pieces()

    def encode(self) -> bytes:
        """Return the hashes of all pieces, end to end: `list_bytes` bytes."""
        return b"".join(hash_ for tensor in self.tensors for hash_ in tensor.hashes)

    @classmethod
    def decode(cls, data: bytes, shapes: Mapping[str, Shape], state: StateName) -> "PieceList":
        """Inverse of `encode` for tensors of these shapes. Raises PieceListError for a length."""
        wanted = list_bytes(shapes)
        if len(data) != wanted:
            raise PieceListError(
                "piece list", f"{wanted} bytes", len(data), "ask another holder for it"
            )
        hashes = iter(
            [Digest(data[at : at + DIGEST_BYTES]) for at in range(0, wanted, DIGEST_BYTES)]
        )
        tensors = (
            TensorPieces(name, shapes[name], tuple(next(hashes) for _ in range(count)))
            for name, count in ((name, num_pieces(shapes[name])) for name in in_order(shapes))
        )
        return cls(state, tuple(tensors))


def pieces_of(
    tensors: Mapping[str, Float32], state: StateName, executor: Executor | None = None
) -> PieceList:
    """Return the piece list of weights, which is also the way to their state root.

    `tensors` are the trainable parameters by name, float32, any order, tied ones once under their
    smallest name. Each is asked for in order, and may be made or copied only then: the threads of
    `executor` hash the chunks of earlier ones meanwhile. Raises TensorError for another dtype or no
    elements.
    """
    names = in_order(tensors)
    every = (chunk for name in names for chunk in _chunks(name, tensors[name]))
    hashes = bulk.leaf_hashes(every, executor)
    return pieces_over(hashes, {name: tensors[name].shape for name in names}, state)


def pieces_over(
    hashes: Iterable[Digest], shapes: Mapping[str, Shape], state: StateName
) -> PieceList:
    """Return the piece list over the leaf hashes of all tensors, which come in canonical order."""
    source = iter(hashes)

    def of(name: str) -> TensorPieces:
        own = list(islice(source, -(-tensor_bytes(shapes[name]) // CHUNK_BYTES)))
        cut = range(0, len(own), PIECE_CHUNKS)
        folded = tuple(merkle.top_of(own[at : at + PIECE_CHUNKS]) for at in cut)
        return TensorPieces(name, shapes[name], folded)

    return PieceList(state, tuple(of(name) for name in in_order(shapes)))


def piece_hash(data: merkle.Leaf) -> Digest:
    """Return the hash of the bytes of one piece, which are not empty."""
    return merkle.top_of(bulk.leaf_hashes(merkle.cut(data, CHUNK_BYTES)))


def in_order(named: Mapping[str, object]) -> list[str]:
    """Return the names in canonical order."""
    return sorted(named, key=str.encode)


def tensor_bytes(shape: Shape) -> int:
    """Return the bytes of a float32 tensor."""
    return FP32_BYTES * math.prod(shape)


def num_pieces(shape: Shape) -> int:
    """Return the number of pieces of a float32 tensor."""
    return -(-tensor_bytes(shape) // PIECE_BYTES)


def list_bytes(shapes: Mapping[str, Shape]) -> int:
    """Return the length of the encoded piece list of tensors of these shapes."""
    return DIGEST_BYTES * sum(map(num_pieces, shapes.values()))


def bytes_of(name: str, tensor: Float32) -> memoryview:
    """Return the little-endian bytes of an array, without copying if it is contiguous.

    Raises TensorError for another dtype or no elements.
    """
    if tensor.dtype != np.float32 or tensor.size == 0:
        raise TensorError(
            f"tensor {name!r}",
            "float32 with at least one element",
            f"{tensor.dtype} {list(tensor.shape)}",
            "keep fp32 master weights and leave empty tensors out",
        )
    if sys.byteorder == "big":  # pragma: no cover  no such machine in CI
        tensor = tensor.astype("<f4")
    return np.ascontiguousarray(tensor).reshape(-1).data.cast("B")


def _chunks(name: str, tensor: Float32) -> Iterator[memoryview]:
    return merkle.cut(bytes_of(name, tensor), CHUNK_BYTES)
