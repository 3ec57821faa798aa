"""Calibration: how far honest work differs between machines, and how far cheats lie beyond it.

Owns: the ways in which this machine can compute one gradient, the cheats, a short training run,
and the audits between all of them. The audits use the judge's own arithmetic.
Never: a threshold (`thresholds.py` proposes them), a chain, a file.
Next: `thresholds.py`; `troth_cli/commands/calibrate.py` prints the table.

Some trainers train in the reference way. In each measured round, the next trainer is measured.
Every way computes its gradient; each result is opened as a trainer's and judged by every other way.
Cheats are judged by every way. All of them start from the true momentum, as a cheat would.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from troth_attestation.measure import (
    Distances,
    Own,
    Rule,
    Shown,
    measure,
    scale_of,
    with_second,
)
from troth_attestation.openings import Openings
from troth_attestation.sampling import drawn_tiles
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_attestation.state import Float32
from troth_attestation.verdict import Verdict, VerdictKind
from troth_attestation.work import conclude
from troth_client.audit.recompute import num_threads, recompute
from troth_client.audit.tails import Tails
from troth_client.compression import codec
from troth_client.compression.apply import update
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k
from troth_client.model.device import CPU, Device
from troth_client.model.init import initial_weights
from troth_client.state.round_state import Sequences
from troth_coordinator.rules.assignment import SequenceOrder, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.schedule import constants_of

Batch = NDArray[np.int64]
Weights = dict[str, torch.Tensor]

SKIPPED = (8, 4, 2)
"""Cheats skip one part in so many of their batch."""
TARGET = 0


@dataclass(frozen=True, slots=True)
class Way:
    """One honest way to compute a gradient: where, with how many threads, in what portions."""

    name: str
    device: Device
    threads: int
    microbatch: int

    def coefficients(self, config: RunConfig, weights: Weights, batch: Batch) -> Float32:
        """Return D(g), fp32 [T, 64, 64], of the batch at these weights."""
        train = config.train.model_copy(update={"microbatch_sequences": self.microbatch})
        own = config.model_copy(update={"train": train})
        with num_threads(self.threads):
            return recompute(own, weights, batch, self.device)


@dataclass(frozen=True, slots=True)
class Plan:
    """Train for `rounds`, measure in every `every`-th, `draws` audits of each pair in those.

    `trainers` payloads are applied in each round: the more, the further the weights move.
    """

    rounds: int = 40
    every: int = 2
    draws: int = 2
    seed: int = 0
    trainers: int = 4


@dataclass(slots=True)
class Group:
    """The audits of one kind of trainer by all witnesses of another kind.

    `highest_distance` is the largest distance between whole gradients of honest ways, relative to
    the larger gradient.
    """

    name: str
    is_honest: bool
    medians: list[float] = field(default_factory=list)
    most_bad_tiles: int = 0
    highest_residual: float = 0.0
    highest_distance: float = 0.0
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    tails: Tails = field(default_factory=Tails)

    def add(self, found: Distances, verdict: Verdict) -> None:
        """Count one audit; drawn tiles without gradient have a verdict but no distance."""
        self.verdicts[verdict.kind] += 1
        if found.has_gradient:
            self.medians.append(found.median_error)
            self.most_bad_tiles = max(self.most_bad_tiles, verdict.num_bad_tiles or 0)
            self.highest_residual = max(self.highest_residual, found.residual_ratio)


def ways_here(config: RunConfig) -> list[Way]:
    """Return the honest ways of this machine, the reference (fp32, one thread) first.

    Precisions fp32 and bf16 autocast on the processor and, where there is one, on CUDA; thread
    counts on the processor; the configured microbatch, single sequences, the whole batch.
    """
    train = config.train
    configured = train.microbatch_sequences
    others = sorted({1, train.sequences_per_payload} - {configured})
    ways = []
    for name, device, threads in _settings():
        ways.append(Way(name, device, threads, configured))
        ways += [Way(f"{name}, microbatch {n}", device, threads, n) for n in others]
    return ways


def calibrate(
    config: RunConfig,
    data: Sequences,
    ways: Sequence[Way],
    plan: Plan,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> list[Group]:
    """Train and measure; `ways[0]` is the reference in which the trainer and the cheats compute.

    `config` is bound to the data's manifest. Returns a group for each way as a trainer and for each
    cheat. Ways that cannot be compared with another (a single one) give groups without audits.
    """
    study = _Study(config, list(ways), plan)
    order = SequenceOrder(len(data), config.manifest_digest())
    per_payload = config.train.sequences_per_payload
    for round_ in range(plan.rounds):
        cursor = round_ * plan.trainers * per_payload
        starts = [rank_start(cursor, rank, per_payload) for rank in range(plan.trainers)]
        batches = [data.sequences(order.sequences(start, per_payload)) for start in starts]
        study.round(round_, batches, is_measured=round_ % plan.every == 0)
        report(round_ + 1, plan.rounds)
    return list(study.groups.values())


def cheats(batch: Batch) -> Iterator[tuple[str, Batch | None]]:
    """Yield each cheat and the part of the batch [s, T + 1] that it computes; None: no part."""
    sequences, predictions = batch.shape[0], batch.shape[1] - 1
    for part in SKIPPED:
        if sequences % part == 0:
            yield f"1/{part} of the sequences skipped", batch[: sequences - sequences // part]
        if predictions % part == 0:
            kept = predictions - predictions // part
            yield f"1/{part} of every sequence skipped", batch[:, : kept + 1]
    yield "free-rider, nothing computed", None


class _Study:
    """The training run and what was measured along it."""

    def __init__(self, config: RunConfig, ways: list[Way], plan: Plan) -> None:
        self.groups: dict[str, Group] = {}
        self._config = config
        self._ways = ways
        self._plan = plan
        self._rule = Rule(config.demo, config.judge)
        initial = initial_weights(H("troth:calibrate", u64(plan.seed)), config.model)
        self._weights = {name: torch.from_numpy(array) for name, array in initial.items()}
        shapes = {name: tuple(w.shape) for name, w in self._weights.items()}
        self._layout = TileLayout.from_shapes(shapes)
        self._residual = Residual.of(config)
        nothing = np.zeros((self._layout.num_tiles, TILE_SIDE, TILE_SIDE), np.float32)
        self._trainers = [_Trainer(nothing) for _ in range(plan.trainers)]
        self._path = choose_path("cpu")

    def round(self, round_: int, batches: Sequence[Batch], is_measured: bool) -> None:
        """Measure at w_r if asked to, then train on it."""
        found = [self._ways[0].coefficients(self._config, self._weights, b) for b in batches]
        if is_measured:
            turn = round_ // self._plan.every % len(batches)
            self._measure(round_, batches[turn], found[turn], self._trainers[turn])
        self._train(round_, found)

    def _measure(self, round_: int, batch: Batch, reference: Float32, trainer: "_Trainer") -> None:
        compute = [way.coefficients for way in self._ways[1:]]
        others = [function(self._config, self._weights, batch) for function in compute]
        found = [reference, *others]
        owns = [Own(tiles, self._second(number, found)) for number, tiles in enumerate(found)]
        for number, way in enumerate(self._ways):
            witnesses = owns[:number] + owns[number + 1 :]
            shown = trainer.shows(self._residual, found[number], self._config.demo.k)
            group = self._audit(Group(way.name, is_honest=True), shown, witnesses, round_)
            apart = [_distance(found[number], tiles) for tiles in found]
            group.highest_distance = max([group.highest_distance, *apart])
        for name, part in cheats(batch):
            made = np.zeros_like(reference)
            if part is not None:
                made = self._ways[0].coefficients(self._config, self._weights, part)
            shown = trainer.shows(self._residual, made, self._config.demo.k)
            self._audit(Group(name, is_honest=False), shown, owns, round_)

    def _second(self, number: int, found: Sequence[Float32]) -> Callable[[], Float32 | None]:
        """Return what a witness of this way computes in the other precision."""
        device = self._ways[number].device.other_precision()
        same = [tiles for way, tiles in zip(self._ways, found, strict=True) if way.device == device]
        return lambda: same[0] if same else None

    def _audit(self, group: Group, shown: "_Shown", witnesses: Sequence[Own], round_: int) -> Group:
        """Let every witness judge what a trainer shows, over several draws; return the group."""
        group = self.groups.setdefault(group.name, group)
        for number in range(self._plan.draws):
            seed = H("troth:calibrate", u64(self._plan.seed), u64(round_), u64(number))
            count = self._config.judge.openings_tiles
            tiles = drawn_tiles(seed, TARGET, self._layout.num_tiles, count)
            rows = list(tiles)
            flat = (len(rows), TILE_COEFFICIENTS)
            after, before = (u[rows].reshape(flat) for u in (shown.after, shown.before))
            about = Shown.of(Openings(tiles, after, before), self._config.demo)
            for own in witnesses:
                self._judge(group, about, own, shown.sent)
        return group

    def _judge(self, group: Group, about: Shown, own: Own, sent: Signs) -> None:
        """Judge as a witness does; keep what honest trainers showed it."""
        if own.tiles is None:
            return
        scale = scale_of(own.tiles)
        found = measure(about, own.tiles, scale, sent, self._rule)
        group.add(found, conclude(about, sent, own, self._rule, found))
        if not group.is_honest:
            return
        second = own.again()
        counted = found
        if second is not None:
            counted = with_second(found, about, (own.tiles, second), sent, self._rule)
        group.tails.add(found, counted, self._config.judge)
        share = float((scale.norms > 0).mean())
        group.tails.least_share = min(group.tails.least_share, share)

    def _train(self, round_: int, coefficients: Sequence[Float32]) -> None:
        """Send the reference payloads, include all of them, apply them."""
        demo = self._config.demo
        payloads = []
        for trainer, own in zip(self._trainers, coefficients, strict=True):
            sent = trainer.send(self._residual, own, demo.k)
            payloads.append(codec.decode(codec.encode(sent), self._layout.num_tiles, demo.k))
        constants = constants_of(self._config.schedule, round_)
        update(self._weights, payloads, self._layout, (constants.a, constants.b), self._path)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The values that an audit opens: u of the round and of the round before, fp32 [T, 64, 64].

    `sent` is the payload.
    """

    after: Float32
    before: Float32
    sent: Signs


