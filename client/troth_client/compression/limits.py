"""Sizes of a payload, known before a byte of it arrives (protocol section 5.3).

Owns: the allowed k, tiles per leaf, the exact length. Never: reads bytes.
Next: `codec.py`.
"""

from troth_attestation.sizes import INDEX_BITS, PAYLOAD_LEAF_BYTES
from troth_client.compression.errors import UnsupportedKError

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
    return 8 * PAYLOAD_LEAF_BYTES // tile_bits(k)


def num_leaves(num_tiles: int, k: int) -> int:
    """Leaves that hold `num_tiles` tiles; the last one may be partly filled."""
    return -(-num_tiles // tiles_per_leaf(k))


def payload_length(num_tiles: int, k: int) -> int:
    """Return the exact number of bytes of every payload of a model."""
    return num_leaves(num_tiles, k) * PAYLOAD_LEAF_BYTES
