"""Time one applied round: `python scripts/bench/apply.py [--tiles N] [--peers N] [--device D]`.

Owns: the table of milliseconds and ratios. Never: a claim; those go to docs with their log.
Next: `client/troth_client/compression/apply.py`.
"""

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import plain
import torch

from troth_client.compression.apply import direction, step
from troth_client.compression.basis import integer_basis
from troth_client.compression.codec import decode, encode
from troth_client.compression.dct import dct2
from troth_client.compression.known_answer import ApplyPath, choose_path, integer_path
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select

A, B = 1.0 - 2.0**-14, 2.0**-10


def main() -> None:
    """Print the table for both arithmetics."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=2048)
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tiles, k, parameters = arguments.tiles, arguments.k, arguments.tiles * 4096
    u = [torch.randn(tiles, 64, 64) for _ in range(arguments.peers)]
    payloads = [decode(encode(select(x, k)), tiles, k) for x in u]
    slow_signs = [plain.select(x.numpy(), k) for x in u]
    basis = integer_basis().astype(np.int64)
    expected = plain.direction(slow_signs, basis)
    paths = (choose_path(arguments.device), integer_path("int64 is measured too"))
    for path in paths:
        if not np.array_equal(direction(payloads, tiles, path).cpu().numpy(), expected):
            raise SystemExit(f"{path}: the direction differs")
    found = plain.in_turns(
        {
            "plain": lambda: plain.direction(slow_signs, basis),
            **{
                f"{path.dtype}": lambda p=path: finish(direction(payloads, tiles, p))
                for path in paths
            },
        },
        clock=clock_of(arguments.device),
    )
    print(f"{parameters / 1e6:.1f} M parameters, {len(u)} payloads, k = {k}", end="")
    print(f", load {os.getloadavg()[0]:.1f}")
    for path in paths:
        name = f"{path.dtype}"
        print(plain.row(f"direction {name}"[:21], found[name], found["plain"], parameters))
        print(f"  on {path.device}{f': {path.reason}' if path.reason else ''}")
    measure_step(tiles, choose_path(arguments.device))
    seconds = plain.best_seconds(lambda: dct2(u[0]))
    print(f"{'dct2 of one gradient':<22}{seconds * 1e3:>9.2f} ms (cpu)")


def measure_step(tiles: int, path: ApplyPath) -> None:
    """Print the row of the weight step, against numpy on a matrix that needs no cutting."""
    layout = TileLayout.from_shapes({"w": (64, tiles * 64)})
    d = torch.randint(-1, 2, (tiles, 64, 64), dtype=torch.int8)
    weight = torch.randn(64, tiles * 64)
    whole, flat = weight.numpy().copy(), layout.from_tiles(d)["w"].numpy()
    weights, d = {"w": weight.to(path.device)}, d.to(path.device)
    found = plain.in_turns(
        {
            "plain": lambda: whole * np.float32(A) - np.float32(B) * flat.astype(np.float32),
            "ours": lambda: (step(weights, d, layout, A, B, path), finish(weights["w"])),
        },
        clock=clock_of(path.device.type),
    )
    print(plain.row("step", found["ours"], found["plain"], tiles * 4096))


def clock_of(device: str) -> Callable[[], float]:
    """Return processor time, or on a GPU that of the wall: it works while the processor waits."""
    return time.process_time if device == "cpu" else time.perf_counter


def finish(tensor: torch.Tensor) -> None:
    """Wait for the device."""
    if tensor.is_cuda:
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
