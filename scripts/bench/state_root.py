"""How long one round's hashing takes: state root and residual root of a model, and the order.

Owns: the measurement behind "a state root of a million parameters in under 10 ms".
Never: torch or a chain. Next: attestation/troth_attestation/state.py.

    python scripts/bench/state_root.py [--parameters 1000000] [--threads 2]
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_attestation.state import residual_root, state_root
from troth_coordinator.rules.assignment import SequenceOrder

WIDTH = 192


def best_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several runs in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(1_000 * min(times), 3)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    num_matrices = max(1, args.parameters // (WIDTH * WIDTH))
    tensors = {
        f"layers.{number}": rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        for number in range(num_matrices)
    }
    num_tiles = max(1, args.parameters // TILE_COEFFICIENTS)
    u = rng.standard_normal((num_tiles, 64, 64)).astype(np.float32)
    order = SequenceOrder(100_000, bytes(32))
    with ThreadPoolExecutor(args.threads) as executor:
        measured = {
            "parameters": num_matrices * WIDTH * WIDTH,
            "threads": args.threads,
            "state_root_1_thread_ms": best_ms(
                lambda: state_root(tensors, 0, 0, bytes(32)), args.repeats
            ),
            "state_root_ms": best_ms(
                lambda: state_root(tensors, 0, 0, bytes(32), executor), args.repeats
            ),
            "residual_root_ms": best_ms(lambda: residual_root(u, executor), args.repeats),
            "order_of_1000_sequences_ms": best_ms(lambda: order.sequences(0, 1_000), args.repeats),
        }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