@dataclass(slots=True)
class _Trainer:
    """The momentum that one trainer carries on; `previous` is its u of the round before."""

    previous: Float32
    momentum: torch.Tensor | None = None

    def shows(self, residual: Residual, coefficients: Float32, k: int) -> _Shown:
        """Return the values that the trainer would open if it had computed this D(g)."""
        moved = residual.accumulate(self.momentum, torch.from_numpy(coefficients))
        sent = top_k(moved.u, k).signs(residual.is_sent(moved))
        return _Shown(moved.u.numpy(), self.previous, sent)

    def send(self, residual: Residual, coefficients: Float32, k: int) -> Signs:
        """Return the payload's signs for this D(g), and keep the rest as momentum."""
        moved = residual.accumulate(self.momentum, torch.from_numpy(coefficients))
        top = top_k(moved.u, k)
        self.momentum, self.previous = residual.after_included(moved.u, top), moved.u.numpy()
        return top.signs(residual.is_sent(moved))


def _distance(first: Float32, second: Float32) -> float:
    """Return ||a - b|| / max(||a||, ||b||), the distance that two sketches estimate."""
    larger = max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
    return float(np.linalg.norm(first - second)) / larger if larger else 0.0


def _settings() -> Iterator[tuple[str, Device, int]]:
    """Yield name, device and threads of the ways of this machine, the reference first."""
    yield "cpu fp32", CPU, 1
    for threads in sorted({2, os.cpu_count() or 1} - {1}):
        yield f"cpu fp32, {threads} threads", CPU, threads
    yield "cpu bf16", Device(torch.device("cpu"), is_mixed=True), 1
    if torch.cuda.is_available():
        cuda = torch.device("cuda")
        yield "cuda fp32", Device(cuda, is_mixed=False), 1
        if torch.cuda.is_bf16_supported():
            yield "cuda bf16", Device(cuda, is_mixed=True), 1
