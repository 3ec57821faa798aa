"""The sizes into which weights, residuals and payloads are cut (protocol sections 1 and 5).

Owns: the one definition of a tile, of an index into it, and of a payload's leaf.
Never: computes with them, nor holds a size that a run may choose.
Next: `signs.py` for the record of a payload, `state.py` for the roots over tiles.
"""

from typing import Final

TILE_SIDE: Final = 64
"""Side of a tile."""
TILE_COEFFICIENTS: Final = TILE_SIDE * TILE_SIDE
"""Coefficients of a tile, and the number of weights that it covers."""
TILE_BYTES: Final = 4 * TILE_COEFFICIENTS
"""Bytes of a tile in float32: one leaf of a residual's Merkle tree."""
INDEX_BITS: Final = 12
"""An index into the coefficients of a tile."""
PAYLOAD_LEAF_BYTES: Final = 1024
"""Bytes of a leaf of a payload, the unit that its Merkle tree hashes."""
