"""Cheats about signed and shown bytes: the committed residual u, the opened tiles.

Owns: numpy and byte transformations. Never: computes a hash; the caller signs anew.
Next: `cheat.py`.

The head of an opening set is 59 bytes: version u8, run [32], round u64, index u16, previous
included round u64, tile count u64. Then the drawn tiles of u, with their paths, and as many bytes
for those of the u before (`troth_attestation.openings`).
"""

import numpy as np
from numpy.typing import NDArray

Residual = NDArray[np.float32]
"""u, [tiles, 64, 64]."""

SMUGGLED = 1_000.0
"""A smuggled residual against an honest one: it outlasts a residual period."""
_RUN, _ROUND, _HEAD = 1, 33, 59


def same_residual(u: Residual) -> Residual:
    """Return u as the rules make it."""
    return u


def with_nan(u: Residual) -> Residual:
    """Put NaN into every tile: a comparison with NaN never holds, so no bound is ever exceeded."""
    return _with(u, np.nan)


def with_infinity(u: Residual) -> Residual:
    """Put an infinity into every tile: it exceeds any divisor."""
    return _with(u, np.inf)


def smuggling(u: Residual) -> Residual:
    """Add a chosen direction, large enough to fill the top k for many rounds."""
    wave: Residual = np.cos(np.arange(u[0].size, dtype=np.float32)).reshape(u[0].shape)
    size = np.float32(SMUGGLED * np.sqrt((u**2).mean(axis=(1, 2)).max()))
    return u + size * wave


def same_openings(data: bytes) -> bytes:
    """Show the drawn tiles."""
    return data


def truncated(data: bytes) -> bytes:
    """Leave out the last byte."""
    return data[:-1]


def zeros(data: bytes) -> bytes:
    """Show as many zeros: their root is on chain, and they open nothing."""
    return bytes(len(data))


def of_another_round(data: bytes) -> bytes:
    """Claim that these are the openings of the next round."""
    number = int.from_bytes(data[_ROUND : _ROUND + 8], "little") + 1
    return data[:_ROUND] + number.to_bytes(8, "little") + data[_ROUND + 8 :]


def of_another_run(data: bytes) -> bytes:
    """Replay a set that was shown in another run."""
    return data[:_RUN] + bytes(byte ^ 0xFF for byte in data[_RUN:_ROUND]) + data[_ROUND:]


def with_a_wrong_path(data: bytes) -> bytes:
    """Change one bit of the last sibling."""
    return data[:-1] + bytes([data[-1] ^ 1])


def with_swapped_tiles(data: bytes) -> bytes:
    """Exchange the tiles of this round and those of the round before."""
    middle = _HEAD + (len(data) - _HEAD) // 2
    return data[:_HEAD] + data[middle:] + data[_HEAD:middle]


def _with(u: Residual, value: float) -> Residual:
    found = u.copy()
    found[:, -1, -1] = value
    return found
