"""T3: 64 projections of a witness's own gradient, which nobody can guess without computing it.

Owns: the projection under the seed, its fixed-point form, its hash, and when two sketches differ.
Never: says which of two differing witnesses is right; `quorum.py` looks for a majority.
Next: `quorum.py`.

Detects witnesses who compute nothing or copy the trainer, not witnesses who share one result.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from troth_attestation.errors import ReportError, TensorError
from troth_attestation.state import Float32
from troth_coordinator.rules.hashing import H, b32, tag_prefix, u16
from troth_coordinator.rules.ids import Digest

NUM_PROJECTIONS = 64
BLOCK = 256
"""Coefficients that one SHA-256 gives signs for."""
SCALE = 2**20
I32_MAX = 2**31 - 1
I32_MIN = -(2**31)
SKETCH_BYTES = 4 * NUM_PROJECTIONS
DIFFERENCE_FACTOR = 100
"""Two sketches differ beyond a tenth of the larger norm."""
_BLOCKS_PER_CHUNK = 32
"""4 MiB of signs at a time: they stay in the cache, which is worth more than larger products."""

Sketch = tuple[int, ...]


def sketch(gradient: Float32, sigma: bytes, target: int) -> Sketch:
    """Return y_k, k = 0..63: round-half-even(2^20 * sum_e s_e * D(g)_e), saturated to int32.

    `gradient` is D(g) after the clip, fp32, any shape in tile order; s_e = -1 iff bit e mod 256
    (low first) of H("troth:proj", sigma, target u16, k u8, floor(e / 256) u64) is 1. Sums are
    fp64. Raises TensorError without coefficients or with a NaN or an infinity.
    """
    values = gradient.reshape(-1).astype(np.float64)
    if not values.size or not np.isfinite(values).all():
        raise TensorError(
            "own gradient", "finite coefficients", f"{values.size} values", "recompute it"
        )
    num_blocks = -(-values.size // BLOCK)
    padded = np.zeros(num_blocks * BLOCK)
    padded[: values.size] = values
    prefix = tag_prefix("troth:proj") + b32(sigma, "sigma") + u16(target)
    negative = np.zeros(NUM_PROJECTIONS)
    for start in range(0, num_blocks, _BLOCKS_PER_CHUNK):
        end = min(start + _BLOCKS_PER_CHUNK, num_blocks)
        chunk = padded[start * BLOCK : end * BLOCK]
        negative += _signs(prefix, start, end) @ chunk
    sums = values.sum() - 2.0 * negative
    return tuple(fixed_point(float(value)) for value in sums)


def fixed_point(value: float) -> int:
    """Return round-half-even(2^20 * value), saturated to an int32."""
    return min(I32_MAX, max(I32_MIN, round(value * SCALE)))


def encode(values: Sequence[int]) -> bytes:
    """Return the 256 bytes of a sketch: 64 little-endian int32; ReportError for anything else."""
    if len(values) != NUM_PROJECTIONS or not all(I32_MIN <= v <= I32_MAX for v in values):
        raise ReportError(
            "sketch", f"{NUM_PROJECTIONS} int32", f"{len(values)} values", "sketch the gradient"
        )
    return b"".join(value.to_bytes(4, "little", signed=True) for value in values)


def decode(data: bytes) -> Sketch:
    """Return the sketch in exactly 256 bytes; ReportError for any other length."""
    if len(data) != SKETCH_BYTES:
        raise ReportError("sketch", f"{SKETCH_BYTES} bytes", len(data), "reveal the whole sketch")
    return tuple(int(value) for value in np.frombuffer(data, "<i4"))


def sketch_hash(values: Sequence[int]) -> Digest:
    """Return H("troth:sketch", the 256 bytes)."""
    return H("troth:sketch", encode(values))


def differ(first: Sequence[int], second: Sequence[int]) -> bool:
    """Tell whether 100 * sum (a-b)^2 > max(sum a^2, sum b^2), in exact integers (i128 on chain)."""
    distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    norm = max(sum(a * a for a in first), sum(b * b for b in second))
    return DIFFERENCE_FACTOR * distance > norm


def _signs(prefix: bytes, start: int, end: int) -> npt.NDArray[np.float64]:
    """Return 1.0 where the sign is negative: fp64 [64, (end - start) * 256]."""
    sha = hashlib.sha256
    blocks = [block.to_bytes(8, "little") for block in range(start, end)]
    digests = [
        sha(projection + block).digest()
        for projection in (prefix + bytes([k]) for k in range(NUM_PROJECTIONS))
        for block in blocks
    ]
    bits = np.frombuffer(b"".join(digests), np.uint8).reshape(NUM_PROJECTIONS, -1)
    return np.unpackbits(bits, axis=1, bitorder="little").astype(np.float64)
