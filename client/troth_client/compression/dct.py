"""The orthonormal two-dimensional DCT-II of every tile, in float (protocol section 5.2).

Owns: the transform of gradients on the producing side; last bits may differ between devices.
Never: consensus; the way back is integer and lies in `apply.py`.
Next: `topk.py`, which chooses what to send.
"""

import torch
from torch import Tensor

from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import float_basis
from troth_client.compression.errors import TileShapeError
from troth_client.runtime.products import fp32_products

_CPU_BLOCK_TILES = 128
"""Tiles transformed at a time, so that the values between both products stay in cache."""
_DEVICE_BLOCK_TILES = 4096
"""Elsewhere they only bound the memory between both products, at 64 MiB."""


def check_tiles(tiles: Tensor) -> None:
    """Raise TileShapeError unless `tiles` is fp32 [T, 64, 64]."""
    has_shape = tiles.ndim == 3 and tiles.shape[1:] == (TILE_SIDE, TILE_SIDE)
    if not has_shape or tiles.dtype != torch.float32:
        raise TileShapeError(
            "tiles of shape [T, 64, 64] and dtype torch.float32",
            f"shape {list(tiles.shape)}, {tiles.dtype}",
            "Make them with TileLayout.to_tiles from fp32 tensors.",
        )


def two_sided(left: Tensor, tiles: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """Write left @ tile @ right for each tile into `out` (all [.., 64, 64] of one dtype)."""
    rows = torch.matmul(tiles.reshape(-1, TILE_SIDE), right).view(-1, TILE_SIDE, TILE_SIDE)
    return torch.matmul(left, rows, out=out)


@torch.no_grad()
def dct2(tiles: Tensor, *, in_place: bool = False) -> Tensor:
    """Transform each tile x to B x B^T; fp32 [T, 64, 64] in and out, on the device of the input.

    `in_place`: the result takes the place of the tiles, with the same bits. Runs in full fp32
    also inside an autocast region, and where tf32 is allowed. Raises TileShapeError.
    """
    check_tiles(tiles)
    basis = torch.from_numpy(float_basis()).to(tiles.device, torch.float32)
    turned = basis.T.contiguous()
    out = tiles if in_place else torch.empty_like(tiles)
    size = _CPU_BLOCK_TILES if tiles.device.type == "cpu" else _DEVICE_BLOCK_TILES
    with torch.autocast(tiles.device.type, enabled=False), fp32_products(tiles.device):
        for first in range(0, len(tiles), size):
            block = slice(first, first + size)
            two_sided(basis, tiles[block], turned, out[block])
    return out
