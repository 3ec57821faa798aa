"""The two DCT-II bases of a 64x64 tile: the integer one of consensus and the float one.

Owns: the shipped constants of protocol section 5.5. The integer basis comes from a table.
Never: computes consensus values with libm, whose last bit differs between machines.
Next: `dct.py` (float, producing) and `apply.py` (integer, consensus).
"""

import numpy as np
import numpy.typing as npt

from troth_attestation.sizes import TILE_SIDE

_CONSTANT = 2048
"""round(2^14 * sqrt(1/64)): the row of frequency 0."""

# round(2^14 * sqrt(2/64) * cos(pi * n / 128)) for n = 0..64: a quarter of the cosine's period.
_QUARTER = (
    *(2896, 2895, 2893, 2888, 2882, 2875, 2865, 2854, 2841, 2826, 2810, 2791, 2772),
    *(2750, 2727, 2702, 2676, 2648, 2618, 2587, 2554, 2520, 2484, 2447, 2408, 2368),
    *(2326, 2283, 2239, 2193, 2146, 2098, 2048, 1997, 1945, 1892, 1837, 1782, 1725),
    *(1668, 1609, 1550, 1489, 1428, 1365, 1302, 1238, 1174, 1108, 1042, 976, 909),
    *(841, 772, 704, 635, 565, 495, 425, 355, 284, 213, 142, 71, 0),
)

BASIS_SHA256 = "81941e6ec7c354d3761b904f0866f283ccff34781a011d4af10b96d43f745bcf"
"""SHA-256 of the integer basis, int16 little-endian, row-major."""


def integer_basis() -> npt.NDArray[np.int16]:
    """Return B of protocol section 5.5: int16 [frequency 64, position 64], scaled by 2^14."""
    half = np.array([*_QUARTER, *(-x for x in _QUARTER[-2::-1])], np.int16)
    frequency = np.arange(TILE_SIDE)[:, None]
    position = np.arange(TILE_SIDE)[None, :]
    angle = (2 * position + 1) * frequency % (4 * TILE_SIDE)
    basis: npt.NDArray[np.int16] = half[np.minimum(angle, 4 * TILE_SIDE - angle)]
    basis[0] = _CONSTANT
    return basis


def float_basis() -> npt.NDArray[np.float64]:
    """Return the orthonormal DCT-II basis: float64 [frequency 64, position 64]."""
    frequency = np.arange(TILE_SIDE)[:, None]
    position = np.arange(TILE_SIDE)[None, :]
    angle = np.pi * (2 * position + 1) * frequency / (2 * TILE_SIDE)
    basis: npt.NDArray[np.float64] = np.sqrt(2 / TILE_SIDE) * np.cos(angle)
    basis[0] = np.sqrt(1 / TILE_SIDE)
    return basis
