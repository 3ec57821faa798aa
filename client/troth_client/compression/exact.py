"""The arithmetic of consensus: from counts to Q, and one weight step (protocol section 5.5).

Owns: operations whose result is the same bits on every device that passes `known_answer.py`.
Never: a compiled, fused or reduced-precision kernel; never a loop over payloads (`apply.py`).
Next: `known_answer.py`, which tests these two functions on a device before they are trusted.

Why fp64 is exact: |C| <= 64, and a column of |B| sums to at most 2^17, so |Q| <= 2^40. Every
partial sum is an integer far below 2^53, in any order, with or without fused multiply-add.
"""

import math
import struct

import numpy as np
import torch
from torch import Tensor

from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import integer_basis
from troth_client.compression.errors import InexactConstantError


def basis_pair(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return B^T and B, contiguous [64, 64], for `inverse`; dtype int64 or float64."""
    basis = torch.from_numpy(integer_basis()).to(device, dtype)
    return basis.T.contiguous(), basis


def inverse_memory(num_tiles: int, basis: tuple[Tensor, Tensor]) -> Tensor:
    """Return memory for `inverse` of so many tiles: fresh memory costs as much as the products."""
    return basis[1].new_empty((2, num_tiles, TILE_SIDE, TILE_SIDE))


def inverse(counts: Tensor, basis: tuple[Tensor, Tensor], memory: Tensor | None = None) -> Tensor:
    """Return Q = B^T C B of each tile; counts is an integer tensor [n, 64, 64], Q has basis dtype.

    Q lies in `memory`, if given, until the next call. Keep n at most 1024, so that both products
    stay in cache.
    """
    if memory is None:
        memory = inverse_memory(len(counts), basis)
    values: Tensor = memory[0, : len(counts)]
    rows: Tensor = memory[1, : len(counts)]
    values.copy_(counts)
    multiply = multiply_here if values.device.type == "cpu" else multiply_there
    multiply(values, rows, basis)
    return values


def multiply_there(values: Tensor, rows: Tensor, basis: tuple[Tensor, Tensor]) -> None:
    """Put Q of the counts in `values` in their place; `rows` are overwritten."""
    turned, plain = basis
    torch.matmul(values.view(-1, TILE_SIDE), plain, out=rows.view(-1, TILE_SIDE))
    torch.matmul(turned, rows, out=values)


def multiply_here(values: Tensor, rows: Tensor, basis: tuple[Tensor, Tensor]) -> None:
    """Do the same on a processor: numpy multiplies tile by tile, without threads.

    That takes less than half of the time of torch's product of stacks.
    """
    turned, plain = basis
    np.matmul(values.numpy(), plain.numpy(), out=rows.numpy())
    np.matmul(turned.numpy(), rows.numpy(), out=values.numpy())


def sign_of(quantities: Tensor) -> Tensor:
    """Return sign(Q) as int8 in {-1, 0, 1}."""
    return quantities.sign().to(torch.int8)


def check_constants(decay: float, rate: float) -> None:
    """Raise InexactConstantError unless a in (0, 1] and b >= 0 are fp32 numbers."""
    if not 0.0 < decay <= 1.0 or not is_fp32(decay):
        raise InexactConstantError(
            "a in (0, 1] that is exactly an fp32 number", repr(decay), "Use rules.exact."
        )
    if not 0.0 <= rate < math.inf or not is_fp32(rate):
        raise InexactConstantError(
            "b >= 0 that is exactly an fp32 number", repr(rate), "Use rules.exact."
        )


def is_fp32(value: float) -> bool:
    """Tell whether a float is exactly an fp32 number."""
    try:
        return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
    except OverflowError:
        return False


def step_(weights: Tensor, direction: Tensor, decay: float, rate: float) -> None:
    """Do w <- w * a, then w <- w - b * d, in place: fp32 weights, int8 direction of one shape.

    Two roundings: b * d is exact, so the kernel of the second line cannot add one. a = 1 (no weight
    decay) leaves every bit as it is, so the first line is skipped.
    """
    if decay != 1.0:
        weights.mul_(decay)
    weights.sub_(direction, alpha=rate)
