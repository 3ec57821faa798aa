"""Time forward and backward passes on a GPU: `python scripts/gpu/passes.py [--preset 124m]`.

Owns: tokens a second in each precision of the device, eager and through torch.compile.
Never: encodes or applies; `troth bench` does.
Next: `client/troth_client/train/passes.py`, `compiled.py` beside it.
"""

import argparse
import functools
import sys
import time
from pathlib import Path

import torch

from troth_cli.bench.clock import in_turns
from troth_client.model.device import choose_device, in_precision, precisions_of
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.train.compiled import CompiledPass
from troth_client.train.passes import Pass, eager_pass
from troth_coordinator.config_files import load_config

CONFIGS = Path(__file__).parents[2] / "configs"


def main() -> None:
    """Print a table: a row for each precision, eager and compiled in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--preset", default="124m", help="a file of configs/")
    parser.add_argument("--sequences", type=int, default=8, help="of a microbatch")
    parser.add_argument("--precisions", nargs="+", help="else all that the device has")
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    device = choose_device(arguments.device).torch
    config = load_config([CONFIGS / f"{arguments.preset}.toml"], {}).config
    model = build(config.model, initial_weights(bytes(32), config.model), device)
    draw = torch.Generator().manual_seed(0)
    shape = (arguments.sequences, config.data.sequence_tokens + 1)
    tokens = torch.randint(config.model.vocab_size, shape, generator=draw).to(device)
    count = arguments.sequences * config.data.sequence_tokens
    print("| precision | eager, tokens a second | compiled | gain | seconds to compile |")
    print("|---|---:|---:|---:|---:|")
    for name in arguments.precisions or precisions_of(device):
        where, compiled = in_precision(device, name), CompiledPass(_said)
        begun = time.perf_counter()
        compiled.prepare(model, tokens, where)
        spent = time.perf_counter() - begun
        passes: dict[str, Pass] = {"eager": eager_pass, "compiled": compiled}
        ways = {
            way: functools.partial(one, model, tokens, count, where) for way, one in passes.items()
        }
        eager, fast = (count / each for each in in_turns(ways, arguments.repeats, device).values())
        rates = f"{eager:,.0f} | not compiled | "
        if compiled.works:
            rates = f"{eager:,.0f} | {fast:,.0f} | {fast / eager:.2f}"
        print(f"| {name} | {rates} | {spent:.0f} |", flush=True)


def _said(reason: str) -> None:
    print(f"not compiled: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
