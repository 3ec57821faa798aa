"""Apply what the chain included: votes to a direction, direction to weights (protocol 5.5).

Owns: the sum of votes per coefficient, blocks of tiles, the order of the two weight steps.
Never: weighs, averages or clips a sender: a vote is one, whoever casts it. Never checks payloads;
only `payload.codec.decode` makes what it takes.
Next: `exact.py` for the arithmetic, `known_answer.py` for the path that a device may take.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from troth_client.compression.basis import COEFFICIENTS, TILE
from troth_client.compression.codec import VerifiedPayload
from troth_client.compression.errors import TileShapeError
from troth_client.compression.exact import basis_pair, check_constants, inverse, signs, step_
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import TopK


@torch.no_grad()
def direction(payloads: Sequence[VerifiedPayload], num_tiles: int, path: ApplyPath) -> Tensor:
    """Return d = sign(B^T C B), int8 [num_tiles, 64, 64] on `path.device`; any order, same bits.

    C sums the votes of all payloads; none at all gives zeros. Raises TileShapeError if a payload
    was made for another number of tiles.
    """
    for payload in payloads:
        if payload.num_tiles != num_tiles:
            raise TileShapeError(
                f"payloads of {num_tiles} tiles",
                f"one of {payload.num_tiles}",
                "Decode it with this model's tile count.",
            )
    votes = [_on_device(payload, path.device) for payload in payloads]
    out = torch.zeros((num_tiles, TILE, TILE), dtype=torch.int8, device=path.device)
    basis = basis_pair(path.device, path.dtype)
    for first in range(0, num_tiles if votes else 0, path.block_tiles):
        tiles = slice(first, first + path.block_tiles)
        counts = _counts(votes, tiles, out[tiles])
        out[tiles] = signs(inverse(counts, basis))
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

    None stands for an included payload that fails section 5.4: it adds nothing, on every client,
    but the step is taken. An empty bitmap changes no weight, not even by decay. `constants` are
    a and b. Errors as in `direction` and `step`.
    """
    if not included:
        return
    valid = [payload for payload in included if payload is not None]
    step(weights, direction(valid, layout.num_tiles, path), layout, *constants, path)


def _on_device(payload: VerifiedPayload, device: torch.device) -> TopK:
    return TopK(payload.present.to(device), payload.indices.to(device), payload.negative.to(device))


def _counts(votes: Sequence[TopK], tiles: slice, like: Tensor) -> Tensor:
    """C of a block of tiles: int32 [n, 64, 64]; integers, so that the order of peers is nothing."""
    counts = like.new_zeros((len(like), COEFFICIENTS), dtype=torch.int32)
    for vote in votes:
        # Absent tiles have zero fields: 0 - 2 * 0 adds nothing to coefficient 0.
        ballots = vote.present[tiles, None].int() - 2 * vote.negative[tiles].int()
        counts.scatter_add_(1, vote.indices[tiles].long(), ballots)
    return counts.view(-1, TILE, TILE)
