"""Apply on a GPU, one program per tile: signs, sparse rows, inverse DCT, sign, weight step.

Owns: the same weights as `../apply.py` to the bit, in integers up to the sign.
Never: fuses the two roundings of a step (`gpu_compiler.py` forbids it), or checks payloads.
Next: `gpu_run.py`, which launches it; `../exact.py` for the arithmetic that this one must equal.

Why it is exact. Products of int8 with int32 sums are, and GPUs are built for them. A basis value is
64 high + low, with |high| <= 46 and |low| <= 32. A field adds a signed row of both to R = C B. With
n <= MAX_FIELDS signs on a tile, |R| <= 2896 n < 127 * (2^16 + 2^8 + 1), so three signed digits to
base 256 hold it, each an int8. Q = B^T R is then a sum of six products, each below 2^20 in any
order. Carries bring the three digits of Q to one sign, in int32.
"""

from typing import Final, NamedTuple

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from troth_client.compression.kernels.gpu_compiler import entry, from_odd, part
from troth_client.compression.kernels.gpu_encode import Cut

MAX_FIELDS: Final = 2560
"""Signs on one tile up to which this is exact: 64 payloads of k = 32, or 40 of k = 64."""
BASE: Final = 64
"""A basis value is BASE * high + low."""

_BASE = tl.constexpr(BASE)
_SIDE = tl.constexpr(64)
_NEGATIVE = tl.constexpr(4096)


class Fields(NamedTuple):
    """The signs of all payloads, int16 [T, n] as `inputs.codes` returns them; n by `as_odd`."""

    codes: Tensor
    odd_number: int


class Halves(NamedTuple):
    """The integer basis in two halves, int8 [64, 64] each."""

    high: Tensor
    low: Tensor


class Constants(NamedTuple):
    """a and b, fp32 numbers."""

    decay: float
    rate: float


def halves(basis: NDArray[np.int16]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return high and low of a basis, int8 [64, 64] each."""
    high = (basis + BASE // 2) // BASE
    return high.astype(np.int8), (basis - BASE * high).astype(np.int8)


@entry
def apply_tiles(
    weights: "Tensor", cut: Cut, fields: Fields, halves: Halves, constants: Constants
) -> None:
    """Step the weights under the tile of this program, in place."""
    number = tl.program_id(0)
    tile = from_odd(cut.odd_first_tile) + number
    across = (cut.columns + _SIDE - 1) // _SIDE
    side = tl.arange(0, _SIDE)
    is_up, is_down = _signs(fields, halves, tile.to(tl.int64))
    rows = number // across * _SIDE + side
    columns = number % across * _SIDE + side
    at = rows.to(tl.int64)[:, None] * cut.row_stride + columns.to(tl.int64)[None, :] * (
        cut.column_stride
    )
    is_inside = (rows < from_odd(cut.odd_rows))[:, None] & (columns < cut.columns)[None, :]
    weight = tl.load(weights + at, mask=is_inside, other=0.0)
    # A product, and no -b: older Triton computes 0 - b for it, which is +0 where b is zero.
    sign = is_up.to(tl.float32) - is_down.to(tl.float32)
    tl.store(weights + at, weight * constants.decay - sign * constants.rate, mask=is_inside)


@part
def _signs(fields: Fields, halves: Halves, tile: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return where Q > 0 and where Q < 0, [64, 64]."""
    side = tl.arange(0, _SIDE)
    high, low = _rows(fields, halves, tile)
    rows = high * _BASE + low
    digit0 = ((rows + 128) & 255) - 128
    rows = (rows - digit0) >> 8
    digit1 = ((rows + 128) & 255) - 128
    digit2 = (rows - digit1) >> 8
    turned = side[None, :] * _SIDE + side[:, None]
    left_high, left_low = tl.load(halves.high + turned), tl.load(halves.low + turned)
    sum0 = _column(left_high, left_low, digit0)
    sum1 = _column(left_high, left_low, digit1) + (sum0 >> 8)
    sum2 = _column(left_high, left_low, digit2) + (sum1 >> 8)
    # Q = 65536 sum2 + 256 (sum1 mod 256) + (sum0 mod 256): what is behind sum2 is not negative.
    is_more = ((sum0 | sum1) & 255) != 0
    return (sum2 > 0) | ((sum2 == 0) & is_more), sum2 < 0


@part
def _rows(fields: Fields, halves: Halves, tile: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Return the sums of the high and of the low half of each row of R, int32 [64, 64]."""
    side = tl.arange(0, _SIDE)
    high = tl.zeros((_SIDE, _SIDE), tl.int32)
    low = tl.zeros((_SIDE, _SIDE), tl.int32)
    number = from_odd(fields.odd_number)
    for start in range(0, number, _SIDE):
        here = start + side
        is_field = here < number
        code = tl.load(fields.codes + tile * number + here, mask=is_field, other=-1)
        code = code.to(tl.int32)
        sign = tl.where(code < 0, 0, tl.where(code >= _NEGATIVE, -1, 1)).to(tl.int8)
        frequency, column = (code & (_NEGATIVE - 1)) >> 6, code & (_SIDE - 1)
        places = column[:, None] * _SIDE + side[None, :]
        of_row = (frequency[None, :] == side[:, None]).to(tl.int8)
        signed_high = tl.load(halves.high + places) * sign[:, None]
        signed_low = tl.load(halves.low + places) * sign[:, None]
        # Triton before 3.9 takes fp32 for the type of every product that does not name one.
        high = tl.dot(of_row, signed_high, high, out_dtype=tl.int32)
        low = tl.dot(of_row, signed_low, low, out_dtype=tl.int32)
    return high, low


@part
def _column(high: tl.tensor, low: tl.tensor, digit: tl.tensor) -> tl.tensor:
    """Return B^T times one digit of R, int32 [64, 64]."""
    right = digit.to(tl.int8)
    of_high = tl.dot(high, right, out_dtype=tl.int32)
    return of_high * _BASE + tl.dot(low, right, out_dtype=tl.int32)
