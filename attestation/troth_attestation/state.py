"""State roots: exact identities of weights and residuals (protocol sections 5.5 and 6).

Owns: the roots over float32 tensors, residual tiles and sequence ids.
Never: changes or rounds a value; an array of another dtype is refused, not converted.
Next: `merkle.py` for the trees, `header.py`, in which the roots are signed.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from itertools import chain

import numpy as np
import numpy.typing as npt

from troth_attestation import merkle
from troth_attestation.errors import TensorError
from troth_attestation.sizes import TILE_BYTES, TILE_SIDE
from troth_coordinator.rules.hashing import H, b32, u8, u64, var
from troth_coordinator.rules.ids import Digest

Float32 = npt.NDArray[np.float32]

CHUNK_BYTES = 65_536
"""A tensor's leaves; the last one may be shorter."""
DTYPE_FP32 = 0


def tensor_root(tensor: Float32, executor: Executor | None = None) -> Digest:
    """Return the Merkle root over the 64 KiB chunks of one float32 tensor (little-endian).

    Raises TensorError for another dtype or no elements.
    """
    return merkle.root(_chunks("tensor", tensor), executor)


def state_root(
    tensors: Mapping[str, Float32],
    round_: int,
    cursor: int,
    config_hash: bytes,
    executor: Executor | None = None,
) -> Digest:
    """Return the state root of the weights on which a round trains.

    `tensors` are the trainable parameters by name, float32, any order, tied ones once under their
    smallest name. `cursor` is the cursor before the round. The threads of `executor` hash all
    chunks of all tensors in one pass. Raises TensorError for another dtype or no elements.
    """
    names = sorted(tensors, key=str.encode)
    chunks = [list(_chunks(name, tensors[name])) for name in names]
    hashes = iter(merkle.leaf_hashes(list(chain.from_iterable(chunks)), executor))
    leaves = [
        _tensor_leaf(name, tensors[name].shape, [next(hashes) for _ in own])
        for name, own in zip(names, chunks, strict=True)
    ]
    return bind_state(merkle.root(leaves), round_, cursor, config_hash)


def bind_state(tensors_root: bytes, round_: int, cursor: int, config_hash: bytes) -> Digest:
    """Return H("troth:state", root over the tensors, round, cursor before it, config hash)."""
    fields = (b32(tensors_root), u64(round_), u64(cursor), b32(config_hash, "config hash"))
    return H("troth:state", *fields)


def residual_tree(u: Float32, executor: Executor | None = None) -> merkle.Tree:
    """Return the Merkle tree over the tiles of u, float32 [tiles, 64, 64], 16 KiB a leaf.

    Raises TensorError for another dtype or shape or no tiles.
    """
    if u.ndim != 3 or u.shape[1:] != (TILE_SIDE, TILE_SIDE):
        raise TensorError("residual", "shape [tiles, 64, 64]", list(u.shape), "pass the tiles of u")
    data = _bytes_of("residual", u)
    return merkle.tree(merkle.cut(data, TILE_BYTES), executor)


def residual_root(u: Float32, executor: Executor | None = None) -> Digest:
    """Return the root of `residual_tree`, which a header names as its residual root after."""
    return residual_tree(u, executor).root


def zero_residual_root(num_tiles: int) -> Digest:
    """Return the residual root of the zero state without hashing every tile."""
    return merkle.root_of([merkle.leaf_hash(bytes(TILE_BYTES))] * num_tiles)


def data_root(sequence_ids: Iterable[int]) -> Digest:
    """Return the Merkle root over the assigned sequence ids; leaf: the id as u64."""
    return merkle.root(u64(sequence) for sequence in sequence_ids)


def _tensor_leaf(name: str, shape: tuple[int, ...], hashes: list[Digest]) -> bytes:
    dims = b"".join(u64(size) for size in shape)
    root = merkle.root_of(hashes)
    return H("troth:tensor", var(name.encode()), u8(DTYPE_FP32), u8(len(shape)), dims, root)


def _chunks(name: str, tensor: Float32) -> Iterator[memoryview]:
    return merkle.cut(_bytes_of(name, tensor), CHUNK_BYTES)


def _bytes_of(name: str, tensor: Float32) -> memoryview:
    """Return the little-endian bytes of an array, without copying if it is contiguous."""
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
