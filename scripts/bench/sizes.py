"""Memory and time of a trainer at the sizes of the presets: `python scripts/bench/sizes.py 25m`.

Owns: one process for each preset. A trainer makes, encodes and applies payloads with the client's
own parts until it holds all that it keeps in memory. Then it computes one whole microbatch.
Never: a chain, a disk or a GPU. The numbers are of the processor, in fp32, with one thread.
Next: `scripts/gen/sizes.py`, which puts what is kept in `sizes.json` into the README.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from troth_client.compression import codec
from troth_client.compression.encoder import Encoder
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.shapes import trainable_shapes
from troth_client.model.weights import load_weights, weight_views
from troth_client.participant.measuring import RandomTokens, peak_bytes
from troth_client.state.records import Closure
from troth_client.state.replica import Replica
from troth_client.state.residual_state import ResidualState
from troth_client.train.step import Gradient, gradient
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.ids import NONE, Bitmap, RoundIndex

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "scripts/gen/sizes.json"


def main() -> None:
    """Measure presets in processes of their own, and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("presets", nargs="+", help="like 25m and 124m")
    parser.add_argument("--here", action="store_true", help="in this process; keep nothing")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.presets[0])))
        return
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in options.presets:
        command = [sys.executable, __file__, name, "--here"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        kept[name] = json.loads(done.stdout)
        print(name, kept[name], flush=True)
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")


def measured(name: str) -> dict[str, float]:
    """Return the peak of a preset's trainer, and what of it does not depend on the model."""
    torch.set_num_threads(1)
    settings = load_config([ROOT / f"configs/{name}.toml"])
    config, keep = settings.config.with_manifest(bytes(32)), settings.chain.keep_rounds
    before = peak_bytes()
    model = Llama(config.model)
    load_weights(model, initial_weights(bytes(32), config.model))
    shapes = trainable_shapes(config.model)
    path = choose_path("cpu", num_tiles=TileLayout.from_shapes(shapes).num_tiles)
    replica = Replica(config, weight_views(model), path, keep)
    residual = ResidualState(Residual.of(config), replica.layout.num_tiles, keep)
    encoder = Encoder(replica.layout, Residual.of(config), config.demo.k, path.kernels)
    draw = np.random.default_rng(0)
    drawn = {
        tensor: torch.from_numpy(draw.standard_normal(shape, np.float32))
        for tensor, shape in shapes.items()
    }
    made = Gradient(drawn, 0, 1.0)
    for _ in range(keep + 1):
        play(replica, residual, encoder, made)
    held = peak_bytes()
    del made, drawn
    size = config.train.microbatch_sequences
    batch = RandomTokens(config).sequences(range(size))
    began = time.perf_counter()
    found = gradient(model, batch, size, config.train.clip_micro)
    seconds = time.perf_counter() - began
    play(replica, residual, encoder, found)
    tokens = size * config.data.sequence_tokens
    return {
        "base_bytes": before,
        "held_bytes": held,
        "peak_bytes": peak_bytes(),
        "num_parameters": replica.layout.num_parameters,
        "tokens": tokens,
        "gflops": round(6 * replica.layout.num_parameters * tokens / seconds / 1e9, 1),
    }


def play(replica: Replica, residual: ResidualState, encoder: Encoder, found: Gradient) -> None:
    """Play a round in which only we sent something."""
    round_ = replica.round
    previous = RoundIndex(NONE) if round_ == 0 else RoundIndex(round_ - 1)
    residual.begin(previous)
    proposal = residual.offer(round_, encoder.encode(found.tensors, residual.carried()))
    payload = codec.encode(proposal.sent)
    decoded = codec.decode(payload, replica.layout.num_tiles, encoder.k)
    replica.apply(Closure(round_, 1, Bitmap(1), False, replica.root()), [decoded])
    residual.settle(round_, proposal.root)


if __name__ == "__main__":
    main()
