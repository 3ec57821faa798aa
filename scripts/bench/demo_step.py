"""Time one DeMo step four ways: `python scripts/bench/demo_step.py [--k 8 32] [--threads 1 2]`.

Owns: the released algorithm, our way through torch and our compiled kernels in one run, in turns.
A step is: encode a gradient, take what was sent out of the momentum, apply the payloads of all
peers to the weights. Payloads of peers are made before. The fourth way is the compiled one of a
participant, which keeps u and the one before for audits: DeMo as an optimizer needs one of them.
Never: a claim; those go to docs with their log.
Next: `client/troth_client/compression/released.py`, `encoder.py` and `apply.py` beside it.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from troth_cli.bench.sizes import SIZES
from troth_client.compression.apply import update
from troth_client.compression.codec import VerifiedPayload, decode, encode
from troth_client.compression.encoder import Encoder
from troth_client.compression.known_answer import ApplyPath, choose_path
from troth_client.compression.released import ReleasedDeMo
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import select

A, B = 1.0 - 2.0**-14, 2.0**-10
Tensors = dict[str, torch.Tensor]


def main() -> None:
    """Print a table of medians for every number of threads and k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    shapes = SIZES["30M"].shapes
    layout = TileLayout.from_shapes(shapes)
    print(f"{layout.num_parameters / 1e6:.1f} M parameters, {len(shapes)} tensors", end="")
    print(f", {layout.num_tiles} tiles, {arguments.peers} peers, medians of {arguments.repeats}")
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        for k in arguments.k:
            compiled = choose_path("cpu", num_tiles=layout.num_tiles, k=k)
            if compiled.kernels is None:
                raise SystemExit(f"no compiled kernels: {compiled.note}")
            measure(layout, k, arguments, (choose_path("cpu"), compiled))


def measure(
    layout: TileLayout,
    k: int,
    arguments: argparse.Namespace,
    paths: tuple[ApplyPath, ApplyPath],
) -> None:
    """Print the rows of one k and number of threads; all of our ways must agree before."""
    gradient = draw(layout, 0)
    check_encode(layout, gradient, k, paths[1])
    payloads = [own_payload(layout, k, 1 + n) for n in range(arguments.peers)]
    ways: dict[str, Callable[[], dict[str, float]]] = {
        "released": released_step(layout, gradient, k, arguments.peers)
    }
    torch_path, compiled = paths
    ours = {"torch": (torch_path, True), "compiled": (compiled, True), "kept": (compiled, False)}
    weights = {name: draw(layout, 99) for name in ours}
    for name, way in ours.items():
        ways[name] = our_step(layout, gradient, payloads, way, weights[name])
    times: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for turn in range(arguments.repeats + 1):
        for name, step in ways.items():
            found = step()
            if turn:
                times[name].append(found)
    for name in layout.shapes:
        if any(not torch.equal(own[name], weights["torch"][name]) for own in weights.values()):
            raise SystemExit(f"k = {k}: the weights differ")
    load = os.getloadavg()[0]
    print(f"k = {k}, {torch.get_num_threads()} thread(s), load {load:.1f}")
    base = {part: median(times["released"], part) for part in times["released"][0]}
    for name, rows in times.items():
        cells = [f"{part} {median(rows, part) * 1e3:7.1f}" for part in base]
        wall, cpu = (base[part] / median(rows, part) for part in ("step", "cpu"))
        print(
            f"  {name:<9} {'  '.join(cells)} ms  {wall:5.2f} x released, {cpu:5.2f} x by cpu time"
        )


def check_encode(layout: TileLayout, gradient: Tensors, k: int, compiled: ApplyPath) -> None:
    """Ask both of our ways to encode the same D(g); SystemExit unless they answer the same bits.

    Each way has a DCT of its own, so torch gets the D(g) that the compiled kernels compute: it is
    what they return without a momentum.
    """
    rule = Residual(999_000)
    ours, other = compiled.encoder(layout, rule, k), Encoder(layout, rule, k)
    coefficients = compiled.encoder(layout, Residual(0), k).encode(gradient, None).u
    before = ours.encode(draw(layout, 98), None).carried
    wanted = other.encode_tiles(coefficients.clone(), before)
    for in_place in (False, True):
        found = ours.encode(gradient, before, in_place=in_place)
        same = [
            torch.equal(found.u.view(torch.int32), wanted.u.view(torch.int32)),
            np.array_equal(found.top.indices, wanted.top.indices),
            np.array_equal(found.top.negative, wanted.top.negative),
            np.array_equal(found.is_sent, wanted.is_sent),
        ]
        if not all(same):
            raise SystemExit(f"k = {k}: u, places, signs and sent tiles are equal: {same}")


def median(rows: list[dict[str, float]], part: str) -> float:
    """Return the median seconds of a part of the step."""
    return statistics.median(row[part] for row in rows)


def draw(layout: TileLayout, seed: int) -> Tensors:
    """Return random tensors of a layout."""
    source = torch.Generator().manual_seed(seed)
    return {n: torch.randn(s, generator=source) * 0.01 for n, s in layout.shapes.items()}


def own_payload(layout: TileLayout, k: int, seed: int) -> VerifiedPayload:
    """Return the checked payload of a peer with random coefficients."""
    source = torch.Generator().manual_seed(seed)
    u = torch.randn(layout.num_tiles, 64, 64, generator=source)
    return decode(encode(select(u, k)), layout.num_tiles, k)


def released_step(
    layout: TileLayout, gradient: Tensors, k: int, peers: int
) -> Callable[[], dict[str, float]]:
    """Return a step of the released algorithm."""
    own = ReleasedDeMo(draw(layout, 99), k, 1e-3)
    others = [ReleasedDeMo(gradient, k, 1e-3).encode(draw(layout, n)) for n in range(1, peers)]

    def step() -> dict[str, float]:
        start = now()
        sent = own.encode(gradient)
        encoded = now()
        own.apply([sent, *others])
        return parts(start, encoded)

    return step


def our_step(
    layout: TileLayout,
    gradient: Tensors,
    payloads: list[VerifiedPayload],
    way: tuple[ApplyPath, bool],
    weights: Tensors,
) -> Callable[[], dict[str, float]]:
    """Return a step of ours, by a path, in place or not: what was sent leaves the momentum."""
    path, in_place = way
    encoder = path.encoder(layout, Residual(999_000), payloads[0].k)
    carried = encoder.encode(gradient, None).carried

    def step() -> dict[str, float]:
        nonlocal carried
        start = now()
        found = encoder.encode(gradient, carried, in_place=in_place)
        carried = found.carried
        encoded = now()
        update(weights, payloads, layout, (A, B), path)
        return parts(start, encoded)

    return step


def now() -> tuple[float, float]:
    """Return seconds of the clock, and of all cores that worked for this process."""
    return time.perf_counter(), time.process_time()


def parts(start: tuple[float, float], encoded: tuple[float, float]) -> dict[str, float]:
    """Return the seconds of both parts and of the whole step that ends now."""
    end = now()
    return {
        "encode": encoded[0] - start[0],
        "apply": end[0] - encoded[0],
        "step": end[0] - start[0],
        "cpu": end[1] - start[1],
    }


if __name__ == "__main__":
    main()
