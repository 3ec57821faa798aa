"""The residual: DeMo's momentum, kept at home in the DCT domain (protocol section 5.2).

Owns: how M becomes u, which tiles of u are sent, and what of u the next M is.
Never: decides whether a payload was included, or subtracts what was sent before the chain has
included it: nothing unaudited enters a residual.
Next: `topk.py`, which chooses from u; `apply.py`, which adds up the signs of all trainers. A judge
computes the same in numpy (`troth_attestation.selection`), equal to the bit.

Every product and sum rounds once, in fp32: a fused multiply-add would round other bits.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from troth_attestation.selection import LEAST_NORMAL
from troth_attestation.signs import Bools, Indices
from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_client.compression.dct import check_tiles
from troth_coordinator.rules.config import MICRO, RunConfig

_LARGEST_ZERO = float(LEAST_NORMAL) - 2.0**-149
"""The largest magnitude that counts as zero."""
_CPU_BLOCK_TILES = 64
_DEVICE_BLOCK_TILES = 16384
"""So many tiles are compared at a time."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The momentum M as it is held: u of the last included round, fp32 [T, 64, 64].

    M is u with 1 - alpha of each value of its top k, sent or not; `indices`, int16 [T, k], are
    their places. Nobody writes M down: an audit may ask for u, and M would be a copy as large as
    the model.
    """

    u: Tensor
    indices: Indices


@dataclass(frozen=True, slots=True)
class Moved:
    """A residual that a gradient was added to: u, and b = beta * M without it.

    Both fp32 [T, 64, 64]; b is None where M was zero.
    """

    u: Tensor
    without: Tensor | None


@dataclass(frozen=True, slots=True)
class Residual:
    """The rule of a run: decay `beta_micro`, forgotten share of the top k `alpha_micro`.

    Both are in millionths. A tile is sent from a gradient of 2^-sent_floor_log2 on. The tensors
    stay with the caller, who must keep u until the audit.
    """

    beta_micro: int
    alpha_micro: int = MICRO
    sent_floor_log2: int = 40

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """Return the rule that a run's config holds."""
        demo = config.demo
        return cls(demo.beta_micro, demo.alpha_micro, config.judge.sent_floor_log2)

    @property
    def kept(self) -> float:
        """The share 1 - alpha of the top k that M keeps."""
        return (MICRO - self.alpha_micro) / MICRO

    @torch.no_grad()
    def decayed(self, carried: Carried | None) -> Tensor | None:
        """Return b = beta * M, a new fp32 [T, 64, 64]; None stands for a zero momentum.

        Raises TileShapeError unless u is fp32: in bf16 a decay of 0.999 changes nothing.
        """
        if carried is None:
            return None
        check_tiles(carried.u)
        beta = self.beta_micro / MICRO
        without = flushed(torch.mul(carried.u, beta))
        indices = torch.from_numpy(carried.indices).to(carried.u.device, torch.int64)
        top = carried.u.view(-1, TILE_COEFFICIENTS).gather(1, indices)
        top = flushed(flushed(top * self.kept) * beta)
        without.view(-1, TILE_COEFFICIENTS).scatter_(1, indices, top)
        return without

    @torch.no_grad()
    def accumulate(self, carried: Carried | None, coefficients: Tensor) -> Moved:
        """Return u = beta * M + D(g) in new tensors; None stands for a zero momentum.

        Raises TileShapeError unless both are fp32 tiles.
        """
        check_tiles(coefficients)
        without = self.decayed(carried)
        u = coefficients.clone() if without is None else torch.add(without, coefficients)
        return Moved(flushed(u), without)

    @torch.no_grad()
    def is_sent(self, moved: Moved) -> Bools:
        """Return for each tile whether it is sent, bool [T].

        It is if the gradient moved one entry of u by the floor or more, and u is not all zero.
        """
        u = moved.u.view(-1, TILE_COEFFICIENTS)
        floor = 2.0**-self.sent_floor_log2
        largest = _largest(u)
        change = largest
        if moved.without is not None:
            change = _largest(u, moved.without.view(-1, TILE_COEFFICIENTS))
        found: Bools = ((change >= floor) & (largest > 0)).cpu().numpy()
        return found


def flushed(tiles: Tensor) -> Tensor:
    """Put +0 in place of -0 and of everything below the least normal number."""
    return torch.nn.functional.hardshrink(tiles, _LARGEST_ZERO)


def _largest(rows: Tensor, without: Tensor | None = None) -> Tensor:
    """Return max |x| of each row of `rows`, or of what they are more than `without`.

    One block after another is copied to the same memory, which stays in a processor's cache.
    Copies of all rows would cost most of the time.
    """
    size = _CPU_BLOCK_TILES if rows.device.type == "cpu" else _DEVICE_BLOCK_TILES
    memory, found = torch.empty_like(rows[:size]), []
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        copy = memory[: len(block)]
        if without is None:
            torch.abs(block, out=copy)
        else:
            torch.sub(block, without[start : start + size], out=copy).abs_()
        found.append(copy.amax(dim=1))
    return torch.cat(found)
