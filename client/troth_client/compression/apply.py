"""Apply what the chain included: signs to a direction, direction to weights (protocol 5.5).

Owns: the sum of signs per coefficient, blocks of tiles, the order of the two weight steps.
Never: weighs, averages or clips a sender: every sign counts one. Never checks payloads: only
`codec.decode` makes what it takes.
Next: `exact.py` for the arithmetic, `known_answer.py` for the path that a device may take.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_client.compression.codec import VerifiedPayload
from troth_client.compression.errors import TileShapeError
from troth_client.compression.exact import (
    basis_pair,
    check_constants,
    inverse,
    inverse_memory,
    step_,
)
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.tiles import TileLayout


@torch.no_grad()
def direction(payloads: Sequence[VerifiedPayload], num_tiles: int, path: ApplyPath) -> Tensor:
    """Return d = sign(B^T C B), int8 [num_tiles, 64, 64] on `path.device`; any order, same bits.

    C sums the signs of all payloads; without payloads it is zero. Raises TileShapeError if a
    payload was made for another number of tiles.
    """
    _check_tiles(payloads, num_tiles)
    placed = [_on_device(payload.signs, path.device) for payload in payloads]
    out = torch.zeros((num_tiles, TILE_SIDE, TILE_SIDE), dtype=torch.int8, device=path.device)
    basis = basis_pair(path.device, path.dtype)
    memory = inverse_memory(min(num_tiles, path.block_tiles), basis)
    for first in range(0, num_tiles if placed else 0, path.block_tiles):
        tiles = slice(first, first + path.block_tiles)
        counts = _counts(placed, tiles, out[tiles])
        out[tiles] = inverse(counts, basis, memory).sign_()
    return out


@torch.no_grad()
def step(  # the six things that a step is made of
    weights: Mapping[str, Tensor],
    direction: Tensor,
    layout: TileLayout,
    a: float,
    b: float,
    path: ApplyPath,
) -> None:
    """Do w <- w * a, then w <- w - b * d, in place on fp32 master weights.

    `direction` is int8 [T, 64, 64]; a and b come from the rules' exact constants. Weights on a
    device that the path does not trust are stepped on the path's device and copied back. Call it
    for a non-empty bitmap only (`update` knows). Raises TensorMismatchError, TileShapeError,
    InexactConstantError; after an error before the first write no weight has changed.
    """
    check_constants(a, b)
    layout.check(weights, torch.float32)
    for name, part in layout.from_tiles(direction.to(path.device)).items():
        weight = weights[name].detach()
        here = weight.to(path.device)
        step_(here, part, a, b)
        if here is not weight:
            weight.copy_(here)


def update(
    weights: Mapping[str, Tensor],
    included: Sequence[VerifiedPayload | None],
    layout: TileLayout,
    constants: tuple[float, float],
    path: ApplyPath,
) -> None:
    """Apply one closed round in place: `included` has one entry for each bit of the bitmap.

    None stands for an included payload that fails section 5.4. Every client takes the step and adds
    nothing for that payload. If no payload is included, the weights stay unchanged: there is no
    decay either. `constants` are a and b. Errors as in `direction` and `step`.
    """
    if not included:
        return
    valid = [payload for payload in included if payload is not None]
    kernels = path.kernels
    fields = sum(payload.k for payload in valid)
    if kernels is not None and kernels.take(weights.values()) and fields <= kernels.max_fields:
        check_constants(*constants)
        layout.check(weights, torch.float32)
        _check_tiles(valid, layout.num_tiles)
        kernels.update(weights, [p.signs for p in valid], layout, constants)
        return
    step(weights, direction(valid, layout.num_tiles, path), layout, *constants, path)


def _check_tiles(payloads: Sequence[VerifiedPayload], num_tiles: int) -> None:
    for payload in payloads:
        if payload.num_tiles != num_tiles:
            raise TileShapeError(
                f"payloads of {num_tiles} tiles",
                f"one of {payload.num_tiles}",
                "Decode it with this model's tile count.",
            )


class _Placed(NamedTuple):
    """The arrays of a `Signs` on the path's device; on the CPU they share its memory."""

    present: Tensor
    indices: Tensor
    negative: Tensor


def _on_device(signs: Signs, device: torch.device) -> _Placed:
    arrays = (signs.present, signs.indices, signs.negative)
    return _Placed(*(torch.from_numpy(array).to(device) for array in arrays))


def _counts(placed: Sequence[_Placed], tiles: slice, like: Tensor) -> Tensor:
    """C of a block of tiles, int32 [n, 64, 64]: in integers the order of payloads is irrelevant."""
    counts = like.new_zeros((len(like), TILE_COEFFICIENTS), dtype=torch.int32)
    for signs in placed:
        # Absent tiles have zero fields: 0 - 2 * 0 adds nothing to coefficient 0.
        values = signs.present[tiles, None].int() - 2 * signs.negative[tiles].int()
        counts.scatter_add_(1, signs.indices[tiles].long(), values)
    return counts.view(-1, TILE_SIDE, TILE_SIDE)
