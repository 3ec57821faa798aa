"""The arrays that kernels of every kind are given: the fields of payloads, the folded float basis.

Owns: how a field is one int16. Never: computes with a gradient or a weight.
Next: `run.py` and `gpu_run.py`, which pass them on.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import float_basis

ABSENT: Final = -1
NEGATIVE: Final = 4096
"""A field is its index, plus NEGATIVE for the sign -1; ABSENT adds nothing."""

_HALF = TILE_SIDE // 2


def codes(payloads: Sequence[Signs], num_tiles: int) -> NDArray[np.int16]:
    """Return the fields of all payloads, int16 [T, K]."""
    found = np.empty((num_tiles, sum(signs.k for signs in payloads)), np.int16)
    end = 0
    for signs in payloads:
        own, end = found[:, end : end + signs.k], end + signs.k
        np.bitwise_or(signs.indices, np.multiply(signs.negative, np.int16(NEGATIVE)), out=own)
        own[np.flatnonzero(~signs.present)] = ABSENT
    return found


def folded_basis() -> NDArray[np.float32]:
    """Return [2, 32, 32]: B at the first 32 positions, for even and for odd frequencies."""
    left = float_basis()[:, :_HALF]
    return np.ascontiguousarray(np.stack([left[0::2].T, left[1::2].T]), np.float32)
