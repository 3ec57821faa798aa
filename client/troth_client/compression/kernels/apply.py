"""Apply in one pass over a tile: signs, sparse rows, inverse DCT, sign, weight step.

Owns: the same weights as `../apply.py` to the bit, in fp32 and without an exact Q in most places.
Never: checks payloads, or splits work between threads (`run.py` does).
Next: `panel.py` for the product; `../exact.py` for the arithmetic that this one must equal.

Why the sign is right. n signs fall on a tile, n <= 4096. Basis values are integers up to 2896, so
each entry of R = C B is an integer up to 2896 n < 2^24: fp32 holds it and all partial sums. An
entry of Q = B^T R is a sum of 64 products; 32 even and 32 odd ones are summed apart and then added
or subtracted. With at most 34 roundings, each a factor within 1 +- 2^-24, in any order, fused or
not, it is wrong by less than 34.01 * 2^-24 * 2896^2 * n < 18 n. So a larger |Q| has its sign. The
others, one in some ten thousand, are computed again in int64.

Shape legend: T tiles, K fields of all payloads together in a tile.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from troth_client.compression.kernels.inputs import NEGATIVE
from troth_client.compression.kernels.panel import entry, fetch_tile, part, product, scaled_row

Float32 = NDArray[np.float32]

_DOUBT = np.float32(18)
_SIDE = 64
_HALF = 32
_four_rows = product(4, _SIDE)
_add_row = scaled_row(_SIDE)


class _Work(NamedTuple):
    """Scratch memory of one thread. A slot is a row of C that is not zero; odd ones come second.

    left: the basis of each slot at the first 32 positions, [2 * 32, 32]; right: R, [2 * 32, 64];
    halves: the sums over even slots, then over odd ones, [2 * 32, 64]; quantities: a row of Q.
    """

    left: Float32
    right: Float32
    halves: Float32
    quantities: Float32


@entry
def apply_tiles(
    weights: Float32,
    codes: NDArray[np.int16],
    tiles: tuple[int, int],
    basis: Float32,
    constants: tuple[np.float32, np.float32],
) -> None:
    """Step the weights under the tiles from one to another of a matrix, in place.

    weights: fp32 [rows, columns]; codes: int16 [tiles of the matrix, K]; basis: B as fp32; the
    constants are a and b.
    """
    rows, columns = weights.shape
    across = (columns + _SIDE - 1) // _SIDE
    work = _Work(
        np.empty((_SIDE, _HALF), np.float32),
        np.empty((_SIDE, _SIDE), np.float32),
        np.empty((_SIDE, _SIDE), np.float32),
        np.empty(_SIDE, np.float32),
    )
    for tile in range(tiles[0], tiles[1]):
        fetch_tile(weights, (tile + 1) // across * _SIDE, (tile + 1) % across * _SIDE)
        slots, n = _gather(codes[tile], basis, work)
        _multiply(slots, work)
        top, first = tile // across * _SIDE, tile % across * _SIDE
        last = min(first + _SIDE, columns)
        for row in range(min(_SIDE, rows - top)):
            if _quantities(row, _DOUBT * n, work):
                _settle(row, slots, _DOUBT * n, work)
            _step(weights[top + row, first:last], work.quantities, constants)


@part
def _gather(
    fields: NDArray[np.int16], basis: Float32, work: _Work
) -> tuple[tuple[int, int], np.float32]:
    """Fill `left` and `right` for one tile: the number of even and odd slots, and of signs."""
    slots = np.full(_SIDE, -1, np.int64)
    even = odd = n = 0
    for field in fields:
        if field < 0:
            continue
        n += 1
        frequency = (field & (NEGATIVE - 1)) >> 6
        slot = slots[frequency]
        if slot < 0:
            slot = _HALF + odd if frequency & 1 else even
            odd += frequency & 1
            even += 1 - (frequency & 1)
            slots[frequency] = slot
            for j in range(_SIDE):
                work.right[slot, j] = 0
            for i in range(_HALF):
                work.left[slot, i] = basis[frequency, i]
        sign = np.float32(1) - np.float32(2) * np.float32(field >> 12)
        column = field & (_SIDE - 1)
        _add_row(work.right, slot * _SIDE, sign, basis, column * _SIDE)
    return (even, odd), np.float32(n)


@part
def _multiply(slots: tuple[int, int], work: _Work) -> None:
    """Sum up the even slots and the odd ones, for the first 32 positions of each column."""
    for i in range(0, _HALF, 4):
        for odd in range(2):
            _four_rows(
                (work.halves, (odd * _HALF + i) * _SIDE, 0, _SIDE),
                (work.left, odd * _HALF * _HALF + i, _HALF, 1),
                (work.right, odd * _HALF * _SIDE, _SIDE, 0),
                slots[odd],
            )


@part
def _quantities(row: int, doubt: np.float32, work: _Work) -> int:
    """Put a row of Q, rounded, into `work`; return how many of its signs are in doubt."""
    half = min(row, _SIDE - 1 - row)
    sign = np.float32(1 if row < _HALF else -1)
    in_doubt = 0
    for j in range(_SIDE):
        found = work.halves[half, j] + sign * work.halves[_HALF + half, j]
        work.quantities[j] = found
        in_doubt += abs(found) <= doubt
    return in_doubt


@part
def _settle(row: int, slots: tuple[int, int], doubt: np.float32, work: _Work) -> None:
    """Compute the entries of a row again whose sign is in doubt, in int64."""
    half = min(row, _SIDE - 1 - row)
    sign = np.int64(1 if row < _HALF else -1)
    for j in range(_SIDE):
        if abs(work.quantities[j]) > doubt:
            continue
        exact = np.int64(0)
        for s in range(slots[0]):
            exact += np.int64(work.left[s, half]) * np.int64(work.right[s, j])
        for s in range(_HALF, _HALF + slots[1]):
            exact += sign * np.int64(work.left[s, half]) * np.int64(work.right[s, j])
        work.quantities[j] = np.float32(exact)


@part
def _step(weights: Float32, quantities: Float32, constants: tuple[np.float32, np.float32]) -> None:
    """Do w <- w * a, then w <- w - b * sign(Q): two roundings, never fused.

    b is multiplied by the sign, as torch does: with b = 0 the product has the sign of a zero.
    """
    decay, rate = constants
    for j in range(len(weights)):
        quantity = quantities[j]
        sign = np.float32(quantity > 0) - np.float32(quantity < 0)
        weights[j] = weights[j] * decay - sign * rate
