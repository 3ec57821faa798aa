"""Questions to compiled kernels before the first round, with torch on the processor as the judge.

Owns: cases at the edges. They are the most signs on a tile, entries of Q that are zero, weights of
the known-answer test, a learning rate of zero, tiles that are cut off, ties.
Never: trusts torch blindly: `../known_answer.py` has tested exactly these functions before.
Next: `choice.py`, which acts on the answer.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from troth_attestation import bulk
from troth_attestation.pieces import CHUNK_BYTES
from troth_attestation.selection import LEAST_NORMAL
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_BYTES, TILE_COEFFICIENTS, TILE_SIDE
from troth_client.compression.basis import float_basis
from troth_client.compression.errors import NonFiniteError
from troth_client.compression.exact import basis_pair, inverse, sign_of, step_
from troth_client.compression.host import leaves_of
from troth_client.compression.kernels.base import (
    MOST_K,
    Encode,
    Encoded,
    Kernels,
    LeafHashes,
    Update,
)
from troth_client.compression.residual import Carried, Moved, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k

_SHAPES = {"cut": (70, 65), "flat": (130,), "square": (64, 192)}
_LAYOUT = TileLayout.from_shapes(_SHAPES)
_LARGEST_ERROR = 8
"""Random tiles come far closer than `MAX_ERROR`; products in a shorter format do not."""
_RULE = Residual(999_000, 400_000)
_PROCESSOR = torch.device("cpu")
_ZEROS = torch.tensor([0.0, -0.0, -0.0])
"""Where b is zero, a step still decides on the sign of a zero: d = -1 makes +0 of -0."""


def wrong_answer(
    kernels: Kernels, weights: Tensor, constants: tuple[float, float], device: torch.device
) -> str:
    """Return the first question that the kernels answer differently there; "" if there is none.

    `weights` are hard ones for a and b, fp32 of any length.
    """
    many = _payloads(kernels.max_fields)
    still = constants[0], 0.0
    wrong = _wrong_update(kernels.update, many, weights, constants, device)
    wrong = wrong or _wrong_update(kernels.update, many[:1], _ZEROS, still, device)
    return wrong or wrong_encode(kernels.encode, device, kernels.asked_k)


def _wrong_update(
    update: Update,
    payloads: Sequence[Signs],
    hard: Tensor,
    constants: tuple[float, float],
    device: torch.device,
) -> str:
    there = _to(_weights(hard), device)
    update(there, payloads, _LAYOUT, constants)
    found = _to(there, _PROCESSOR)
    expected = _weights(hard)
    quantities = inverse(_counts(payloads), basis_pair(_PROCESSOR, torch.int64))
    for name, part in _LAYOUT.from_tiles(sign_of(quantities)).items():
        step_(expected[name], part, *constants)
        if not torch.equal(found[name].view(torch.int32), expected[name].view(torch.int32)):
            return f"other weights in {name!r} after a step with b = {constants[1]}"
    return ""


def wrong_encode(encode: Encode, device: torch.device, asked_k: Sequence[int]) -> str:
    """Return what is wrong with an encoding on a device, judged by torch on the processor."""
    draw = torch.Generator().manual_seed(1)
    gradient = {n: torch.randn(s, generator=draw) for n, s in _SHAPES.items()}
    gradient["square"][:, TILE_SIDE:] = 0
    gradient["square"][:, -TILE_SIDE:] = 1e-40  # D is below what counts as zero
    momentum = torch.randn(_LAYOUT.num_tiles, TILE_SIDE, TILE_SIDE, generator=draw).round()
    momentum[6] = 0
    momentum[6, :, 1] = float(LEAST_NORMAL)  # decays to zero
    there = _to(gradient, device)
    try:
        coefficients = encode(there, None, _LAYOUT, _RULE, MOST_K, None).u.cpu()
        error = _units_off(coefficients, _LAYOUT.to_tiles(gradient).double())
        if error > _LARGEST_ERROR:
            return f"a DCT that is not precise enough: {error:.1f} units off"
        for k in asked_k:
            wrong = _wrong_choice(encode, there, coefficients, momentum, k)
            if wrong:
                return wrong
    except NonFiniteError as error:
        return f"a choice that fails: {error}"
    return ""


def _wrong_choice(
    encode: Encode, there: Mapping[str, Tensor], coefficients: Tensor, momentum: Tensor, k: int
) -> str:
    """Return what is wrong with u and its choice: on no momentum, beside one, and in its place."""
    carried = Carried(momentum, top_k(momentum, k).indices)
    device = next(iter(there.values())).device
    own = Carried(momentum.clone().to(device), carried.indices)
    for before, given, into in ((None, None, None), (carried, own, None), (carried, own, own.u)):
        found = encode(there, given, _LAYOUT, _RULE, k, into)
        if not _is_right(found, _RULE.accumulate(before, coefficients), k):
            return f"another choice of {k} coefficients"
        if into is None and not _has_bits(own.u, momentum):
            return "another momentum after an encoding beside it"
    return ""


def wrong_hashes(leaf_hashes: LeafHashes, device: torch.device) -> str:
    """Return for which leaves a device has other hashes than the host; "" if for none.

    The first tensor has one leaf more than two whole programs, or one. Both end within a leaf. A
    GPU is asked about leaves of both lengths; the interpreter takes seconds for each.
    """
    counts = {TILE_BYTES: (9, 1)}
    if device.type == "cuda":
        counts = {TILE_BYTES: (17, 1), CHUNK_BYTES: (5, 1)}
    for leaf_bytes, leaves in counts.items():
        draw = torch.Generator().manual_seed(leaf_bytes)
        values = [torch.randn(n * leaf_bytes // 4 + 3, generator=draw) for n in leaves]
        expected = bulk.leaf_hashes(leaves_of([one.numpy() for one in values], leaf_bytes))
        if leaf_hashes([one.to(device) for one in values], leaf_bytes) != expected:
            return f"other hashes of leaves of {leaf_bytes} bytes"
    return ""


def _units_off(coefficients: Tensor, tiles: Tensor) -> float:
    """Return the largest distance to the exact DCT of fp64 tiles, in units of 2^-24 * |tile|.

    The distance by which a number below the least normal one becomes zero does not count.
    """
    basis = torch.from_numpy(float_basis())
    error = (coefficients - basis @ tiles @ basis.T).abs().amax(dim=(1, 2)) - float(LEAST_NORMAL)
    return float((error.clamp(min=0) / (2.0**-24 * tiles.norm(dim=(1, 2)) + 2.0**-149)).max())


def _is_right(found: Encoded, moved: Moved, k: int) -> bool:
    """Whether u has the bits of another one, and the choice is that of torch."""
    top = top_k(moved.u, k)
    return (
        _has_bits(found.u, moved.u)
        and np.array_equal(found.top.indices, top.indices)
        and np.array_equal(found.top.negative, top.negative)
        and np.array_equal(found.is_sent, _RULE.is_sent(moved))
    )


def _has_bits(found: Tensor, expected: Tensor) -> bool:
    """Whether a tensor of a device has the bits of one of the processor."""
    return torch.equal(found.cpu().view(torch.int32), expected.view(torch.int32))


def _to(tensors: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def _weights(hard: Tensor) -> dict[str, Tensor]:
    """Fill every tensor with the hard weights, again and again."""
    count = max(math.prod(shape) for shape in _SHAPES.values())
    flat = hard.repeat(-(-count // len(hard)))
    return {name: flat[: math.prod(s)].clone().view(s) for name, s in _SHAPES.items()}


def _payloads(num_fields: int) -> list[Signs]:
    """Return payloads of k = 64 with so many fields: hard signs on the tiles of `_LAYOUT`."""
    draw = np.random.default_rng(2)
    shape = (_LAYOUT.num_tiles, num_fields)
    indices = draw.integers(TILE_COEFFICIENTS, size=shape, dtype=np.int16)
    negative = draw.integers(2, size=shape).astype(np.bool_)
    # All on one place, whose basis values are among the largest.
    for tile, is_negative in ((1, False), (6, True)):
        indices[tile], negative[tile] = TILE_COEFFICIENTS - 1, is_negative
    # Q is small and a multiple of 2048, since row 0 of the basis is: lower digits are zero.
    indices[2], negative[2] = 0, np.arange(num_fields) % 2
    indices[2, :2], negative[2, :2] = (1, 2), (False, True)
    # An antisymmetric C: Q is zero on the diagonal, by cancellation. The rest cancels itself.
    rows, columns = (places[: num_fields // 2] for places in np.triu_indices(TILE_SIDE, 1))
    count = len(rows)
    indices[4] = 0
    indices[4, :count], indices[4, count : 2 * count] = rows * 64 + columns, columns * 64 + rows
    negative[4] = np.arange(num_fields) % 2
    negative[4, :count], negative[4, count : 2 * count] = False, True
    present = np.ones((_LAYOUT.num_tiles, num_fields // MOST_K), np.bool_)
    present[5], present[7, ::2] = False, False
    return [
        Signs(
            present[:, n].copy(),
            indices[:, n * MOST_K : (n + 1) * MOST_K] * present[:, n, None],
            negative[:, n * MOST_K : (n + 1) * MOST_K] & present[:, n, None],
        )
        for n in range(num_fields // MOST_K)
    ]


def _counts(payloads: Sequence[Signs]) -> Tensor:
    """Return C of these payloads, int32 [T, 64, 64]."""
    counts = np.zeros((_LAYOUT.num_tiles, TILE_COEFFICIENTS), np.int32)
    tiles = np.arange(_LAYOUT.num_tiles)[:, None]
    for signs in payloads:
        values = np.where(signs.negative, -1, 1) * signs.present[:, None]
        np.add.at(counts, (tiles, signs.indices), values)
    return torch.from_numpy(counts).view(-1, TILE_SIDE, TILE_SIDE)
