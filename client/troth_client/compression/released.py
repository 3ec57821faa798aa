"""The released DeMo optimizer in plain torch: the baseline that benchmarks state their ratios to.

Owns: one step of its algorithm in its order, written from the description (arXiv:2411.19870).
First decay, momentum with the learning rate inside, DCT of each tensor, top k, subtraction of the
own part after a decode. Then the mean over the senders of a coefficient, inverse DCT, sign.
Never: takes part in a run. Payloads are tensors here; nothing is sent.
Next: `scripts/bench/demo_step.py`.

Shape legend: h, w a tile's sides; y, x the tile's place in its tensor; e = h * w entries.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from troth_attestation.sizes import TILE_SIDE

_MEMORY_SHARE = 0.999


@dataclass(frozen=True, slots=True)
class Sparse:
    """The part of one tensor that one trainer sends: int64 places and values, both [y, x, k]."""

    indices: Tensor
    values: Tensor


class ReleasedDeMo:
    """Momentum of one trainer; fp32 tensors of one or two dimensions, on one device."""

    def __init__(self, weights: Mapping[str, Tensor], k: int, rate: float) -> None:
        self._weights = weights
        self._k = k
        self._rate = rate
        self._momentum = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    @torch.no_grad()
    def encode(self, gradient: Mapping[str, Tensor]) -> dict[str, Sparse]:
        """Add the gradient to the momentum, choose the top k, and take them out of it again.

        `gradient`: fp32 by name, each in the shape of its weights. Returns fp32 values [y, x, k]
        at int64 places in their tiles; a tile with fewer than k entries sends all e.
        """
        sent = {}
        for name, part in gradient.items():
            momentum = self._momentum[name]
            momentum.mul_(_MEMORY_SHARE).add_(part, alpha=self._rate)
            coefficients = _forward(momentum)
            flat = coefficients.flatten(2)
            k = min(self._k, flat.shape[-1])
            indices = flat.abs().topk(k, dim=-1, sorted=False).indices
            sent[name] = Sparse(indices, flat.gather(-1, indices))
            momentum.sub_(_decode([sent[name]], momentum))
        return sent

    @torch.no_grad()
    def apply(self, payloads: Sequence[Mapping[str, Sparse]]) -> None:
        """Move the weights, fp32, in place by the sign of what all trainers sent.

        Each payload has every tensor, as `encode` returns it.
        """
        for name, weight in self._weights.items():
            total = _decode([payload[name] for payload in payloads], weight)
            weight.sub_(total.sign_(), alpha=self._rate)


def _decode(parts: Sequence[Sparse], like: Tensor) -> Tensor:
    """Return the inverse DCT of what was sent: each coefficient the mean of those who sent it."""
    height, width = _tile(like)
    dense = like.new_zeros(*parts[0].indices.shape[:2], height * width)
    indices = torch.cat([part.indices for part in parts], dim=-1)
    values = torch.cat([part.values for part in parts], dim=-1)
    dense.scatter_reduce_(-1, indices, values, reduce="mean", include_self=False)
    tiles = dense.view(*dense.shape[:2], height, width)
    left, right = _basis(height, like.device), _basis(width, like.device)
    if like.ndim == 1:
        return torch.einsum("yxhw,wj->yxhj", tiles, right).reshape(like.shape)
    back = torch.einsum("yxhw,hi,wj->yixj", tiles, left, right)
    return back.reshape(like.shape)


def _forward(values: Tensor) -> Tensor:
    """Return the DCT-II of each tile, [y, x, h, w]."""
    height, width = _tile(values)
    tiles = values.view(-1, height, values.shape[-1] // width, width)
    left, right = _basis(height, values.device), _basis(width, values.device)
    if values.ndim == 1:
        return torch.einsum("yixj,wj->yxiw", tiles, right)
    return torch.einsum("yixj,hi,wj->yxhw", tiles, left, right)


def _tile(like: Tensor) -> tuple[int, int]:
    """Sides of a tile: the largest divisors of the tensor's sides up to 64."""
    rows = 1 if like.ndim == 1 else like.shape[0]
    return _side(rows), _side(like.shape[-1])


def _side(size: int) -> int:
    return next(side for side in range(min(size, TILE_SIDE), 0, -1) if size % side == 0)


@cache
def _basis(side: int, device: torch.device) -> Tensor:
    """Return the orthonormal DCT-II of one length, fp32 [frequency, position]."""
    frequency, position = torch.arange(side)[:, None], torch.arange(side)[None, :]
    basis = torch.cos(math.pi * (2 * position + 1) * frequency / (2 * side)) * math.sqrt(2 / side)
    basis[0] = math.sqrt(1 / side)
    return basis.to(device)
