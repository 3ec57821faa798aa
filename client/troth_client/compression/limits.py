"""Sizes of a payload, known before a byte of it arrives (protocol section 5.3).

Owns: the allowed k, tiles per leaf, the exact length. Never: reads bytes.
Next: `codec.py`.
"""

from troth_client.compression.payload_errors import UnsupportedKError

LEAF_BYTES = 1024
"""Bytes of a leaf, the unit that the Merkle tree hashes."""
LEAF_BITS = 8 * LEAF_BYTES
INDEX_BITS = 12
"""An index into the 4096 coefficients of a tile."""
ALLOWED_K = (1, 2, 4, 8, 16, 32, 64)
"""Coefficients per tile that a run may choose."""


def check_k(k: int) -> int:
    """Return k; UnsupportedKError unless it is one of ALLOWED_K."""
    if k not in ALLOWED_K:
        raise UnsupportedKError(
            f"k to be one of {', '.join(map(str, ALLOWED_K))}", f"{k}", "Choose one of these."
        )
    return k


def tile_bits(k: int) -> int:
    """Bits of a tile: presence, k indices, k signs."""
    return 1 + (INDEX_BITS + 1) * check_k(k)


def tiles_per_leaf(k: int) -> int:
    """Return how many tiles share a full leaf."""
    return LEAF_BITS // tile_bits(k)


def num_leaves(num_tiles: int, k: int) -> int:
    """Leaves that hold `num_tiles` tiles; the last one may be partly filled."""
    return -(-num_tiles // tiles_per_leaf(k))


def payload_length(num_tiles: int, k: int) -> int:
    """Return the exact number of bytes of every payload of a model."""
    return num_leaves(num_tiles, k) * LEAF_BYTES
