"""A count sketch of a witness's own gradient, which nobody can guess without computing it.

Owns: the buckets and signs under the seed, the fixed-point form, its hash, and the comparison of
two sketches. Never: decides which of two differing witnesses is right; `panel.py` looks for a
majority. Next: `panel.py`; docs/decisions/0011 for the reason against 64 dense projections.

Detects witnesses who compute nothing or copy the trainer, not witnesses who share one result.
Source: Charikar, Chen, Farach-Colton, Finding Frequent Items in Data Streams (2002).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from troth_attestation.errors import ReportError, TensorError
from troth_attestation.verdict import VerdictKind
from troth_coordinator.rules.hashing import H, b32, tag_prefix, u16, u64
from troth_coordinator.rules.ids import Digest

if TYPE_CHECKING:
    from troth_attestation.measure import Float64, Places, Tiles
    from troth_attestation.pieces import Float32

NUM_BUCKETS = 64
CHUNK = 2**20
"""Coefficients that one SHAKE-128 serves; this bounds the memory for models of any size."""
SCALE = 2**23
I32_MAX = 2**31 - 1
I32_MIN = -(2**31)
SKETCH_BYTES = 4 * NUM_BUCKETS
DEFAULT_FACTOR = 100
"""The `sketch_factor` of a run that names none: beyond a tenth of the larger norm."""

Sketch = tuple[int, ...]


def sketch(gradient: Tiles, sigma: bytes, target: int) -> Sketch:
    """Return y_k, k = 0..63: round-half-even(2^23 * sum of s_e * D(g)_e over bucket k), saturated.

    `gradient` is D(g) after the clip, fp32, any shape in tile order. Byte e mod 2^20 of
    SHAKE-128(u32 length and "troth:sketch-stream", sigma, target u16, floor(e / 2^20) u64) holds
    the bucket of e in its low six bits; s_e = -1 iff the next bit is 1. Sums are fp64, y int32.
    Raises TensorError without coefficients or with a NaN or an infinity.
    """
    import numpy as np  # noqa: PLC0415  (0.1 s; comparing two sketches needs none of it)

    size = math.prod(gradient.shape)
    places = _places_of(tag_prefix("troth:sketch-stream") + b32(sigma, "sigma") + u16(target), size)
    sums = _sums(gradient, places) if isinstance(gradient, np.ndarray) else gradient.sums(places)
    if not size or not np.isfinite(sums).all():
        raise TensorError("own gradient", "finite coefficients", f"{size} values", "recompute it")
    signed = sums[:NUM_BUCKETS] - sums[NUM_BUCKETS:]
    return tuple(fixed_point(float(value)) for value in signed)


def fixed_point(value: float) -> int:
    """Return round-half-even(2^23 * value), saturated to an int32."""
    return min(I32_MAX, max(I32_MIN, round(value * SCALE)))


def encode(values: Sequence[int]) -> bytes:
    """Return the 256 bytes of a sketch: 64 little-endian int32; ReportError for anything else."""
    if len(values) != NUM_BUCKETS or not all(I32_MIN <= v <= I32_MAX for v in values):
        raise ReportError(
            "sketch", f"{NUM_BUCKETS} int32", f"{len(values)} values", "sketch the gradient"
        )
    return b"".join(value.to_bytes(4, "little", signed=True) for value in values)


def decode(data: bytes) -> Sketch:
    """Return the sketch in exactly 256 bytes; ReportError for any other length."""
    if len(data) != SKETCH_BYTES:
        raise ReportError("sketch", f"{SKETCH_BYTES} bytes", len(data), "reveal the whole sketch")
    return struct.unpack(f"<{NUM_BUCKETS}i", data)


def sketch_hash(values: Sequence[int]) -> Digest:
    """Return H("troth:sketch", the 256 bytes)."""
    return H("troth:sketch", encode(values))


def proves(kind: VerdictKind, values: Sequence[int]) -> bool:
    """Return whether a verdict may be shown with a sketch: OK and MISMATCH speak of a gradient.

    Zeros prove no work; a gradient that is too small for the fixed point sketches to zeros.
    """
    return any(values) or kind not in (VerdictKind.OK, VerdictKind.MISMATCH)


def differ(first: Sequence[int], second: Sequence[int], factor: int = DEFAULT_FACTOR) -> bool:
    """Return whether factor * sum (a-b)^2 > max(sum a^2, sum b^2), in exact integers (i128)."""
    distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    norm = max(sum(a * a for a in first), sum(b * b for b in second))
    return factor * distance > norm


def _sums(gradient: Float32, places: Iterable[Places]) -> Float64:
    """Return the sums of the coefficients by place, fp64 [128]; not finite where one of them is."""
    import numpy as np  # noqa: PLC0415  (0.1 s; comparing two sketches needs none of it)

    values, first = gradient.reshape(-1), 0
    sums = np.zeros(2 * NUM_BUCKETS)
    for part in places:
        sums += np.bincount(part, values[first : first + part.size], sums.size)
        first += part.size
    return sums


def _places_of(prefix: bytes, size: int) -> Iterator[Places]:
    """Yield the places of all coefficients, chunk after chunk; `prefix` names their stream."""
    for number, start in enumerate(range(0, size, CHUNK)):
        yield _places(prefix + u64(number), min(CHUNK, size - start))


def _places(name: bytes, num: int) -> Places:
    """Return for each of `num` coefficients its bucket, plus 64 where its sign is negative."""
    import numpy as np  # noqa: PLC0415  (0.1 s; comparing two sketches needs none of it)

    stream = np.frombuffer(hashlib.shake_128(name).digest(num), np.uint8)
    return stream & np.uint8(2 * NUM_BUCKETS - 1)
