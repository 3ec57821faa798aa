"""Time what an auditor does for a round, here and at an older commit, in turns.

    git worktree add ../old 3c1b939
    python scripts/bench/replay.py --before ../old

Owns: decoding, applying and hashing a round without any gradient, with one thread.
Never: a claim; those go to docs with their log.
Next: `client/troth_client/compression/apply.py`, `attestation/troth_attestation/state.py`.

The older commit is measured by this same file in a process of its own, with the modules of that
checkout. Its packages have other names, and it had no compiled kernels. So each process is told the
shapes, which this checkout makes. Times are those of the processor.
"""

import argparse
import json
import math
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
DEMO = Path(__file__).resolve().parents[2] / "client/troth_cli/demo/demo.toml"
Shapes = dict[str, tuple[int, ...]]
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
    parser.add_argument("--one", metavar="SHAPES", help="only measure, in this process")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(json.loads(arguments.one), arguments)))
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
        [sys.executable, __file__, "--one", json.dumps(models()), *map(str, flags)],
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
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


def measured(
    models_: Mapping[str, Shapes], arguments: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Return the median seconds of each part, by model."""
    torch.set_num_threads(1)
    found = {}
    for name, shapes in models_.items():
        # JSON has lists where a layout has tuples.
        found[name] = replayed({n: tuple(shape) for n, shape in shapes.items()}, arguments)
    return found


def models() -> dict[str, Shapes]:
    """Return the shapes of the demo's model, and of a Llama of 29.9 M parameters, by their size."""
    from troth_cli.bench.sizes import SIZES  # noqa: PLC0415  an older checkout has neither
    from troth_client.model.shapes import trainable_shapes  # noqa: PLC0415
    from troth_coordinator.config_files import load_config  # noqa: PLC0415

    demo = trainable_shapes(load_config([DEMO]).config.model)
    found: list[Shapes] = [demo, dict(SIZES["30M"].shapes)]
    sums = [sum(math.prod(shape) for shape in shapes.values()) for shapes in found]
    return {f"{total / 1e6:.3g} M": shapes for total, shapes in zip(sums, found, strict=True)}


def replayed(shapes: Shapes, arguments: argparse.Namespace) -> dict[str, float]:
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
        start = time.process_time()
        payloads = [own["decode"](data, tiles, k) for data in raw]
        decoded = time.process_time()
        own["update"](weights, payloads, layout, (A, B), path)
        applied = time.process_time()
        own["state_root"](arrays, 1, 0, bytes(32))
        end = time.process_time()
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
