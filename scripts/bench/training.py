"""Whole training runs of four trainers without a chain, one JSON line each; a killed one goes on.

Owns: sizes of models, the loop of rounds, the state of a run on disk, the file of finished runs.
Never: a method of training (`methods.py`), or a grid: a script says which runs it wants.
Next: `quality.py` for DeMo beside its baselines; `presets.py` for the sizes of the presets.
"""

import hashlib
import json
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from json_lines import append_line, read_lines
from methods import METHODS, Batch, Learner

from troth_client.compression.host import HostArrays
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.device import CPU, Device
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.shapes import num_parameters
from troth_client.model.weights import build, weight_views
from troth_client.train.errors import NonFiniteGradientError
from troth_client.train.evaluate import evaluate
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64

CONFIGS = Path(__file__).parents[2] / "configs"


@dataclass(frozen=True)
class Size:
    """A preset, and what differs in its model."""

    preset: str = "localnet"
    changes: Mapping[str, int] = field(default_factory=dict)

    def config(self, changes: Mapping[str, int] | None = None) -> RunConfig:
        """Return the preset's settings with these changes."""
        model = {f"model.{key}": value for key, value in self.changes.items()}
        path = CONFIGS / f"{self.preset}.toml"
        return load_config([path], {**model, **(changes or {})}).config


