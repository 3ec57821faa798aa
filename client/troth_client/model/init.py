"""First weights from the run's address: everybody draws the same ones, nobody downloads them.

Owns: w_0 (protocol section 5.5): counter-mode SHA-256, uniform with the config's standard
deviation, norms at one. Never: a random generator, a float that another machine could round
otherwise. Next: shapes.py for names and shapes; weights.load_weights to put them into a model.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from troth_client.model.shapes import NORM_SUFFIX, trainable_shapes
from troth_coordinator.rules.config import ModelSection
from troth_coordinator.rules.exact import init_scale
from troth_coordinator.rules.hashing import tag_prefix, var

_INTS_PER_DIGEST = 8
_DIGESTS_PER_BLOCK = 1 << 16


def initial_weights(run: bytes, config: ModelSection) -> dict[str, NDArray[np.float32]]:
    """All trainable tensors of w_0 by canonical name, C-contiguous fp32.

    `run` is the address of the Run account, 32 bytes. One million parameters take about 0.1 s.
    """
    if len(run) != 32:
        raise ValueError(f"expected a run address of 32 bytes; found {len(run)}.")
    return {
        name: np.ones(shape, np.float32)
        if name.endswith(NORM_SUFFIX)
        else initial_tensor(run, name, shape, config.init_std_nano)
        for name, shape in trainable_shapes(config).items()
    }


def initial_tensor(
    run: bytes, name: str, shape: tuple[int, ...], std_nano: int
) -> NDArray[np.float32]:
    """One tensor: int32 draws, each rounded to fp32, times the exact fp32 scale."""
    size = math.prod(shape)
    num_digests = -(-size // _INTS_PER_DIGEST)
    scale = np.float32(init_scale(std_nano))
    values = np.empty(num_digests * _INTS_PER_DIGEST, np.float32)
    for start in range(0, num_digests, _DIGESTS_PER_BLOCK):
        stop = min(start + _DIGESTS_PER_BLOCK, num_digests)
        draws = np.frombuffer(_digests(run, name, start, stop), "<i4")
        values[start * _INTS_PER_DIGEST : stop * _INTS_PER_DIGEST] = draws
    values *= scale
    return values[:size].reshape(shape)


def _digests(run: bytes, name: str, start: int, stop: int) -> bytes:
    """H("troth:init", run, name, c) for c in [start, stop), end to end.

    The digests share all but their last eight bytes, so each continues a copy of one hash state.
    """
    prefix = hashlib.sha256(tag_prefix("troth:init") + run + var(name.encode()))
    out = bytearray()
    for counter in range(start, stop):
        digest = prefix.copy()
        digest.update(counter.to_bytes(8, "little"))
        out += digest.digest()
    return bytes(out)
