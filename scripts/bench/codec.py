"""Time encode and decode of one payload: `python scripts/bench/codec.py [--tiles N] [--threads N]`.

Owns: the table of milliseconds and ratios. Never: a claim; those go to docs with their log.
Next: `apply.py`.
"""

import argparse

import plain
import torch

from troth_client.compression.codec import decode, encode, payload_root
from troth_client.compression.limits import ALLOWED_K
from troth_client.compression.topk import select


def main() -> None:
    """Print the table for every k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    tiles, parameters = arguments.tiles, arguments.tiles * 4096
    u = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(0))
    slow_select = plain.best_seconds(lambda: plain.select(u.numpy(), 8), repeats=1)
    print(f"{parameters / 1e6:.1f} M parameters, {arguments.threads} thread(s)")
    for k in ALLOWED_K:
        measure(u, k, slow_select)


def measure(u: torch.Tensor, k: int, slow_select: float) -> None:
    """Print the rows of one k; both sides must agree first."""
    tiles, parameters = len(u), u.numel()
    signs, slow_signs = select(u, k), plain.select(u.numpy(), k)
    data = encode(signs)
    if data != plain.pack(slow_signs, k):
        raise SystemExit(f"k = {k}: the bytes differ")
    slow_pack = plain.best_seconds(lambda: plain.pack(slow_signs, k))
    slow_unpack = plain.best_seconds(lambda: plain.unpack(data, tiles, k))
    fast_select = plain.best_seconds(lambda: select(u, k))
    fast_encode = plain.best_seconds(lambda: encode(signs))
    fast_decode = plain.best_seconds(lambda: decode(data, tiles, k))
    root = plain.best_seconds(lambda: payload_root(data))
    print(f"k = {k}: {len(data)} bytes, {len(data) / parameters:.5f} per parameter")
    print(plain.row("  select", fast_select, slow_select, parameters))
    print(plain.row("  encode", fast_encode, slow_pack, parameters))
    print(plain.row("  decode with checks", fast_decode, slow_unpack, parameters))
    print(f"{'  of which root':<22}{root * 1e3:>9.2f} ms")


if __name__ == "__main__":
    main()
