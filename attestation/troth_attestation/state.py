"""State roots: exact identities of weights and residuals (protocol sections 5.5 and 6).

Owns: the roots over float32 tensors, residual tiles and sequence ids.
Never: changes or rounds a value; an array of another dtype is refused, not converted.
Next: `pieces.py` for the parts of a state; `header.py`, in which the roots are signed.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor

from troth_attestation import bulk, merkle
from troth_attestation.errors import TensorError
from troth_attestation.pieces import CHUNK_BYTES, Float32, StateName, bytes_of, pieces_of
from troth_attestation.sizes import TILE_BYTES, TILE_SIDE
from troth_coordinator.rules.hashing import u64
from troth_coordinator.rules.ids import Digest


def tensor_root(tensor: Float32, executor: Executor | None = None) -> Digest:
    """Return the Merkle root over the 64 KiB chunks of one float32 tensor (little-endian).

    Raises TensorError for another dtype or no elements.
    """
    chunks = merkle.cut(bytes_of("tensor", tensor), CHUNK_BYTES)
    return merkle.root_of(bulk.leaf_hashes(chunks, executor))


def state_root(
    tensors: Mapping[str, Float32],
    round_: int,
    cursor: int,
    config_hash: bytes,
    executor: Executor | None = None,
) -> Digest:
    """Return the state root of the weights on which a round trains; see `pieces.pieces_of`."""
    return pieces_of(tensors, StateName(round_, cursor, config_hash), executor).root


def residual_tree(u: Float32) -> merkle.Tree:
    """Return the Merkle tree over the tiles of u, float32 [tiles, 64, 64], 16 KiB a leaf.

    One thread: leaves so short take longer over several (docs/results.md, "Bulk hashes").
    Raises TensorError for another dtype or shape or no tiles.
    """
    if u.ndim != 3 or u.shape[1:] != (TILE_SIDE, TILE_SIDE):
        raise TensorError("residual", "shape [tiles, 64, 64]", list(u.shape), "pass the tiles of u")
    return merkle.tree_of(bulk.leaf_hashes(_tiles([u])))


def residual_root(u: Float32) -> Digest:
    """Return the root of `residual_tree`, which a header names as its residual root after."""
    return residual_tree(u).root


def residual_root_of_parts(parts: Iterable[Float32]) -> Digest:
    """Return `residual_root` of a u that arrives in parts: whole tiles in their order, any shape.

    Raises TensorError for another dtype or a part that ends within a tile.
    """
    return merkle.root_of(bulk.leaf_hashes(_tiles(parts)))


def _tiles(parts: Iterable[Float32]) -> Iterator[memoryview]:
    for part in parts:
        data = bytes_of("residual", part)
        if len(data) % TILE_BYTES:
            raise TensorError(
                "residual", f"whole tiles of {TILE_BYTES} bytes", len(data), "pass whole tiles"
            )
        yield from merkle.cut(data, TILE_BYTES)


def zero_residual_root(num_tiles: int) -> Digest:
    """Return the residual root of the zero state without hashing every tile."""
    return merkle.root_of([bulk.leaf_hash(bytes(TILE_BYTES))] * num_tiles)


def data_root(sequence_ids: Iterable[int]) -> Digest:
    """Return the Merkle root over the assigned sequence ids; leaf: the id as u64."""
    return merkle.root(u64(sequence) for sequence in sequence_ids)
