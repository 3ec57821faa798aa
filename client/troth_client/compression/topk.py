"""The canonical choice of k coefficients per tile (protocol section 5.2).

Owns: the order: largest |u| first, ties to the lowest index, -0.0 positive; equal on any device.
Never: sends values; only places and signs leave the machine.
Next: `codec.py`, which packs them, and `residual.py`, which says which tiles are sent and forgets.

fp32 magnitudes order like their bit patterns, so the work is done on int32. That is exact, is
faster than a float sort, and keeps subnormal numbers even where the device flushes them. On a
processor the judge's own choice is the fastest; on other devices torch makes the same one.
"""

import numpy as np
import torch
from torch import Tensor

from troth_attestation import selection
from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import INDEX_BITS, TILE_COEFFICIENTS
from troth_client.compression.dct import check_tiles
from troth_client.compression.errors import NonFiniteError
from troth_client.compression.limits import check_k
from troth_client.compression.residual import Moved, Residual

_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NEGATIVE_ZERO = -0x80000000
_CPU_BLOCK_TILES = 32
_DEVICE_BLOCK_TILES = 16384


@torch.no_grad()
def top_k(u: Tensor, k: int) -> TopK:
    """Choose the k entries of largest |u| in each tile of u, fp32 [T, 64, 64], sent or not.

    The work is done on the device of u. Raises NonFiniteError if u has a NaN or an infinity,
    TileShapeError and UnsupportedKError for bad arguments, TensorError for no tiles.
    """
    check_tiles(u)
    check_k(k)
    rows = u.detach().reshape(-1, TILE_COEFFICIENTS)
    return _as_the_judge(rows, k) if u.device.type == "cpu" else _on_the_device(rows, k)


def select(u: Tensor, k: int) -> Signs:
    """Return what a payload on a zero residual holds; arguments and errors as in `top_k`."""
    top = top_k(u, k)
    return top.signs(Residual(0).is_sent(Moved(u, None)))


def _as_the_judge(rows: Tensor, k: int) -> TopK:
    """Choose as a judge does: on a processor numpy's partition is faster than torch's top k."""
    blocks = torch.split(rows, _CPU_BLOCK_TILES)
    largest = torch.cat([(block.view(torch.int32) & _MAGNITUDE).amax(dim=1) for block in blocks])
    check_finite(largest)
    chosen = [selection.top_k(block.numpy(), k) for block in blocks]
    indices, negative = ([getattr(one, name) for one in chosen] for name in ("indices", "negative"))
    return TopK(np.concatenate(indices), np.concatenate(negative))


def _on_the_device(rows: Tensor, k: int) -> TopK:
    """Choose by torch's top k; only the choice leaves the device."""
    blocks = torch.split(rows.view(torch.int32), _DEVICE_BLOCK_TILES)
    parts = [_select_block(block, k) for block in blocks]
    largest, indices, negative = (torch.cat(column) for column in zip(*parts, strict=True))
    check_finite(largest)
    return TopK(indices.cpu().numpy(), negative.cpu().numpy())


def _select_block(bits: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Largest magnitude int32 [n], indices int16 [n, k], signs bool [n, k] of some tiles."""
    magnitude = bits & _MAGNITUDE
    # One more than k: equal magnitudes on both sides of the cut are the only ambiguous case.
    largest, order = magnitude.topk(k + 1, dim=1)
    indices = order[:, :k]
    tied = (largest[:, k - 1] == largest[:, k]) & (largest[:, 0] != 0)
    if bool(tied.any()):
        indices[tied] = _with_lowest_ties(magnitude[tied], k)
    indices[largest[:, 0] == 0] = torch.arange(k, device=bits.device)
    indices = indices.sort(dim=1).values
    chosen = bits.gather(1, indices)
    negative = (chosen < 0) & (chosen != _NEGATIVE_ZERO)
    return largest[:, 0], indices.to(torch.int16), negative


def _with_lowest_ties(magnitude: Tensor, k: int) -> Tensor:
    """Choose indices [n, k] by a key that no two entries share: magnitude, then inverted index."""
    last = TILE_COEFFICIENTS - 1
    inverted = last - torch.arange(TILE_COEFFICIENTS, device=magnitude.device)
    keys = (magnitude.to(torch.int64) << INDEX_BITS) | inverted
    return last - (keys.topk(k, dim=1).values & last)


def check_finite(largest: Tensor) -> None:
    """Raise NonFiniteError unless the largest |u| of every tile, fp32 bits int32 [T], is finite."""
    bad = torch.nonzero(largest >= _INFINITY)
    if len(bad):
        raise NonFiniteError(
            "finite values of u",
            f"NaN or infinity in {len(bad)} tile(s), the first is tile {int(bad[0])}",
            "Lower the learning rate or the gradient clip; this round sends no payload.",
        )
