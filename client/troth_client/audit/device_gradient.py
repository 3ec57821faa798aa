"""A judge's own gradient on the device that computed it.

Owns: the measures of D(g) by torch, behind the port of the judge (`troth_attestation.measure`).
Never: copies D(g) off its device. Drawn tiles leave it, two numbers of each tile, one more of each
where all votes are tested, and the sums of a sketch.
Next: `recompute.py`, which hands it out; `scripts/gpu/equality.py`, which holds it against numpy.

Shape legend: T tiles of the model, n drawn tiles of 4096 coefficients, k votes of a tile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from troth_attestation.agreement import Group, least_mean
from troth_attestation.measure import Float64, Places, Scale, Tiles
from troth_attestation.pieces import Float32
from troth_attestation.signs import Bools, Signs
from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_attestation.sketch import NUM_BUCKETS
from troth_client.compression.dct import check_tiles
from troth_client.compression.host import host_array

_BLOCK_TILES: Final = 1024
"""Tiles that are widened to fp64 at a time: 32 MiB."""
_WITHOUT_FP64: Final = ("mps",)


def gradient_of(tiles: Tensor) -> Tiles:
    """Return D(g), fp32 [T, 64, 64], for a judge: as an array on a processor, else where it is.

    MPS has no fp64, which all sums of a judge need: from there it comes as an array, too.
    """
    is_array = tiles.device.type in ("cpu", *_WITHOUT_FP64)
    return host_array(tiles) if is_array else TorchGradient.of(tiles)


@dataclass(frozen=True, slots=True)
class TorchGradient:
    """D(g) as fp32 rows [T, 4096] on a device, with its scale; see `DeviceGradient`."""

    rows: Tensor
    scale: Scale

    @classmethod
    def of(cls, tiles: Tensor) -> "TorchGradient":
        """Take the scale of D(g), fp32 [T, 64, 64], at once; TileShapeError for anything else.

        That takes the most memory of all measures, so where there is too little, it shows here.
        """
        check_tiles(tiles)
        rows = tiles.detach().reshape(-1, TILE_COEFFICIENTS)
        return cls(rows, _scale_of(rows))

    @property
    def shape(self) -> tuple[int, ...]:
        """[T, 64, 64]."""
        return (len(self.rows), TILE_SIDE, TILE_SIDE)

    def drawn(self, tiles: list[int]) -> Float32:
        """Return these tiles, fp32 [n, 4096]."""
        places = torch.tensor(tiles, dtype=torch.int64).to(self.rows.device)
        found: Float32 = self.rows.index_select(0, places).cpu().numpy()
        return found

    def agreement(self, cut: Sequence[Group], signs: Signs, counted: Bools) -> float | None:
        """Return the agreement of votes in the group of tiles where it is least."""
        return least_mean(cut, self._scores(signs), counted)

    def sums(self, places: Iterable[Places]) -> Float64:
        """Return the sums of the coefficients by place, fp64 [128]."""
        values, first = self.rows.reshape(-1), 0
        sums = values.new_zeros(2 * NUM_BUCKETS, dtype=torch.float64)
        for part in places:
            weights = values[first : first + part.size].double()
            sums += torch.bincount(torch.from_numpy(part).to(values.device), weights, len(sums))
            first += part.size
        found: Float64 = sums.cpu().numpy()
        return found

    def _scores(self, signs: Signs) -> Float64:
        """Return the score of every tile, fp64 [T], as `agreement.scores_of` does."""
        device = self.rows.device
        indices = torch.from_numpy(signs.indices).to(device, torch.int64)
        values = self.rows.gather(1, indices).double()
        total = values.abs().sum(dim=1)
        agreed = torch.where(torch.from_numpy(signs.negative).to(device), -values, values).sum(1)
        found: Float64 = torch.where(total > 0, agreed / total, 0.0).cpu().numpy()
        return found


def _scale_of(rows: Tensor) -> Scale:
    """Measure fp32 rows [T, 4096], block by block."""
    norms, largest = [], []
    for block in torch.split(rows, _BLOCK_TILES):
        norms.append(torch.linalg.vector_norm(block.double(), dim=1))
        least, most = block.aminmax(dim=1)
        largest.append(torch.maximum(most, -least).double())
    both: Float64 = torch.stack((torch.cat(norms), torch.cat(largest))).cpu().numpy()
    return Scale.of(both[0], both[1])