SIZES = {
    "smoke": Size(changes={"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1}),
    "demo": Size(),
    "6m": Size(changes={"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 8}),
    "25m": Size("25m"),
    "124m": Size("124m"),
}
"""The demo's model, others as changes of it, and presets; `smoke` is for a look at a script."""


def sizes_help() -> str:
    """Return the sizes with their parameters; the `6m` of `troth profile` is another model."""
    counts = {name: num_parameters(size.config().model) for name, size in SIZES.items()}
    return "parameters: " + "; ".join(f"{name} {count:,}" for name, count in counts.items())


NUM_TRAINERS = 4
HELD_OUT = 64
SEQUENCES_APART = 16_384
"""The text of a seed begins so many sequences behind that of the seed before."""
FORMAT = 2
"""Of a saved run; one of another format is begun anew."""


@dataclass(frozen=True)
class Point:
    """One run: `method` is a key of METHODS, `k` counts for DeMo alone.

    `sequences` and `microbatch` are those of a payload; 0: as the preset has them.
    """

    size: str
    rounds: int
    lr_nano: int
    seed: int
    method: str = "demo"
    k: int = 32
    wd_nano: int = 0
    sequences: int = 0
    microbatch: int = 0

    def config(self) -> RunConfig:
        """Return its settings: the preset's, ten parts in a hundred warm-up, thirty decay."""
        train = {
            "train.sequences_per_payload": self.sequences,
            "train.microbatch_sequences": self.microbatch,
        }
        own = {key: value for key, value in train.items() if value}
        own |= {
            "demo.k": self.k,
            "schedule.rounds": self.rounds,
            "schedule.lr_nano": self.lr_nano,
            "schedule.wd_nano": self.wd_nano,
            "schedule.warmup_rounds": self.rounds // 10,
            "schedule.decay_from_round": self.rounds - 3 * self.rounds // 10,
        }
        return SIZES[self.size].config(own)


class TimeUpError(Exception):
    """A run is saved and not finished: its time was up."""


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
        weights = {
            f"weight {name}": array for name, array in HostArrays(weight_views(self.model)).items()
        }
        own = {
            f"own {name}": tensor.cpu().numpy() for name, tensor in self.learner.tensors().items()
        }
        at = {"round": self.round, "cursor": self.cursor, "losses": self.losses}
        about = {"key": key, "format": FORMAT, **at}
        part = path.with_suffix(".tmp.npz")
        with part.open("wb") as out:
            np.savez(out, about=json.dumps(about), **weights, **own)
        part.replace(path)

    def load(self, path: Path, key: str) -> None:
        """Take up a saved state, if there is one of the same run and format."""
        if not path.exists():
            return
        with np.load(path) as saved:
            about = json.loads(str(saved["about"]))
            if (about["key"], about.get("format")) != (key, FORMAT):
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
        for array in HostArrays(weight_views(self.model)).values():
            found.update(np.ascontiguousarray(array))
        return found.hexdigest()


class Sweep:
    """Plays points on one data set, and keeps what it found in a file of its own.

    The text is cut for `size`, and for sizes with sequences as long. A loss is measured after every
    so many rounds; the run is saved as often, or after every `save_every` rounds.
    """

    def __init__(
        self,
        out: Path,
        data: Path,
        every: int,
        size: str = "demo",
        device: Device = CPU,
        save_every: int = 0,
    ) -> None:
        self._out, self._every, self._device = out, every, device
        self._save_every = save_every or every
        self._part = out.with_suffix(".part.npz")
        out.parent.mkdir(parents=True, exist_ok=True)
        options = PrepareOptions(sequence_tokens=SIZES[size].config().data.sequence_tokens)
        self._manifest = prepare(data, stdlib_source(), ByteTokenizer(), options)
        self._train = TokenData(data, self._manifest)
        held_out = TokenData(data, self._manifest, "validation")
        self._held_out = held_out.sequences(range(min(HELD_OUT, len(held_out))))

    def play(self, point: Point, seconds: float = math.inf) -> dict[str, Any]:
        """Return the line of a point, played now unless the file has it.

        Raises TimeUpError after so many seconds.
        """
        config = point.config().with_manifest(self._manifest.hash)
        key = f"{point.method}-{config.config_hash().hex()}-{point.seed}"
        key += "" if self._device == CPU else f"-{self._device.torch}"
        known = next((line for line in read_lines(self._out) if line["key"] == key), None)
        if known is not None:
            return known
        state, began = _begin(point, config, self._device), time.perf_counter()
        first_position = state.cursor
        state.load(self._part, key)
        first_round = state.round
        try:
            self._rounds(config, state, key, began + seconds)
            has_diverged = False
        except NonFiniteGradientError:
            has_diverged = True
        found = {
            "key": key,
            **vars(point),
            "device": name_of(self._device),
            "num_parameters": num_parameters(config.model),
            "num_bytes": state.learner.num_bytes,
            "tokens": (state.cursor - first_position) * config.data.sequence_tokens,
            "tokens_a_round": _tokens_a_round(config),
            "losses": state.losses,
            "has_diverged": has_diverged,
            "weights": state.weights_hash(),
            "seconds_a_round": (time.perf_counter() - began) / max(1, state.round - first_round),
        }
        append_line(self._out, found)
        self._part.unlink(missing_ok=True)
        return found

    def _rounds(self, config: RunConfig, state: State, key: str, until: float) -> None:
        """Play what is left of a run; measure its loss and save it, each every so many rounds."""
        count, rounds = config.train.sequences_per_payload, config.schedule.rounds
        while state.round < rounds:
            if time.perf_counter() > until:
                state.save(self._part, key)
                raise TimeUpError(f"{state.round} of {rounds} rounds are played")
            batches = [self._batch(state.cursor, rank, count) for rank in range(NUM_TRAINERS)]
            state.learner.play(state.round, batches)
            state.cursor = next_cursor(state.cursor, NUM_TRAINERS, count)
            state.round += 1
            if state.round % self._every == 0 or state.round == rounds:
                loss = state.losses[state.round] = self._loss(state.model)
                print(f"{key[:16]} round {state.round}: {loss:.3f}", file=sys.stderr, flush=True)
            if state.round % self._save_every == 0:
                state.save(self._part, key)

    def _loss(self, model: Llama) -> float:
        return evaluate(model, self._held_out, device=self._device) / 1e6

    def _batch(self, cursor: int, rank: int, count: int) -> Batch:
        order = SequenceOrder(len(self._train), self._manifest.hash)
        return self._train.sequences(order.sequences(rank_start(cursor, rank, count), count))


def _tokens_a_round(config: RunConfig) -> int:
    return NUM_TRAINERS * config.train.sequences_per_payload * config.data.sequence_tokens


def _begin(point: Point, config: RunConfig, device: Device) -> State:
    first = initial_weights(H("troth:learning-rates", u64(point.seed)), config.model)
    model = build(config.model, first, device.torch)
    learner = METHODS[point.method](config, model, device)
    return State(model, learner, cursor=SEQUENCES_APART * point.seed)


def name_of(device: Device) -> str:
    """Return the card's name, or the processor's kind, and the precision."""
    is_card = device.torch.type == "cuda"
    name = torch.cuda.get_device_name(device.torch) if is_card else str(device.torch)
    return f"{name}, {device.precision}"


def last_loss(line: dict[str, Any]) -> float:
    """Return the loss after the last round in nats a byte; infinite where the run diverged."""
    losses = line["losses"]
    return float("inf") if line["has_diverged"] else float(losses[max(losses, key=int)])
