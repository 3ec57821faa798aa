"""Run the compiled kernels on tensors: matrices of a layout, tiles shared out among threads.

Owns: which tiles each thread works on. Every tile is computed alone, so their number changes no
bit. Never: decides whether the kernels may be used; `choice.py` does.
Next: `base.py` for what they return; `encode.py`, `apply.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import integer_basis
from troth_client.compression.kernels import apply, encode
from troth_client.compression.kernels.base import Encoded
from troth_client.compression.kernels.inputs import codes, folded_basis
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import Matrix, TileLayout
from troth_client.compression.topk import check_finite
from troth_client.runtime import recycled
from troth_coordinator.rules.config import MICRO

ENTRIES = (encode.encode_tiles, apply.apply_tiles)
"""The functions that numba compiles, and saves."""
_FOLDED = folded_basis()
_BASIS = integer_basis().astype(np.float32)


def encode_layout(
    tensors: Mapping[str, Tensor],
    carried: Carried | None,
    layout: TileLayout,
    rule: Residual,
    k: int,
    into: Tensor | None,
) -> Encoded:
    """Return u = F(b + D(g)) with its top k, as `Encode` says."""
    num_tiles = layout.num_tiles
    shape = (num_tiles, TILE_SIDE, TILE_SIDE)
    memory = recycled.empty(shape) if into is None else into.numpy()
    found = encode.Found(
        memory,
        np.empty((num_tiles, k), np.int16),
        np.empty((num_tiles, k), np.bool_),
        np.empty(num_tiles, np.bool_),
        np.empty(num_tiles, np.int32),
    )
    beta, floor = rule.beta_micro / MICRO, 2.0**-rule.sent_floor_log2
    kept, floor_bits = np.float32(rule.kept), np.float32(floor).view(np.int32)
    settings = encode.Rule(np.float32(beta), kept, floor_bits, k)
    before = encode.Before(found.u[:0], found.indices[:0])
    if carried is not None:
        before = encode.Before(carried.u.contiguous().numpy(), carried.indices)
    wholes = {m: layout.whole(m, tensors).contiguous().numpy() for m in layout.matrices}

    def work_on(matrix: Matrix, tiles: tuple[int, int]) -> None:
        place = (*tiles, matrix.first_tile)
        encode.encode_tiles(wholes[matrix], before, place, _FOLDED, settings, found)

    _in_threads(layout, work_on)
    check_finite(torch.from_numpy(found.largest))
    top = TopK(found.indices, found.negative)
    return Encoded(torch.from_numpy(found.u), top, found.is_sent)


def update_layout(
    weights: Mapping[str, Tensor],
    payloads: Sequence[Signs],
    layout: TileLayout,
    constants: tuple[float, float],
) -> None:
    """Apply signs to weights, in place, as `Update` says."""
    fields = codes(payloads, layout.num_tiles, torch.device("cpu")).numpy()
    a, b = (np.float32(x) for x in constants)
    wholes = {m: layout.whole(m, weights).contiguous() for m in layout.matrices}

    def work_on(matrix: Matrix, tiles: tuple[int, int]) -> None:
        own = fields[matrix.tiles]
        apply.apply_tiles(wholes[matrix].numpy(), own, tiles, _BASIS, (a, b))

    _in_threads(layout, work_on)
    for matrix, whole in wholes.items():
        layout.put_back(matrix, whole, weights)


def _in_threads(layout: TileLayout, work_on: Callable[[Matrix, tuple[int, int]], None]) -> None:
    """Give each thread of torch an equal share of consecutive tiles."""
    threads = max(1, min(torch.get_num_threads(), layout.num_tiles))
    borders = [layout.num_tiles * n // threads for n in range(threads + 1)]

    def share(n: int) -> None:
        for matrix, tiles in _pieces(layout, borders[n], borders[n + 1]):
            work_on(matrix, tiles)

    if threads == 1:
        share(0)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(share, range(threads)):
            pass


def _pieces(layout: TileLayout, start: int, stop: int) -> Iterator[tuple[Matrix, tuple[int, int]]]:
    """Cut a range of tiles at the borders of matrices; the numbers count within the matrix."""
    for matrix in layout.matrices:
        first = matrix.first_tile
        begin, end = max(start, first), min(stop, matrix.tiles.stop)
        if begin < end:
            yield matrix, (begin - first, end - first)
