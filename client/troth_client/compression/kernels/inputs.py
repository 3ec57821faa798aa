"""The arrays that kernels of every kind are given: the fields of payloads, the folded float basis.

Owns: how a field is one int16. Never: computes with a gradient or a weight.
Next: `run.py` and `gpu_run.py`, which pass them on.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_client.compression.basis import float_basis

ABSENT: Final = -1
NEGATIVE: Final = 4096
"""A field is its index, plus NEGATIVE for the sign -1; ABSENT adds nothing."""

_HALF = TILE_SIDE // 2


def codes(payloads: Sequence[Signs], num_tiles: int, device: torch.device) -> Tensor:
    """Return the fields of all payloads, int16 [T, K], put together on the device."""
    number = sum(signs.k for signs in payloads)
    found = torch.empty((num_tiles, number), dtype=torch.int16, device=device)
    end = 0
    for signs in payloads:
        own, end = found[:, end : end + signs.k], end + signs.k
        indices, negative, present = (
            torch.from_numpy(array).to(device)
            for array in (signs.indices, signs.negative, signs.present)
        )
        torch.add(indices, negative.to(torch.int16), alpha=NEGATIVE, out=own)
        own.masked_fill_(~present[:, None], ABSENT)
    return found


def folded_basis() -> NDArray[np.float32]:
    """Return [2, 32, 32]: B at the first 32 positions, for even and for odd frequencies."""
    left = float_basis()[:, :_HALF]
    return np.ascontiguousarray(np.stack([left[0::2].T, left[1::2].T]), np.float32)
