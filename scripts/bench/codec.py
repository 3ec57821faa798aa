"""Time encode and decode of one payload: `python scripts/bench/codec.py [--tiles N] [--threads N]`.

Owns: the table of milliseconds and ratios. Never: a claim; those go to docs with their log.
Next: `apply.py`.
"""

import argparse
import os
from collections.abc import Callable

import plain
import torch

from troth_client.compression.codec import decode, encode, payload_root
from troth_client.compression.limits import ALLOWED_K
from troth_client.compression.topk import select

Call = Callable[[], object]


def main() -> None:
    """Print the table for every k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tiles, parameters = arguments.tiles, arguments.tiles * 4096
    u = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(0))
    print(f"{parameters / 1e6:.1f} M parameters, {arguments.threads} thread(s)", end="")
    print(f", processor time, load {os.getloadavg()[0]:.1f}")
    for k in ALLOWED_K:
        measure(u, k)


def measure(u: torch.Tensor, k: int) -> None:
    """Print the rows of one k; both sides must agree first."""
    tiles, parameters = len(u), u.numel()
    signs, slow_signs = select(u, k), plain.select(u.numpy(), k)
    data = encode(signs)
    if data != plain.pack(slow_signs, k):
        raise SystemExit(f"k = {k}: the bytes differ")
    ways: dict[str, tuple[Call, Call]] = {
        "select": (lambda: select(u, k), lambda: plain.select(u.numpy(), k)),
        "encode": (lambda: encode(signs), lambda: plain.pack(slow_signs, k)),
        "decode with checks": (
            lambda: decode(data, tiles, k),
            lambda: plain.unpack(data, tiles, k),
        ),
    }
    root = plain.best_seconds(lambda: payload_root(data))
    print(f"k = {k}: {len(data)} bytes, {len(data) / parameters:.5f} per parameter")
    for name, (ours, slow) in ways.items():
        found = plain.in_turns({"ours": ours, "plain": slow}, repeats=9)
        print(plain.row(f"  {name}", found["ours"], found["plain"], parameters))
    print(f"{'  of which root':<22}{root * 1e3:>9.2f} ms")


if __name__ == "__main__":
    main()
