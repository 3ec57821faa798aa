"""The plain numpy way to encode and apply, against which the benchmarks state their ratios.

Owns: the baseline and the stopwatch. Choice and direction are what numpy does best: partition,
bincount, a product in fp64. Bits are packed and read without a trick. Never: ships.
Next: `codec.py`, `apply.py`; tests/support/reference.py settles what is right.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from troth_attestation.selection import top_k

_BLOCK_TILES = 32
"""So many tiles are chosen from at a time: copies of that size stay in the cache."""
Signs = tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


def best_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the least processor time of several calls, after one that warms up."""
    (found,) = in_turns({"": call}, repeats).values()
    return found


def in_turns(
    ways: Mapping[str, Callable[[], object]],
    repeats: int = 5,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the least time of each way; they take turns, and the first one is not counted."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, call in ways.items():
            start = clock()
            call()
            if turn:
                times[name].append(clock() - start)
    return {name: min(each) for name, each in times.items()}


def row(name: str, ours: float, plain: float, parameters: int) -> str:
    """Return one line of the table: seconds, nanoseconds per parameter, ratio to plain numpy."""
    per = ours / parameters * 1e9
    return f"{name:<22}{ours * 1e3:>9.2f} ms{per:>9.3f} ns/param{plain / ours:>9.1f} x plain numpy"


def select(u: npt.NDArray[np.float32], k: int) -> Signs:
    """Choose by np.partition of magnitudes, block by block, as a judge does."""
    flat = u.reshape(len(u), -1)
    blocks = [flat[first : first + _BLOCK_TILES] for first in range(0, len(flat), _BLOCK_TILES)]
    chosen = [top_k(block, k) for block in blocks]
    present = np.concatenate([np.abs(block).max(axis=1) >= 2.0**-40 for block in blocks])
    indices = np.concatenate([one.indices for one in chosen]).astype(np.int64)
    return present, indices, np.concatenate([one.negative for one in chosen])


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
    """Add with np.bincount, multiply in fp64, which is exact here."""
    exact, size = basis.astype(np.float64), len(chosen[0][0]) * 4096
    counts = np.zeros(size)
    for present, indices, negative in chosen:
        places = np.nonzero(present)[0][:, None] * 4096 + indices[present]
        signs = np.where(negative[present], -1.0, 1.0)
        counts += np.bincount(places.ravel(), signs.ravel(), size)
    return np.sign(exact.T @ counts.reshape(-1, 64, 64) @ exact).astype(np.int8)
