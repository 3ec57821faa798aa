"""The records between torch and compiled kernels; importing them needs no numba.

Owns: what a kernel takes and returns. Never: computes.
Next: `choice.py`, which finds kernels; `run.py` and `gpu_run.py`, which are them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from troth_attestation.selection import TopK
from troth_attestation.signs import Bools, Signs
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_coordinator.rules.ids import Digest

MAX_FIELDS = 4096
"""Signs on one tile that can come together: 64 payloads of k = 64."""

MOST_K = 64
USUAL_K = 32
"""The k of most presets."""

MAX_ERROR = 132
"""By every way, a coefficient is within so many units of 2^-24 * |tile| of the exact DCT.

|tile| is the root of the sum of its squares. A coefficient is a sum of 64 sums of 64 products, and
two basis values were rounded before: 130 roundings at most, in any order, fused or not. The sum of
all magnitudes is at most |tile|, since a row of the basis has the length 1. Folding needs fewer.
"""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A gradient after encoding: u, fp32 [T, 64, 64], its top k, and the tiles that are sent."""

    u: Tensor
    top: TopK
    is_sent: Bools

    @property
    def carried(self) -> Carried:
        """The momentum of the next round, if the payload is included."""
        return Carried(self.u, self.top.indices)


Encode = Callable[
    [Mapping[str, Tensor], Carried | None, TileLayout, Residual, int, Tensor | None], Encoded
]
Update = Callable[[Mapping[str, Tensor], Sequence[Signs], TileLayout, tuple[float, float]], None]
LeafHashes = Callable[[Sequence[Tensor], int], list[Digest]]


@dataclass(frozen=True, slots=True)
class Kernels:
    """The hot paths for fp32 tensors on one kind of device.

    encode(gradient, M or None for zero, layout, rule, k, memory for u or None) raises
    NonFiniteError and nothing else. The memory may be that of the u in M: each tile is read first.
    update(weights, payloads, layout, (a, b)) steps in place, exactly up to `max_fields` signs on a
    tile. Callers check the arguments.
    leaf_hashes(tensors, bytes of a leaf) returns those of `troth_attestation.bulk`, tensor after
    tensor; None where the host hashes.

    asked_k: encode is used for these k alone, since a GPU's kernel of each k is compiled by itself.
    """

    encode: Encode
    update: Update
    device_type: str = "cpu"
    max_fields: int = MAX_FIELDS
    leaf_hashes: LeafHashes | None = None
    asked_k: tuple[int, ...] = (MOST_K, USUAL_K)

    def take(self, tensors: Iterable[Tensor]) -> bool:
        """Whether these tensors are of the kind that the kernels compute on."""
        kind = (self.device_type, torch.float32)
        return all((tensor.device.type, tensor.dtype) == kind for tensor in tensors)
