"""Encode in one pass over a tile: cut, DCT, momentum, choice of the top k, what is sent.

Owns: for equal D(g), the same u, places and signs as `../residual.py` and `../topk.py` to the bit.
Never: writes into the gradient or the momentum, packs bytes, or splits work between threads.
Next: `panel.py` for the product; `../dct.py`, whose D(g) may differ in the last bits.

The DCT takes each tile from both ends: basis rows are even or odd, so sums and differences of
mirrored entries need half of the products. `base.MAX_ERROR` bounds how far D(g) lies from the
exact one.

Shape legend: T tiles, k coefficients chosen in each.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from troth_client.compression.kernels.panel import entry, fetch_tile, part, product

Float32 = NDArray[np.float32]

_SIDE = 64
_HALF = 32
_LEAST_NORMAL = np.float32(2.0**-126)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_CHOSEN = np.int32(-1)
_four_rows = product(4, _SIDE)
_eight_rows = product(8, _HALF)


class Rule(NamedTuple):
    """The rule of a run: beta and 1 - alpha, the bits of the gradient a tile is sent from, k."""

    beta: np.float32
    kept: np.float32
    floor_bits: np.int32
    k: int


class Before(NamedTuple):
    """M: u of the last included round, [T, 64, 64], and the places of its top k, int16 [T, k].

    Both have no tile where M is zero.
    """

    u: Float32
    indices: NDArray[np.int16]


class Found(NamedTuple):
    """The arrays that encode fills.

    u: [T, 64, 64]; indices: int16 [T, k]; negative: bool [T, k]; is_sent: bool [T]; largest: the
    bits of the largest |u| of each tile, int32 [T]. Infinities and NaNs come last.
    """

    u: Float32
    indices: NDArray[np.int16]
    negative: NDArray[np.bool_]
    is_sent: NDArray[np.bool_]
    largest: NDArray[np.int32]


class _Work(NamedTuple):
    """Scratch memory of one thread: two tiles, b, |u| as bits, and the largest of each row."""

    folded: Float32
    product: Float32
    without: Float32
    magnitude: NDArray[np.int32]
    rows: NDArray[np.int32]


@entry
def encode_tiles(
    gradient: Float32,
    before: Before,
    tiles: tuple[int, int, int],
    basis: Float32,
    rule: Rule,
    found: Found,
) -> None:
    """Encode the tiles from one to another of a matrix, which begins at a third one.

    gradient: fp32 [rows, columns]; basis: as `inputs.folded_basis` returns it.
    """
    across = (gradient.shape[1] + _SIDE - 1) // _SIDE
    work = _Work(
        np.empty((_SIDE, _SIDE), np.float32),
        np.empty((_SIDE, _SIDE), np.float32),
        np.zeros((_SIDE, _SIDE), np.float32),
        np.empty((_SIDE, _SIDE), np.int32),
        np.empty(_SIDE, np.int32),
    )
    for number in range(tiles[0], tiles[1]):
        tile = tiles[2] + number
        fetch_tile(gradient, (number + 1) // across * _SIDE, (number + 1) % across * _SIDE)
        _fold_rows(gradient, number // across * _SIDE, number % across * _SIDE, work)
        _transform(basis, work)
        if len(before.u):
            _decay(before.u[tile], before.indices[tile], rule, work.without)
        moved = _move(work, found.u[tile])
        found.largest[tile] = _choose(work, found.indices[tile])
        found.is_sent[tile] = moved >= rule.floor_bits and found.largest[tile] > 0
        for n in range(rule.k):
            index = found.indices[tile, n]
            found.negative[tile, n] = found.u[tile, index >> 6, index & (_SIDE - 1)] < 0


@part
def _fold_rows(gradient: Float32, top: int, first: int, work: _Work) -> None:
    """Put sums of mirrored rows of a tile over their differences; zeros where the matrix ends."""
    rows = gradient.shape[0] - top
    columns = gradient.shape[1] - first
    tile = gradient[top : top + _SIDE, first : first + _SIDE]
    if rows < _SIDE or columns < _SIDE:
        work.product[:] = 0
        work.product[: min(rows, _SIDE), : min(columns, _SIDE)] = tile
        _fold(work.product, work.folded)
    else:
        _fold(tile, work.folded)


@part
def _fold(tile: Float32, out: Float32) -> None:
    for row in range(_HALF):
        for column in range(_SIDE):
            one, other = tile[row, column], tile[_SIDE - 1 - row, column]
            out[row, column] = one + other
            out[_HALF + row, column] = one - other


@part
def _transform(basis: Float32, work: _Work) -> None:
    """Put D of folded rows into `product`: the even frequencies of a row, then the odd ones."""
    for frequency in range(0, _HALF, 4):
        for odd in range(2):
            _four_rows(
                (work.product, (2 * frequency + odd) * _SIDE, 0, 2 * _SIDE),
                (basis, odd * _HALF * _HALF + frequency, _HALF, 1),
                (work.folded, odd * _HALF * _SIDE, _SIDE, 0),
                _HALF,
            )
    for row in range(_SIDE):
        for column in range(_HALF):
            one, other = work.product[row, column], work.product[row, _SIDE - 1 - column]
            work.folded[row, column] = one + other
            work.folded[row, _HALF + column] = one - other
    for row in range(0, _SIDE, 8):
        for odd in range(2):
            _eight_rows(
                (work.product, row * _SIDE + odd * _HALF, 0, _SIDE),
                (work.folded, row * _SIDE + odd * _HALF, 1, _SIDE),
                (basis, odd * _HALF * _HALF, _HALF, 0),
                _HALF,
            )


@part
def _decay(u: Float32, indices: NDArray[np.int16], rule: Rule, out: Float32) -> None:
    """Put b = F(beta * M) into `out`; of the places at `indices` M keeps a share of u."""
    for row in range(_SIDE):
        for column in range(_SIDE):
            out[row, column] = _flushed(rule.beta * u[row, column])
    for n in range(len(indices)):
        row, column = indices[n] >> 6, indices[n] & (_SIDE - 1)
        kept = _flushed(rule.kept * u[row, column])
        out[row, column] = _flushed(rule.beta * kept)


@part
def _move(work: _Work, u: Float32) -> np.int32:
    """Write u = F(b + D), |u| and the largest of each row; return the largest |u - b|; as bits."""
    furthest = np.int32(0)
    change = work.folded[0]
    change_bits = change.view(np.int32)
    for row in range(_SIDE):
        for pair in range(_HALF):
            even, odd = work.product[row, pair], work.product[row, _HALF + pair]
            u[row, 2 * pair] = _flushed(work.without[row, 2 * pair] + even)
            u[row, 2 * pair + 1] = _flushed(work.without[row, 2 * pair + 1] + odd)
        bits = u[row].view(np.int32)
        for column in range(_SIDE):
            change[column] = u[row, column] - work.without[row, column]
        largest = np.int32(0)
        for column in range(_SIDE):
            magnitude = bits[column] & _MAGNITUDE
            work.magnitude[row, column] = magnitude
            largest = max(largest, magnitude)
            furthest = max(furthest, change_bits[column] & _MAGNITUDE)
        work.rows[row] = largest
    return furthest


@part
def _choose(work: _Work, indices: NDArray[np.int16]) -> np.int32:
    """Choose the largest |u| again and again, the first among equals; return the very largest.

    The chosen ones are marked, and only the row that one came from is looked through again.
    """
    first = np.int32(0)
    for n in range(len(indices)):
        best = _largest(work.rows)
        first = best if n == 0 else first
        row = _place(work.rows, best)
        column = _place(work.magnitude[row], best)
        work.magnitude[row, column] = _CHOSEN
        work.rows[row] = _largest(work.magnitude[row])
        _insert(indices, n, int(row * _SIDE + column))
    return first


@part
def _largest(values: NDArray[np.int32]) -> np.int32:
    found = _CHOSEN
    for n in range(_SIDE):
        found = max(found, values[n])
    return found


@part
def _place(values: NDArray[np.int32], wanted: np.int32) -> np.int32:
    """Return the lowest of the 64 places that hold a value."""
    found = np.int32(_SIDE)
    for n in range(_SIDE):
        found = min(found, np.int32(n) if values[n] == wanted else np.int32(_SIDE))
    return found


@part
def _insert(indices: NDArray[np.int16], count: int, index: int) -> None:
    """Put an index among the first `count`, which ascend."""
    at = count
    while at > 0 and indices[at - 1] > index:
        indices[at] = indices[at - 1]
        at -= 1
    indices[at] = index


@part
def _flushed(value: np.float32) -> np.float32:
    """Return +0 for -0 and for everything below the least normal number."""
    return np.float32(0) if abs(value) < _LEAST_NORMAL else value
