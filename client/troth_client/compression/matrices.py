"""The matrices that are cut into tiles, from the shapes alone (protocol section 5.1).

Owns: their order, the shared matrix of 1-D tensors, the number of tiles.
Never: imports torch: an archive runs without it.
Next: `tiles.py`, which moves values.
"""

import math
from collections.abc import Mapping

from troth_attestation.sizes import TILE_SIDE

Shape = tuple[int, ...]


def matrices_of(shapes: Mapping[str, Shape]) -> list[tuple[tuple[str, ...], int, int]]:
    """Name, rows and columns of every matrix; all tensors below 2-D share the last one."""
    found: list[tuple[tuple[str, ...], int, int]] = [
        ((n,), math.prod(s[:-1]), s[-1]) for n, s in shapes.items() if len(s) >= 2
    ]
    flat = tuple(n for n, s in shapes.items() if len(s) < 2)
    if flat:
        size = sum(math.prod(shapes[n]) for n in flat)
        found.append((flat, -(-size // TILE_SIDE), TILE_SIDE))
    return found


def grid_of(rows: int, columns: int) -> tuple[int, int]:
    """Return tile rows and tile columns of a matrix."""
    return -(-rows // TILE_SIDE), -(-columns // TILE_SIDE)


def count_tiles(shapes: Mapping[str, Shape]) -> int:
    """Return T, the number of tiles of a model."""
    return sum(math.prod(grid_of(rows, columns)) for _, rows, columns in matrices_of(shapes))
