"""The records between torch and compiled kernels; importing them needs no numba.

Owns: what a kernel takes and returns. Never: computes.
Next: `choice.py`, which finds kernels; `run.py`, which is them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from troth_attestation.selection import TopK
from troth_attestation.signs import Bools, Signs
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout

MAX_FIELDS = 4096
"""Signs on one tile up to which `update` is exact: 64 payloads of k = 64."""

MAX_ERROR = 8
"""By either way, a coefficient is within so many units of 2^-24 * |tile| of the exact DCT.

|tile| is the root of the sum of its squares.
"""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A gradient after encoding: u, fp32 [T, 64, 64], its top k, and the tiles that are sent."""

    u: Tensor
    top: TopK
    is_sent: Bools


Encode = Callable[
    [Mapping[str, Tensor], Tensor | None, TileLayout, Residual, int, Tensor | None], Encoded
]
Update = Callable[[Mapping[str, Tensor], Sequence[Signs], TileLayout, tuple[float, float]], None]


@dataclass(frozen=True, slots=True)
class Kernels:
    """The two hot paths for fp32 tensors on the processor.

    encode(gradient, M or None for zero, layout, rule, k, memory for u or None) raises
    NonFiniteError and nothing else. The memory may be that of M: each tile is read first.
    update(weights, payloads, layout, (a, b)) steps in place. Callers check the arguments.
    """

    encode: Encode
    update: Update
