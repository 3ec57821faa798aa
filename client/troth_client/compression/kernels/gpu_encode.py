"""Encode on a GPU, one program per tile: cut, DCT, momentum, choice of the top k, what is sent.

Owns: for equal D(g), the same u, places and signs as `../residual.py` and `../topk.py` to the bit.
Never: fuses a product with a sum outside of the transform (`gpu_compiler.py` forbids it), packs
bytes, or knows of matrices.
Next: `gpu_run.py`, which launches it; `encode.py`, the same on the processor.

The tile is folded from both ends in both directions, as there. So four transforms of 32x32 remain,
with a quarter of the products each. The k-th largest |u| is found bit by bit, by counting: fp32
magnitudes order like their bits.

Triton reads a tensor's name in a kernel's arguments as a pointer to it.
"""

from typing import NamedTuple

import triton.language as tl
from torch import Tensor

from troth_client.compression.kernels.gpu_compiler import entry, from_odd, part

_SIDE = tl.constexpr(64)
_HALF = tl.constexpr(32)
_PLACES = tl.constexpr(4096)
_LEAST_NORMAL = tl.constexpr(2.0**-126)
_MAGNITUDE = tl.constexpr(0x7FFFFFFF)


class Cut(NamedTuple):
    """One matrix in memory: its size, its strides in values, and its first tile.

    Triton may load several neighbours of a row at once, so it may look at columns and strides. Rows
    and the first tile are as `as_odd` makes them.
    """

    odd_rows: int
    columns: int
    row_stride: int
    column_stride: int
    odd_first_tile: int


class Given(NamedTuple):
    """The tensors that encode reads: a matrix of the gradient, M, `inputs.folded_basis`.

    M is u of the last included round, `before`, [T, 64, 64], and the places of its `top` k, int16
    [T, k].
    """

    gradient: Tensor
    before: Tensor
    top: Tensor
    basis: Tensor


class Rule(NamedTuple):
    """The rule of a run: beta and 1 - alpha, and the bits of the gradient a tile is sent from."""

    beta: float
    kept: float
    floor_bits: int


class Found(NamedTuple):
    """The tensors that encode fills; shapes as in `encode.Found`, bools as uint8."""

    u: Tensor
    indices: Tensor
    negative: Tensor
    is_sent: Tensor
    largest: Tensor


@entry
def encode_tiles(
    given: Given, cut: Cut, rule: Rule, found: Found, k: tl.constexpr, is_zero: tl.constexpr
) -> None:
    """Encode the tile of this program. The u of M may lie where the new one will.

    Neither is read if M is zero.
    """
    number = tl.program_id(0)
    tile = (from_odd(cut.odd_first_tile) + number).to(tl.int64)
    at, places = found.u + tile * _PLACES, tl.arange(0, _PLACES)
    if not is_zero:
        _decay(given, rule, at, tile, k)
    coefficients = tl.reshape(_transformed(given, cut, number), (_PLACES,))
    if is_zero:
        u = _flushed(coefficients)
        change = u
    else:
        without = tl.load(at + places)
        u = _flushed(without + coefficients)
        change = u - without
        tl.debug_barrier()  # all threads have read b
    tl.store(at + places, u)
    magnitude = u.to(tl.int32, bitcast=True) & _MAGNITUDE
    largest = tl.max(magnitude, 0)
    moved = tl.max(change.to(tl.int32, bitcast=True) & _MAGNITUDE, 0)
    tl.store(found.largest + tile, largest)
    tl.store(found.is_sent + tile, ((moved >= rule.floor_bits) & (largest > 0)).to(tl.uint8))
    chosen = _chosen(magnitude, k)
    into = tile * k + tl.cumsum(chosen.to(tl.int32), 0) - 1
    tl.store(found.indices + into, places.to(tl.int16), mask=chosen)
    tl.store(found.negative + into, (u < 0).to(tl.uint8), mask=chosen)


@part
def _decay(given: Given, rule: Rule, u: "Tensor", tile: tl.tensor, k: tl.constexpr) -> None:
    """Put b = F(beta * M) of a tile where its u will be.

    The top k lie in registers of other threads, which none can write into: in memory it can.
    """
    before, places = given.before + tile * _PLACES, tl.arange(0, _PLACES)
    top = tl.load(given.top + tile * k + tl.arange(0, k))
    others = _flushed(tl.load(before + places) * rule.beta)
    kept = _flushed(tl.load(before + top) * rule.kept)
    tl.debug_barrier()  # the u of M may lie here
    tl.store(u + places, others)
    tl.debug_barrier()
    tl.store(u + top, _flushed(kept * rule.beta))
    tl.debug_barrier()


@part
def _transformed(given: Given, cut: Cut, number: tl.tensor) -> tl.tensor:
    """Return D of a tile of a matrix, fp32 [64, 64], zeros where the matrix ends."""
    across = (cut.columns + _SIDE - 1) // _SIDE
    near = tl.arange(0, _HALF)
    far = _SIDE - 1 - near
    top, first = number // across * _SIDE, number % across * _SIDE
    a = _part(given.gradient, cut, top + near, first + near)
    b = _part(given.gradient, cut, top + far, first + near)
    c = _part(given.gradient, cut, top + near, first + far)
    d = _part(given.gradient, cut, top + far, first + far)
    even, odd, even_far, odd_far = a + b, a - b, c + d, c - d
    half = near[:, None] * _HALF + near[None, :]
    evens = tl.load(given.basis + half)
    odds = tl.load(given.basis + _HALF * _HALF + half)
    upper = tl.interleave(
        _product(evens, even + even_far, evens), _product(evens, even - even_far, odds)
    )
    lower = tl.interleave(_product(odds, odd + odd_far, evens), _product(odds, odd - odd_far, odds))
    return tl.reshape(tl.permute(tl.join(upper, lower), (0, 2, 1)), (_SIDE, _SIDE))


@part
def _part(gradient: "Tensor", cut: Cut, rows: tl.tensor, columns: tl.tensor) -> tl.tensor:
    """Load the values of some rows and columns of a matrix."""
    at = rows.to(tl.int64)[:, None] * cut.row_stride + columns.to(tl.int64)[None, :] * (
        cut.column_stride
    )
    is_inside = (rows < from_odd(cut.odd_rows))[:, None] & (columns < cut.columns)[None, :]
    return tl.load(gradient + at, mask=is_inside, other=0.0)


@part
def _product(left: tl.tensor, folded: tl.tensor, right: tl.tensor) -> tl.tensor:
    """Return left^T folded right in fp32, never in a shorter format."""
    rows = tl.dot(folded, right, input_precision="ieee")
    return tl.dot(tl.trans(left), rows, input_precision="ieee")


@part
def _chosen(magnitude: tl.tensor, k: tl.constexpr) -> tl.tensor:
    """Return which k of 4096 are the largest, ties to the lowest place."""
    least = 0
    for n in range(31):
        probe = least | (1 << (30 - n))
        count = tl.sum((magnitude >= probe).to(tl.int32), 0)
        least = tl.where(count >= k, probe, least)
    is_larger = magnitude > least
    is_equal = magnitude == least
    room = k - tl.sum(is_larger.to(tl.int32), 0)
    return is_larger | (is_equal & (tl.cumsum(is_equal.to(tl.int32), 0) <= room))


@part
def _flushed(value: tl.tensor) -> tl.tensor:
    """Return +0 for -0 and for everything below the least normal number."""
    return tl.where(tl.abs(value) < _LEAST_NORMAL, 0.0, value)
