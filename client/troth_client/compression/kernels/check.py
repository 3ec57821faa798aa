"""Questions to compiled kernels before the first round, with torch as the judge.

Owns: cases at the edges: the most signs on a tile, entries of Q that are zero, weights of the
known-answer test, tiles that are cut off, ties.
Never: trusts torch blindly: `../known_answer.py` has tested exactly these functions before.
Next: `choice.py`, which acts on the answer.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_client.compression.basis import float_basis
from troth_client.compression.exact import basis_pair, inverse, sign_of, step_
from troth_client.compression.kernels.base import MAX_ERROR, MAX_FIELDS, Encode, Kernels, Update
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k

_K = 64
_SHAPES = {"cut": (70, 65), "flat": (130,), "square": (64, 128)}
_LAYOUT = TileLayout.from_shapes(_SHAPES)
_RULE = Residual(999_000, 1_000_000)


def wrong_answer(kernels: Kernels, weights: Tensor, constants: tuple[float, float]) -> str:
    """Return the first question that the kernels answer differently; "" if there is none.

    `weights` are hard ones for a and b, fp32 of any length.
    """
    return _wrong_update(kernels.update, weights, constants) or _wrong_encode(kernels.encode)


def _wrong_update(update: Update, hard: Tensor, constants: tuple[float, float]) -> str:
    payloads = _payloads()
    found = _weights(hard)
    update(found, payloads, _LAYOUT, constants)
    expected = _weights(hard)
    quantities = inverse(_counts(payloads), basis_pair(torch.device("cpu"), torch.int64))
    for name, part in _LAYOUT.from_tiles(sign_of(quantities)).items():
        step_(expected[name], part, *constants)
        if not torch.equal(found[name].view(torch.int32), expected[name].view(torch.int32)):
            return f"other weights in {name!r} after a step"
    return ""


def _wrong_encode(encode: Encode) -> str:
    draw = torch.Generator().manual_seed(1)
    gradient = {n: torch.randn(s, generator=draw) for n, s in _SHAPES.items()}
    gradient["square"][:, TILE_SIDE:] = 0
    momentum = torch.randn(_LAYOUT.num_tiles, TILE_SIDE, TILE_SIDE, generator=draw).round()
    coefficients = encode(gradient, None, _LAYOUT, _RULE, _K, None).u
    tiles = _LAYOUT.to_tiles(gradient).double()
    basis = torch.from_numpy(float_basis())
    error = (coefficients - basis @ tiles @ basis.T).abs().amax(dim=(1, 2))
    if bool((error > MAX_ERROR * 2.0**-24 * tiles.norm(dim=(1, 2))).any()):
        return "a DCT that is not precise enough"
    for before in (momentum, None):
        moved = _RULE.accumulate(before, coefficients)
        found = encode(gradient, before, _LAYOUT, _RULE, _K, before)
        top = top_k(moved.u, _K)
        is_equal = (
            np.array_equal(found.u.numpy().view(np.int32), moved.u.numpy().view(np.int32))
            and np.array_equal(found.top.indices, top.indices)
            and np.array_equal(found.top.negative, top.negative)
            and np.array_equal(found.is_sent, _RULE.is_sent(moved))
        )
        if not is_equal:
            return "another choice of coefficients"
    return ""


def _weights(hard: Tensor) -> dict[str, Tensor]:
    """Fill every tensor with the hard weights, again and again."""
    count = max(math.prod(shape) for shape in _SHAPES.values())
    flat = hard.repeat(-(-count // len(hard)))
    return {name: flat[: math.prod(s)].clone().view(s) for name, s in _SHAPES.items()}


def _payloads() -> list[Signs]:
    """Return 64 payloads of k = 64: hard signs on the tiles of `_LAYOUT`."""
    draw = np.random.default_rng(2)
    shape = (_LAYOUT.num_tiles, MAX_FIELDS)
    indices = draw.integers(TILE_COEFFICIENTS, size=shape, dtype=np.int16)
    negative = draw.integers(2, size=shape).astype(np.bool_)
    indices[1], negative[1] = TILE_COEFFICIENTS - 1, False  # all on one place
    # An antisymmetric C: Q is zero on the diagonal, by cancellation. The rest cancels itself.
    rows, columns = np.triu_indices(TILE_SIDE, 1)
    count = len(rows)
    indices[4] = 0
    indices[4, :count], indices[4, count : 2 * count] = rows * 64 + columns, columns * 64 + rows
    negative[4] = np.arange(MAX_FIELDS) % 2
    negative[4, :count], negative[4, count : 2 * count] = False, True
    present = np.ones((_LAYOUT.num_tiles, _K), np.bool_)
    present[5], present[6, ::2] = False, False
    return [
        Signs(
            present[:, n].copy(),
            indices[:, n * _K : (n + 1) * _K] * present[:, n, None],
            negative[:, n * _K : (n + 1) * _K] & present[:, n, None],
        )
        for n in range(_K)
    ]


def _counts(payloads: Sequence[Signs]) -> Tensor:
    """Return C of these payloads, int32 [T, 64, 64]."""
    counts = np.zeros((_LAYOUT.num_tiles, TILE_COEFFICIENTS), np.int32)
    tiles = np.arange(_LAYOUT.num_tiles)[:, None]
    for signs in payloads:
        values = np.where(signs.negative, -1, 1) * signs.present[:, None]
        np.add.at(counts, (tiles, signs.indices), values)
    return torch.from_numpy(counts).view(-1, TILE_SIDE, TILE_SIDE)
