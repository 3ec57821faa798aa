"""Which learning rate suits a size: whole rounds of four DeMo trainers, without a chain.

Owns: the sweep at the two sizes that a small machine can run, and its results as JSON lines. Every
payload is included; the client's own encoder, codec and apply do the work, compiled where they are.
Never: a claim: results go to docs/results.md with their machine. A killed sweep goes on: finished
runs are skipped, and the one under way continues from its last saved round.
Next: `demo_hyperparameters.py` for other settings of the demo; `configs/` for what is chosen.

    OMP_NUM_THREADS=1 python scripts/bench/learning_rates.py --out runs/learning-rates.jsonl
    python scripts/bench/learning_rates.py --out runs/learning-rates.jsonl --table
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from troth_client.compression import apply, codec
from troth_client.compression.encoder import Encoder
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.shapes import num_parameters, trainable_shapes
from troth_client.model.weights import build, weight_arrays, weight_views
from troth_client.train.errors import NonFiniteError
from troth_client.train.evaluate import evaluate
from troth_client.train.step import gradient
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.schedule import constants_of

DEMO = Path(__file__).parents[2] / "configs/localnet.toml"
SIZES: dict[str, dict[str, int]] = {
    "smoke": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1},
    "demo": {},
    "6m": {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 8},
}
"""The demo's model, and others as changes of it; `smoke` is for a look at the script."""
RATES_NANO = (375_000, 750_000, 1_500_000, 3_000_000, 6_000_000)
NUM_TRAINERS = 4
HELD_OUT = 64


@dataclass(frozen=True)
class Point:
    """One run of the sweep."""

    size: str
    rounds: int
    lr_nano: int
    seed: int

    def config(self) -> RunConfig:
        """Return its settings: the demo's, ten parts in a hundred warm-up, thirty decay."""
        model = {f"model.{key}": value for key, value in SIZES[self.size].items()}
        schedule = {
            "schedule.rounds": self.rounds,
            "schedule.lr_nano": self.lr_nano,
            "schedule.warmup_rounds": self.rounds // 10,
            "schedule.decay_from_round": self.rounds - 3 * self.rounds // 10,
        }
        return load_config([DEMO], {**model, **schedule}).config


@dataclass
class State:
    """A run under way: everything that the next round depends on."""

    model: Llama
    momenta: list[torch.Tensor | None] = field(default_factory=lambda: [None] * NUM_TRAINERS)
    round: int = 0
    cursor: int = 0
    losses: dict[int, float] = field(default_factory=dict)

    def save(self, path: Path, key: str) -> None:
        """Write the state, whole or not at all."""
        arrays = {f"weight {name}": array for name, array in weight_arrays(self.model).items()}
        for rank, momentum in enumerate(self.momenta):
            if momentum is not None:
                arrays[f"momentum {rank}"] = momentum.numpy()
        about = {"key": key, "round": self.round, "cursor": self.cursor, "losses": self.losses}
        part = path.with_suffix(".tmp.npz")
        with part.open("wb") as out:
            np.savez(out, about=json.dumps(about), **arrays)
        part.replace(path)

    def load(self, path: Path, key: str) -> None:
        """Take up a saved state, if there is one of the same run."""
        if not path.exists():
            return
        with np.load(path) as saved:
            about = json.loads(str(saved["about"]))
            if about["key"] != key:
                return
            for name, view in weight_views(self.model).items():
                view.copy_(torch.from_numpy(saved[f"weight {name}"]))
            for rank in range(NUM_TRAINERS):
                if f"momentum {rank}" in saved:
                    self.momenta[rank] = torch.from_numpy(saved[f"momentum {rank}"])
        self.round, self.cursor = about["round"], about["cursor"]
        self.losses = {int(at): loss for at, loss in about["losses"].items()}


