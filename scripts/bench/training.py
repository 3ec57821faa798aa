"""Whole training runs of four trainers without a chain, one JSON line each; a killed one goes on.

Owns: sizes of models, the loop of rounds, the state of a run on disk, the file of finished runs.
Never: a method of training (`methods.py`), or a grid: a script says which runs it wants.
Next: `quality.py` for DeMo beside its baselines.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from methods import METHODS, Batch, Learner

from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.shapes import num_parameters
from troth_client.model.weights import build, weight_arrays, weight_views
from troth_client.train.errors import NonFiniteError
from troth_client.train.evaluate import evaluate
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64

DEMO = Path(__file__).parents[2] / "configs/localnet.toml"
SIZES: dict[str, dict[str, int]] = {
    "smoke": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1},
    "demo": {},
    "6m": {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 8},
}
"""The demo's model, and others as changes of it; `smoke` is for a look at a script."""
NUM_TRAINERS = 4
HELD_OUT = 64
SEQUENCES_APART = 16_384
"""The text of a seed begins so many sequences behind that of the seed before."""


@dataclass(frozen=True)
class Point:
    """One run: `method` is a key of METHODS, `k` counts for DeMo alone."""

    size: str
    rounds: int
    lr_nano: int
    seed: int
    method: str = "demo"
    k: int = 32
    wd_nano: int = 0

    def config(self) -> RunConfig:
        """Return its settings: the demo's, ten parts in a hundred warm-up, thirty decay."""
        model = {f"model.{key}": value for key, value in SIZES[self.size].items()}
        own = {
            "demo.k": self.k,
            "schedule.rounds": self.rounds,
            "schedule.lr_nano": self.lr_nano,
            "schedule.wd_nano": self.wd_nano,
            "schedule.warmup_rounds": self.rounds // 10,
            "schedule.decay_from_round": self.rounds - 3 * self.rounds // 10,
        }
        return load_config([DEMO], {**model, **own}).config


@dataclass
class State:
    """A run under way: everything that the next round depends on."""

    model: Llama
    learner: Learner
    cursor: int
    round: int = 0
    losses: dict[int, float] = field(default_factory=dict)

    def save(self, path: Path, key: str) -> None:
        """Write the state, whole or not at all."""
        weights = {f"weight {name}": array for name, array in weight_arrays(self.model).items()}
        own = {f"own {name}": tensor.numpy() for name, tensor in self.learner.tensors().items()}
        about = {"key": key, "round": self.round, "cursor": self.cursor, "losses": self.losses}
        part = path.with_suffix(".tmp.npz")
        with part.open("wb") as out:
            np.savez(out, about=json.dumps(about), **weights, **own)
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
            own = [name for name in saved.files if name.startswith("own ")]
            tensors = {name[len("own ") :]: torch.from_numpy(saved[name]) for name in own}
        self.learner.take_up(tensors)
        self.round, self.cursor = about["round"], about["cursor"]
        self.losses = {int(at): loss for at, loss in about["losses"].items()}

    def weights_hash(self) -> str:
        """Return a hash of all weights, by which two runs are compared to the bit."""
        found = hashlib.blake2b(digest_size=16)
        for array in weight_arrays(self.model).values():
            found.update(np.ascontiguousarray(array))
        return found.hexdigest()


class Sweep:
    """Plays points on one data set, and keeps what it found in a file of its own."""

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
        key = f"{point.method}-{config.config_hash().hex()}-{point.seed}"
        known = next((line for line in read_lines(self._out) if line["key"] == key), None)
        if known is not None:
            return known
        state, began = _begin(point, config), time.perf_counter()
        first_position = state.cursor
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
            "num_bytes": state.learner.num_bytes,
            "tokens": (state.cursor - first_position) * config.data.sequence_tokens,
            "losses": state.losses,
            "has_diverged": has_diverged,
            "weights": state.weights_hash(),
            "seconds_a_round": (time.perf_counter() - began) / max(1, state.round - first_round),
        }
        with self._out.open("a") as out:
            out.write(json.dumps(found) + "\n")
        self._part.unlink(missing_ok=True)
        return found

    def _rounds(self, config: RunConfig, state: State, key: str) -> None:
        """Play what is left of a run; save it, with the loss, every so many rounds."""
        count, rounds = config.train.sequences_per_payload, config.schedule.rounds
        while state.round < rounds:
            batches = [self._batch(state.cursor, rank, count) for rank in range(NUM_TRAINERS)]
            state.learner.play(state.round, batches)
            state.cursor = next_cursor(state.cursor, NUM_TRAINERS, count)
            state.round += 1
            if state.round % self._every == 0 or state.round == rounds:
                state.losses[state.round] = evaluate(state.model, self._held_out) / 1e6
                state.save(self._part, key)
                loss = state.losses[state.round]
                print(f"{key[:16]} round {state.round}: {loss:.3f}", file=sys.stderr, flush=True)

    def _batch(self, cursor: int, rank: int, count: int) -> Batch:
        order = SequenceOrder(len(self._train), self._manifest.hash)
        return self._train.sequences(order.sequences(rank_start(cursor, rank, count), count))


def _begin(point: Point, config: RunConfig) -> State:
    first = initial_weights(H("troth:learning-rates", u64(point.seed)), config.model)
    model = build(config.model, first)
    learner = METHODS[point.method](config, model)
    return State(model, learner, cursor=SEQUENCES_APART * point.seed)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the finished runs; a line that a killed process left half is cut off."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    yield from map(json.loads, whole.splitlines())


def last_loss(line: dict[str, Any]) -> float:
    """Return the loss after the last round in nats a byte; infinite where the run diverged."""
    losses = line["losses"]
    return float("inf") if line["has_diverged"] else float(losses[max(losses, key=int)])
