"""Time what an auditor does for a round, here and at an older commit, in turns.

    git worktree add ../old 3c1b939
    python scripts/bench/replay.py --before ../old

Owns: decoding, applying and hashing a round without any gradient, with one thread.
Never: a claim; those go to docs with their log.
Next: `client/troth_client/compression/apply.py`, `attestation/troth_attestation/state.py`.

The older commit is measured by this same file in a process of its own, with the modules of that
checkout. Its packages have other names, and it had no compiled kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

A, B = 1.0 - 2.0**-14, 2.0**-10
PACKAGES = ("client", "coordinator", "attestation")
PARTS = ("decode", "apply", "root", "apply + root", "round")


def main() -> None:
    """Print the table, or with --one the seconds of this process as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the older commit")
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--torch", action="store_true", help="no compiled kernels, as in short runs of small models"
    )
    parser.add_argument("--one", action="store_true", help="only measure, in this process")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments)))
        return
    here = Path(__file__).resolve().parents[2]
    checkouts = {"now": here} | ({"before": arguments.before} if arguments.before else {})
    found: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in checkouts}
    for _turn in range(arguments.turns):
        for name, checkout in checkouts.items():
            found[name].append(asked(checkout.resolve(), arguments))
    print(f"{arguments.peers} payloads of k = {arguments.k}, load {os.getloadavg()[0]:.1f}")
    show(found)


def asked(checkout: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Let this file measure the modules of a checkout, in a process of its own."""
    paths = os.pathsep.join(str(checkout / package) for package in PACKAGES)
    flags = ["--peers", arguments.peers, "--k", arguments.k, "--repeats", arguments.repeats]
    flags += ["--torch"] * arguments.torch
    done = subprocess.run(
        [sys.executable, __file__, "--one", *map(str, flags)],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, dict[str, float]] = json.loads(done.stdout)
    return answer


def show(found: Mapping[str, list[dict[str, dict[str, float]]]]) -> None:
    """Print the medians of all turns, and how many times as fast the present code is."""
    for model in found["now"][0]:
        for part in PARTS:
            times = {
                n: statistics.median(t[model][part] for t in all_) for n, all_ in found.items()
            }
            cells = "".join(f"  {name} {1e3 * each:8.2f} ms" for name, each in times.items())
            ratio = f"  {times['before'] / times['now']:5.2f} x" if "before" in times else ""
            print(f"{model:<8}{part:<13}{cells}{ratio}")


def measured(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the median seconds of each part, by model."""
    torch.set_num_threads(1)
    return {name: replayed(shapes, arguments) for name, shapes in models().items()}


def models() -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the shapes of the demo's model, and of a Llama of 29.9 M parameters."""
    return {
        "0.66 M": llama(width=128, inner=384, layers=3, words=256, shared=64),
        "29.9 M": llama(width=512, inner=1408, layers=8, words=8192, shared=512),
    }


def llama(*, width: int, inner: int, layers: int, words: int, shared: int) -> dict[str, Any]:
    """Return the shapes of a Llama; `shared`: width of its keys and values."""
    shapes: dict[str, tuple[int, ...]] = {"embed": (words, width), "norm": (width,)}
    for n in range(layers):
        shapes |= {f"{n}.q": (width, width), f"{n}.o": (width, width)}
        shapes |= {f"{n}.k": (shared, width), f"{n}.v": (shared, width)}
        shapes |= {f"{n}.gate": (inner, width), f"{n}.up": (inner, width)}
        shapes |= {f"{n}.down": (width, inner)}
        shapes |= {f"{n}.norm1": (width,), f"{n}.norm2": (width,)}
    return shapes


def replayed(
    shapes: Mapping[str, tuple[int, ...]], arguments: argparse.Namespace
) -> dict[str, float]:
    """Return the median seconds of replaying a round; the first one is not counted."""
    own, k = modules(is_compiled=not arguments.torch), arguments.k
    layout = own["TileLayout"].from_shapes(shapes)
    tiles, path = layout.num_tiles, own["path"]
    source = torch.Generator().manual_seed(0)
    draws = [torch.randn(tiles, 64, 64, generator=source) for _ in range(arguments.peers)]
    raw = [own["encode"](own["select"](u, k)) for u in draws]
    weights = {name: torch.randn(shape, generator=source) for name, shape in shapes.items()}
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    times: dict[str, list[float]] = {part: [] for part in PARTS}
    for turn in range(arguments.repeats + 1):
        start = time.perf_counter()
        payloads = [own["decode"](data, tiles, k) for data in raw]
        decoded = time.perf_counter()
        own["update"](weights, payloads, layout, (A, B), path)
        applied = time.perf_counter()
        own["state_root"](arrays, 1, 0, bytes(32))
        end = time.perf_counter()
        spent = (decoded - start, applied - decoded, end - applied, end - decoded, end - start)
        for part, seconds in zip(PARTS, spent, strict=True) if turn else ():
            times[part].append(seconds)
    return {part: float(np.median(seconds)) for part, seconds in times.items()}


def modules(*, is_compiled: bool) -> dict[str, Any]:
    """Return what both commits have, by one name."""
    try:
        names = [
            "compression." + name for name in ("apply", "codec", "known_answer", "tiles", "topk")
        ]
        found = [import_module(f"troth_client.{name}") for name in names]
        # So many tiles that the compiled kernels are taken, or none.
        options = {"num_tiles": 1 << 20 if is_compiled else 0}
    except ImportError:  # as it was at 3c1b939
        names = ["demo.apply", "payload.codec", "demo.known_answer", "demo.tiles", "demo.topk"]
        found = [import_module(f"troth_client.{name}") for name in names]
        options = {}
    apply, codec, known_answer, tiles, topk = found
    return {
        "TileLayout": tiles.TileLayout,
        "select": topk.select,
        "encode": codec.encode,
        "decode": codec.decode,
        "update": apply.update,
        "path": known_answer.choose_path("cpu", **options),
        "state_root": import_module("troth_attestation.state").state_root,
    }


if __name__ == "__main__":
    main()
