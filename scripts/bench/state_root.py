"""How long one round's hashing takes: leaves of weights and residuals, their roots, the order.

Owns: the measurement of bulk hashes beside SHA-256, in one process, one after the other in turn.
Never: torch or a chain. Next: attestation/troth_attestation/bulk.py.

    python scripts/bench/state_root.py [--layers 8] [--width 512] [--threads 2]

A core's speed is bytes by the processor time of all threads, which other load hardly changes. The
gain of threads is a ratio of times on the wall, so it needs idle cores.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

import numpy as np

from troth_attestation import bulk, merkle
from troth_attestation.pieces import CHUNK_BYTES, Float32, bytes_of
from troth_attestation.sizes import TILE_BYTES, TILE_COEFFICIENTS, TILE_SIDE
from troth_attestation.state import residual_root, state_root
from troth_coordinator.rules.assignment import SequenceOrder

VOCABULARY = 5_120
Leaves = Sequence[memoryview]


@dataclass
class Row:
    """One line of the table, with the seconds that each repetition took."""

    name: str
    work: Callable[[], object]
    num_bytes: int
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def measure(self) -> None:
        """Do the work once more."""
        wall, processor = time.perf_counter(), time.process_time()
        self.work()
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)

    def text(self) -> str:
        """Return the line: median and best of the wall's milliseconds, GB/s of a core."""
        line = f"{self.name:<34}{1e3 * median(self.wall):>9.2f}{1e3 * min(self.wall):>9.2f}"
        speed = self.num_bytes / 1e9 / median(self.processor)
        return line + (f"{speed:>9.2f}" if self.num_bytes else "")


def weights_of(layers: int, width: int) -> dict[str, Float32]:
    """Return random weights with the shapes of a Llama, nine tensors a layer."""
    rng = np.random.default_rng(0)
    square, wide = (width, width), (3 * width, width)
    layer = (square, square, square, square, wide, wide, wide[::-1], (width,), (width,))
    shapes = {f"{at}.{n}": shape for at in range(layers) for n, shape in enumerate(layer)}
    shapes |= {"embedding": (VOCABULARY, width), "norm": (width,)}
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def sha256_leaves(leaves: Leaves, executor: Executor | None = None) -> list[bytes]:
    """Hash bulk leaves as short ones are: what this project did before config version 3."""
    if executor is None:
        return list(merkle.leaf_hashes(leaves))
    step = bulk.LEAVES_PER_TASK
    tasks = [leaves[at : at + step] for at in range(0, len(leaves), step)]
    return list(chain.from_iterable(executor.map(merkle.leaf_hashes, tasks)))


def rows_of(layers: int, width: int, executor: Executor) -> list[Row]:
    """Return everything that is measured, in turn."""
    weights = weights_of(layers, width)
    num_tiles = sum(value.size for value in weights.values()) // TILE_COEFFICIENTS
    u = np.random.default_rng(1).standard_normal((num_tiles, TILE_SIDE, TILE_SIDE), np.float32)
    chunks = [
        chunk for w in weights.values() for chunk in merkle.cut(bytes_of("w", w), CHUNK_BYTES)
    ]
    tiles = list(merkle.cut(bytes_of("u", u), TILE_BYTES))
    num_bytes = sum(value.nbytes for value in weights.values())
    rows = []
    for what, leaves, size in (("64 KiB", chunks, num_bytes), ("16 KiB", tiles, u.nbytes)):
        for name, hashes in (("BLAKE3", bulk.leaf_hashes), ("SHA-256", sha256_leaves)):
            for how, threads in (("1 thread", None), ("threads", executor)):
                work = lambda h=hashes, l=leaves, t=threads: h(l, t)  # noqa: E731, E741
                rows.append(Row(f"{name}, leaves of {what}, {how}", work, size))
    for how, threads in (("1 thread", None), ("threads", executor)):
        root = lambda t=threads: state_root(weights, 0, 0, bytes(32), t)  # noqa: E731
        rows.append(Row(f"state root, {how}", root, num_bytes))
    rows.append(Row("residual root", lambda: residual_root(u), u.nbytes))
    order = SequenceOrder(100_000, bytes(32))
    return [*rows, Row("order of 1,000 sequences", lambda: order.sequences(0, 1_000), 0)]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    with ThreadPoolExecutor(args.threads) as executor:
        rows = rows_of(args.layers, args.width, executor)
        for row in rows:
            row.work()
        for _ in range(args.repeats):
            for row in rows:
                row.measure()
    size = next(row.num_bytes for row in rows) / 4e6
    print(f"{size:.1f} M parameters, {args.threads} threads, median and best of {args.repeats}")
    print(f"{platform.machine()}, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<34}{'ms':>9}{'best':>9}{'GB/s of a core':>16}")
    for row in rows:
        print(row.text())


if __name__ == "__main__":
    main()
