"""Time encode and apply with and without a CUDA graph: `python scripts/gpu/launches.py`.

Owns: the time of encode's and apply's kernels, launched one by one and as one recorded graph.
Never: times what surrounds them; `troth bench` does.
Next: `client/troth_client/compression/kernels/gpu_run.py`, which launches them.
"""

import argparse
from collections.abc import Callable

import torch

from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_cli.bench.clock import in_turns
from troth_cli.bench.sizes import SIZES
from troth_client.compression.basis import integer_basis
from troth_client.compression.kernels import gpu_apply, gpu_encode, gpu_run
from troth_client.compression.kernels.gpu_compiler import OPTIONS, as_odd
from troth_client.compression.kernels.inputs import folded_basis
from troth_client.compression.tiles import TileLayout

K, PEERS = 32, 8
Launch = Callable[[], None]


def main() -> None:
    """Print a row for each size and pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["7M", "30M", "124M"], choices=[*SIZES])
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    card = torch.device("cuda")
    print(f"{torch.cuda.get_device_name(card)}, torch {torch.__version__}")
    print("| size | pass | matrices | one by one, ms | a graph, ms |")
    print("|---|---|---:|---:|---:|")
    for name in arguments.sizes:
        layout = TileLayout.from_shapes(SIZES[name].shapes)
        for what, launch in (("encode", encode(layout, card)), ("apply", apply(layout, card))):
            ways = {"one by one": launch, "graph": recorded(launch)}
            times = [1e3 * each for each in in_turns(ways, arguments.repeats, card).values()]
            count = len(layout.matrices)
            print(f"| {name} | {what} | {count} | {times[0]:.2f} | {times[1]:.2f} |", flush=True)


def encode(layout: TileLayout, card: torch.device) -> Launch:
    """Return a launch of encode's kernels for all matrices."""
    gradient = {n: torch.randn(s, device=card) for n, s in layout.shapes.items()}
    tiles = layout.num_tiles
    found = gpu_encode.Found(
        torch.zeros(tiles, 64, 64, device=card),
        torch.empty(tiles, K, dtype=torch.int16, device=card),
        torch.empty(tiles, K, dtype=torch.uint8, device=card),
        torch.empty(tiles, dtype=torch.uint8, device=card),
        torch.empty(tiles, dtype=torch.int32, device=card),
    )
    top = torch.arange(K, dtype=torch.int16, device=card).repeat(tiles, 1)
    basis, rule = torch.from_numpy(folded_basis()).to(card), gpu_encode.Rule(0.999, 0.0, 0)

    def launch() -> None:
        for matrix, values, cut in gpu_run.matrices_of(layout, gradient):
            given = gpu_encode.Given(values, found.u, top, basis)
            gpu_encode.encode_tiles[gpu_run.grid(matrix)](
                *(given, cut, rule, found, K, False), **OPTIONS
            )

    return launch


def apply(layout: TileLayout, card: torch.device) -> Launch:
    """Return a launch of apply's kernels for all matrices and eight payloads."""
    weights = {n: torch.randn(s, device=card) for n, s in layout.shapes.items()}
    shape = (layout.num_tiles, PEERS * K)
    packed = torch.randint(2 * TILE_COEFFICIENTS, shape, dtype=torch.int16, device=card)
    fields = gpu_apply.Fields(packed, as_odd(packed.shape[1]))
    pair = (torch.from_numpy(half).to(card) for half in gpu_apply.halves(integer_basis()))
    halves, constants = gpu_apply.Halves(*pair), gpu_apply.Constants(1.0, 2.0**-10)

    def launch() -> None:
        for matrix, values, cut in gpu_run.matrices_of(layout, weights):
            gpu_apply.apply_tiles[gpu_run.grid(matrix)](
                *(values, cut, fields, halves, constants), **OPTIONS
            )

    return launch


def recorded(launch: Launch) -> Launch:
    """Return the replay of a launch; it is done once before, so that all is compiled."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph.replay


if __name__ == "__main__":
    main()
