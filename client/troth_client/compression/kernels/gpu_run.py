"""Run the GPU's kernels on tensors: one launch per matrix of a layout, one program per tile.

Owns: what they get, on the device of the tensors.
Never: decides whether they may be used; `choice.py` does.
Next: `base.py` for what they return; `gpu_encode.py`, `gpu_apply.py`.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import integer_basis
from troth_client.compression.kernels import gpu_apply, gpu_encode
from troth_client.compression.kernels.base import Encoded
from troth_client.compression.kernels.gpu_compiler import OPTIONS, as_odd, on_device
from troth_client.compression.kernels.inputs import codes, folded_basis
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import Matrix, TileLayout
from troth_client.compression.topk import check_finite
from troth_coordinator.rules.config import MICRO


def encode_layout(
    tensors: Mapping[str, Tensor],
    carried: Carried | None,
    layout: TileLayout,
    rule: Residual,
    k: int,
    into: Tensor | None,
) -> Encoded:
    """Return u = F(b + D(g)) with its top k, as `Encode` says; u stays on the device."""
    one = next(iter(tensors.values()))
    shape = (layout.num_tiles, TILE_SIDE, TILE_SIDE)
    found = gpu_encode.Found(
        one.new_empty(shape) if into is None else into,
        one.new_empty((layout.num_tiles, k), dtype=torch.int16),
        one.new_empty((layout.num_tiles, k), dtype=torch.uint8),
        one.new_empty(layout.num_tiles, dtype=torch.uint8),
        one.new_empty(layout.num_tiles, dtype=torch.int32),
    )
    beta, floor = np.float32(rule.beta_micro / MICRO), np.float32(2.0**-rule.sent_floor_log2)
    settings = gpu_encode.Rule(float(beta), float(np.float32(rule.kept)), int(floor.view(np.int32)))
    before, top = found.u, found.indices
    if carried is not None:
        before = carried.u.contiguous()
        top = torch.from_numpy(carried.indices).to(one.device)
    basis = torch.from_numpy(folded_basis()).to(one.device)
    with on_device(one.device):
        for matrix, values, cut in matrices_of(layout, tensors):
            given = gpu_encode.Given(values, before, top, basis)
            gpu_encode.encode_tiles[grid(matrix)](
                *(given, cut, settings, found, k, carried is None), **OPTIONS
            )
    check_finite(found.largest)
    indices, negative, is_sent = (x.cpu().numpy() for x in found[1:4])
    return Encoded(found.u, TopK(indices, negative.view(np.bool_)), is_sent.view(np.bool_))


def update_layout(
    weights: Mapping[str, Tensor],
    payloads: Sequence[Signs],
    layout: TileLayout,
    constants: tuple[float, float],
) -> None:
    """Apply signs to weights, in place, as `Update` says."""
    one = next(iter(weights.values()))
    packed = codes(payloads, layout.num_tiles, one.device)
    fields = gpu_apply.Fields(packed, as_odd(packed.shape[1]))
    pair = gpu_apply.halves(integer_basis())
    halves = gpu_apply.Halves(*(torch.from_numpy(half).to(one.device) for half in pair))
    with on_device(one.device):
        for matrix, values, cut in matrices_of(layout, weights):
            gpu_apply.apply_tiles[grid(matrix)](
                *(values, cut, fields, halves, gpu_apply.Constants(*constants)), **OPTIONS
            )
            layout.put_back(matrix, values, weights)


def matrices_of(
    layout: TileLayout, tensors: Mapping[str, Tensor]
) -> Iterator[tuple[Matrix, Tensor, gpu_encode.Cut]]:
    """Yield every matrix of a layout with its values and where they lie."""
    for matrix in layout.matrices:
        values = layout.whole(matrix, tensors)
        rows, first_tile = as_odd(matrix.rows), as_odd(matrix.first_tile)
        by_row, by_column = values.stride()
        cut = gpu_encode.Cut(rows, matrix.columns, by_row, by_column, first_tile)
        yield matrix, values, cut


def grid(matrix: Matrix) -> tuple[int]:
    """Return the number of programs for a matrix: its tiles."""
    return (matrix.tiles.stop - matrix.tiles.start,)
