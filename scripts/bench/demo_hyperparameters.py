r"""Which settings make a short run fall clearly: four DeMo trainers simulated in one process.

Owns: the experiment behind the demo's defaults, on the project's own model, data, DeMo and apply.
Never: a chain or a socket; every payload is included. Results are in docs/results.md.

    OMP_NUM_THREADS=1 python scripts/bench/demo_hyperparameters.py --rounds 60 \
        --grid lr_nano=2000000,4000000 --grid hidden_size=128 --out results.jsonl

Each line of the output is one run: its settings, validation loss every ten rounds, milliseconds
per gradient and for the rest of a trainer's round.
"""

import argparse
import itertools
import json
import time
from dataclasses import dataclass
from pathlib import Path

from troth_client.compression import apply, codec
from troth_client.compression.dct import dct2
from troth_client.compression.known_answer import ApplyPath, choose_path
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k
from troth_client.data.manifest import Manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.init import initial_weights
from troth_client.model.shapes import trainable_shapes
from troth_client.model.weights import build, weight_views
from troth_client.train.evaluate import evaluate
from troth_client.train.step import gradient
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.config import (
    DemoSection,
    ModelSection,
    RunConfig,
    ScheduleSection,
    TrainSection,
)
from troth_coordinator.rules.schedule import constants_of

DEFAULTS: dict[str, int] = {
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "tie_word_embeddings": 1,
    "init_std_nano": 20_000_000,
    "sequences_per_payload": 4,
    "k": 32,
    "beta_micro": 950_000,
    "lr_nano": 2_000_000,
    "warmup_rounds": 5,
    "decay_share_percent": 30,
    "num_trainers": 4,
}


@dataclass
class Trainer:
    """Momentum of one simulated trainer."""

    rule: Residual
    momentum: Carried | None = None


@dataclass(frozen=True)
class Result:
    """Curve and costs of one simulated run."""

    losses: dict[int, float]
    gradient_ms: float
    encode_ms: float
    apply_ms: float
    num_parameters: int
    payload_bytes: int


def run_config(settings: dict[str, int], rounds: int, sequence_tokens: int) -> RunConfig:
    """Build the hashed config of one grid point."""
    model = {name: settings[name] for name in ModelSection.model_fields if name in settings}
    model["tie_word_embeddings"] = bool(model["tie_word_embeddings"])
    decay = rounds - rounds * settings["decay_share_percent"] // 100
    return RunConfig(
        model=ModelSection(**model, max_position_embeddings=sequence_tokens),
        demo=DemoSection(k=settings["k"], beta_micro=settings["beta_micro"]),
        schedule=ScheduleSection(
            rounds=rounds,
            lr_nano=settings["lr_nano"],
            warmup_rounds=settings["warmup_rounds"],
            decay_from_round=decay,
        ),
        train=TrainSection(
            sequences_per_payload=settings["sequences_per_payload"],
            microbatch_sequences=settings["sequences_per_payload"],
        ),
    )


def simulate(
    config: RunConfig, train: TokenData, validation: TokenData, num_trainers: int, path: ApplyPath
) -> Result:
    """Train for the rounds of the schedule with every payload included."""
    shapes = trainable_shapes(config.model)
    layout = TileLayout.from_shapes(shapes)
    model = build(config.model, initial_weights(bytes(32), config.model))
    weights = weight_views(model)
    held_out = validation.sequences(range(64))
    rule = Residual.of(config)
    trainers = [Trainer(rule) for _ in range(num_trainers)]
    seconds = {"gradient": 0.0, "encode": 0.0, "apply": 0.0}
    losses = {0: evaluate(model, held_out) / 1e6}
    order = SequenceOrder(len(train), train.manifest.hash)
    size, cursor, count = 0, 0, config.train.sequences_per_payload
    for round_ in range(config.schedule.rounds):
        payloads = []
        for rank, trainer in enumerate(trainers):
            ids = order.sequences(rank_start(cursor, rank, count), count)
            started = time.perf_counter()
            found = gradient(
                model,
                train.sequences(ids),
                config.train.microbatch_sequences,
                config.train.clip_micro,
            )
            middle = time.perf_counter()
            moved = rule.accumulate(trainer.momentum, dct2(layout.to_tiles(found.tensors)))
            top = top_k(moved.u, config.demo.k)
            raw = codec.encode(top.signs(rule.is_sent(moved)))
            trainer.momentum = Carried(moved.u, top.indices)
            payloads.append(codec.decode(raw, layout.num_tiles, config.demo.k))
            size = len(raw)
            seconds["gradient"] += middle - started
            seconds["encode"] += time.perf_counter() - middle
        started = time.perf_counter()
        constants = constants_of(config.schedule, round_)
        apply.update(weights, payloads, layout, (constants.a, constants.b), path)
        seconds["apply"] += time.perf_counter() - started
        cursor = next_cursor(cursor, num_trainers, count)
        if (round_ + 1) % 10 == 0:
            losses[round_ + 1] = evaluate(model, held_out) / 1e6
    rounds = config.schedule.rounds
    per_gradient = 1e3 / (rounds * num_trainers)
    return Result(
        losses,
        seconds["gradient"] * per_gradient,
        seconds["encode"] * per_gradient,
        seconds["apply"] * 1e3 / rounds,
        sum(weight.numel() for weight in weights.values()),
        size,
    )


def grid(axes: list[str]) -> list[dict[str, int]]:
    """All combinations of `name=a,b,c` axes over the defaults."""
    names = [axis.partition("=")[0] for axis in axes]
    unknown = set(names) - DEFAULTS.keys()
    if unknown:
        raise SystemExit(f"expected axes out of {sorted(DEFAULTS)}; found {sorted(unknown)}")
    values = [[int(v) for v in axis.partition("=")[2].split(",")] for axis in axes]
    combinations = itertools.product(*values)
    return [DEFAULTS | dict(zip(names, chosen, strict=True)) for chosen in combinations]


def data(folder: Path, sequence_tokens: int) -> Manifest:
    """Prepare the standard library as bytes, once."""
    options = PrepareOptions(sequence_tokens=sequence_tokens)
    return prepare(folder, stdlib_source(), ByteTokenizer(), options)


def main() -> None:
    """Run the grid and append one JSON line per run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("runs/stdlib"), help="token data")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sequence-tokens", type=int, default=128)
    parser.add_argument("--grid", action="append", default=[], metavar="NAME=A,B,C")
    parser.add_argument("--out", type=Path, help="file to append JSON lines to")
    arguments = parser.parse_args()
    manifest = data(arguments.data, arguments.sequence_tokens)
    train = TokenData(arguments.data, manifest)
    validation = TokenData(arguments.data, manifest, "validation")
    path = choose_path("cpu")
    for settings in grid(arguments.grid):
        config = run_config(settings, arguments.rounds, arguments.sequence_tokens)
        result = simulate(config, train, validation, settings["num_trainers"], path)
        line = json.dumps({"settings": settings, "rounds": arguments.rounds, **vars(result)})
        print(line, flush=True)
        if arguments.out is not None:
            with arguments.out.open("a") as stream:
                stream.write(line + "\n")


if __name__ == "__main__":
    main()