class Sweep:
    """Plays points on one data set, and keeps what it found in a file."""

    def __init__(self, out: Path, data: Path, every: int) -> None:
        self._out, self._every = out, every
        self._part = out.with_suffix(".part.npz")
        out.parent.mkdir(parents=True, exist_ok=True)
        tokens = load_config([DEMO]).config.data.sequence_tokens
        options = PrepareOptions(sequence_tokens=tokens)
        self._manifest = prepare(data, stdlib_source(), ByteTokenizer(), options)
        self._train = TokenData(data, self._manifest)
        held_out = TokenData(data, self._manifest, "validation")
        self._held_out = held_out.sequences(range(min(HELD_OUT, len(held_out))))

    def play(self, point: Point) -> dict[str, Any]:
        """Return the line of a point, played now unless the file has it."""
        config = point.config().with_manifest(self._manifest.hash)
        key = f"{config.config_hash().hex()}-{point.seed}"
        known = next((line for line in read_lines(self._out) if line["key"] == key), None)
        if known is not None:
            return known
        first = initial_weights(H("troth:learning-rates", u64(point.seed)), config.model)
        state = State(build(config.model, first))
        began = time.perf_counter()
        state.load(self._part, key)
        first_round = state.round
        try:
            self._rounds(config, state, key)
            has_diverged = False
        except NonFiniteError:
            has_diverged = True
        found = {
            "key": key,
            **vars(point),
            "num_parameters": num_parameters(config.model),
            "k": config.demo.k,
            "tokens": state.cursor * config.data.sequence_tokens,
            "losses": state.losses,
            "has_diverged": has_diverged,
            "seconds_a_round": (time.perf_counter() - began) / max(1, state.round - first_round),
        }
        with self._out.open("a") as out:
            out.write(json.dumps(found) + "\n")
        self._part.unlink(missing_ok=True)
        return found

    def _rounds(self, config: RunConfig, state: State, key: str) -> None:
        """Play what is left of a run; save it, with the loss, every so many rounds."""
        layout = TileLayout.from_shapes(trainable_shapes(config.model))
        path = choose_path("cpu", num_tiles=layout.num_tiles)
        encoder = Encoder(layout, Residual.of(config), config.demo.k, path.kernels)
        weights, schedule = weight_views(state.model), config.schedule
        while state.round < schedule.rounds:
            payloads = [self._payload(config, state, encoder, n) for n in range(NUM_TRAINERS)]
            constants = constants_of(schedule, state.round)
            apply.update(weights, payloads, layout, (constants.a, constants.b), path)
            per_payload = config.train.sequences_per_payload
            state.cursor = next_cursor(state.cursor, NUM_TRAINERS, per_payload)
            state.round += 1
            if state.round % self._every == 0 or state.round == schedule.rounds:
                state.losses[state.round] = evaluate(state.model, self._held_out) / 1e6
                state.save(self._part, key)
                loss, rate = state.losses[state.round], schedule.lr_nano / 1e9
                print(f"lr {rate:g} round {state.round}: {loss:.3f}", file=sys.stderr, flush=True)

    def _payload(
        self, config: RunConfig, state: State, encoder: Encoder, rank: int
    ) -> codec.VerifiedPayload:
        """Return what one trainer sends, as the others read it; its momentum moves on."""
        count, train = config.train.sequences_per_payload, config.train
        order = SequenceOrder(len(self._train), self._manifest.hash)
        batch = self._train.sequences(order.sequences(rank_start(state.cursor, rank, count), count))
        found = gradient(state.model, batch, train.microbatch_sequences, train.clip_micro)
        made = encoder.encode(found.tensors, state.momenta[rank], in_place=True)
        raw = codec.encode(made.top.signs(made.is_sent))
        state.momenta[rank] = encoder.rule.after_included(made.u, made.top, in_place=True)
        return codec.decode(raw, encoder.layout.num_tiles, encoder.k)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the finished runs; a line that a killed process left half is cut off."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    yield from map(json.loads, whole.splitlines())


def table(path: Path) -> str:
    """Return the last losses: a size and seed a line, a learning rate a column."""
    lines = list(read_lines(path))
    rates = sorted({line["lr_nano"] for line in lines})
    keys = ("num_parameters", "size", "rounds", "seed")
    runs = sorted({tuple(line[key] for key in keys) for line in lines})
    head = ["size", "parameters", "rounds", "seed", *(f"{rate / 1e9:g}" for rate in rates)]
    rows = [head, ["---"] * len(head)]
    for parameters, size, rounds, seed in runs:
        own = {
            line["lr_nano"]: last_loss(line)
            for line in lines
            if (line["size"], line["rounds"], line["seed"]) == (size, rounds, seed)
        }
        cells = [size, f"{parameters:,}", str(rounds), str(seed)]
        rows.append([*cells, *(own.get(rate, "") for rate in rates)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def last_loss(line: dict[str, Any]) -> str:
    """Return the loss after the last round in nats a byte."""
    losses = line["losses"]
    return "diverged" if line["has_diverged"] else f"{losses[max(losses, key=int)]:.3f}"


def main() -> int:
    """Play what the file lacks, or print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/learning-rates.jsonl"))
    parser.add_argument("--data", type=Path, default=Path("runs/stdlib"), help="token data")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["demo", "6m"])
    parser.add_argument("--lr-nano", type=int, nargs="+", default=list(RATES_NANO))
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--every", type=int, default=10, help="rounds between two losses and saves")
    parser.add_argument(
        "--table", action="store_true", help="print what the file has; play nothing"
    )
    options = parser.parse_args()
    if not options.table:
        sweep = Sweep(options.out, options.data, options.every)
        for size, seed, lr_nano in product(options.sizes, options.seeds, options.lr_nano):
            found = sweep.play(Point(size, options.rounds, lr_nano, seed))
            print(json.dumps(found), flush=True)
    print(table(options.out), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
