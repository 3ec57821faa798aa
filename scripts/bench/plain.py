"""The plain numpy way to encode and apply, against which the benchmarks state their ratios.

Owns: the baseline and the stopwatch. Never: ships.
Next: `codec.py`, `apply.py`; tests/support/reference.py settles what is right.
"""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Signs = tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


def best_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest time of several calls, after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def row(name: str, ours: float, plain: float, parameters: int) -> str:
    """Return one line of the table: seconds, nanoseconds per parameter, ratio to plain numpy."""
    per = ours / parameters * 1e9
    return f"{name:<22}{ours * 1e3:>9.2f} ms{per:>9.3f} ns/param{plain / ours:>9.1f} x plain numpy"


def select(u: npt.NDArray[np.float32], k: int) -> Signs:
    """Choose by a stable argsort of magnitudes."""
    flat = u.reshape(len(u), -1)
    indices = np.sort(np.argsort(-np.abs(flat), axis=1, kind="stable")[:, :k], axis=1)
    present = np.abs(flat).max(axis=1) >= 2.0**-40
    return present, indices, np.take_along_axis(flat, indices, 1) < 0


def pack(chosen: Signs, k: int) -> bytes:
    """Pack leaf by leaf, bit by bit."""
    per_leaf, leaves = 8192 // (13 * k + 1), []
    for first in range(0, len(chosen[0]), per_leaf):
        present, indices, negative = (part[first : first + per_leaf] for part in chosen)
        bits = (indices.reshape(-1, 1) >> np.arange(12)) & 1
        stream = np.concatenate([present, bits.reshape(-1), negative.reshape(-1)]).astype(np.uint8)
        leaves.append(np.packbits(np.pad(stream, (0, 8192 - len(stream))), bitorder="little"))
    return b"".join(leaf.tobytes() for leaf in leaves)


def unpack(data: bytes, num_tiles: int, k: int) -> Signs:
    """Unpack leaf by leaf, without any check."""
    per_leaf, parts = 8192 // (13 * k + 1), []
    for leaf, first in enumerate(range(0, num_tiles, per_leaf)):
        m = min(per_leaf, num_tiles - first)
        raw = np.frombuffer(data, np.uint8, 1024, leaf * 1024)
        bits = np.unpackbits(raw, bitorder="little")
        fields = bits[m : m + 12 * m * k].reshape(m, k, 12).astype(np.int64)
        signs = bits[m + 12 * m * k : m * (13 * k + 1)].reshape(m, k)
        parts.append((bits[:m].astype(bool), (fields << np.arange(12)).sum(-1), signs.astype(bool)))
    present, indices, negative = (np.concatenate(part) for part in zip(*parts, strict=True))
    return present, indices, negative


def direction(chosen: list[Signs], basis: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """Add with np.add.at, multiply in int64."""
    counts = np.zeros((len(chosen[0][0]), 4096), np.int64)
    for present, indices, negative in chosen:
        rows = np.nonzero(present)[0][:, None]
        np.add.at(counts, (rows, indices[present]), np.where(negative[present], -1, 1))
    return np.sign(basis.T @ counts.reshape(-1, 64, 64) @ basis).astype(np.int8)
