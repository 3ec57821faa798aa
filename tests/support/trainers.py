"""A trainer and a witness of one small run, on real parts: model, tokens, DeMo, payload, openings.

`Trainer.round` does what `steps/produce.py` does; a cheat replaces D(g) and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_attestation import openings
from troth_attestation.header import Header
from troth_attestation.measure import Own
from troth_attestation.state import data_root, residual_tree, zero_residual_root
from troth_attestation.verdict import Verdict
from troth_client.audit.drawn import sampled_payload
from troth_client.audit.judgement import Evidence, judge_work
from troth_client.compression import codec
from troth_client.compression.dct import dct2
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k
from troth_client.model.device import CPU, Device
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.train.step import gradient
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.config import (
    DataSection,
    DemoSection,
    ModelSection,
    RunConfig,
    TrainSection,
)
from troth_coordinator.rules.hashing import H
from troth_coordinator.rules.ids import NONE

CONFIG = RunConfig(
    model=ModelSection(
        vocab_size=256,
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=32,
        tie_word_embeddings=False,
    ),
    data=DataSection(sequence_tokens=32),
    demo=DemoSection(k=8),
    train=TrainSection(sequences_per_payload=8, microbatch_sequences=4, clip_micro=100_000),
).with_manifest(b"m" * 32)
ORDER = SequenceOrder(400, b"m" * 32)
SIGMA = H("troth:test")
MIXED = Device(torch.device("cpu"), is_mixed=True)
TARGET = 2
ZERO = bytes(32)


class Tokens:
    """Sequences in which each token depends on the one before, so that there is much to learn."""

    def __init__(self, config: RunConfig = CONFIG) -> None:
        draw = np.random.default_rng(5)
        steps = draw.integers(1, 7, (400, config.data.sequence_tokens + 1))
        self._rows = np.cumsum(steps, axis=1) % 256

    def sequences(self, ids: Sequence[int]) -> NDArray[np.int64]:
        return self._rows[list(ids)].astype(np.int64)


TOKENS = Tokens()
IDS = ORDER.sequences(16, 8)
"""The sequences of one payload."""
BATCH = TOKENS.sequences(IDS)


def weights(config: RunConfig = CONFIG) -> dict[str, NDArray[np.float32]]:
    """w_0 of the run."""
    return initial_weights(ZERO, config.model)


def coefficients(
    batch: NDArray[np.int64],
    device: Device = CPU,
    microbatch: int | None = None,
    config: RunConfig = CONFIG,
) -> Tensor:
    """D(g) as a trainer computes it, written apart from `recompute`."""
    model = build(config.model, weights(config), device.torch)
    size = microbatch or config.train.microbatch_sequences
    found = gradient(model, batch, size, config.train.clip_micro, device)
    layout = TileLayout.from_shapes({n: tuple(t.shape) for n, t in found.tensors.items()})
    return dct2(layout.to_tiles(found.tensors))


@dataclass
class Trainer:
    """Momentum of a trainer that is included in every round."""

    config: RunConfig = CONFIG
    momentum: Carried | None = None
    previous: openings.Residual | None = None
    previous_round: int = NONE

    def round(self, round_: int, d_g: Tensor, ids: Sequence[int]) -> Evidence:
        """Make the payload of a round from D(g), be included, and return what a judge receives."""
        rule = Residual.of(self.config)
        moved = rule.accumulate(self.momentum, d_g)
        u, top = moved.u, top_k(moved.u, self.config.demo.k)
        payload = codec.encode(top.signs(rule.is_sent(moved)))
        after = openings.Residual(u.numpy(), residual_tree(u.numpy()))
        before, previous_round = self.previous, self.previous_round
        self.momentum = Carried(u, top.indices)
        self.previous, self.previous_round = after, round_
        header = Header(
            **dict.fromkeys(("genesis_hash", "program_id", "run", "owner", "session"), ZERO),
            **dict.fromkeys(("config_hash", "state_root", "salt"), ZERO),
            epoch=0,
            round=round_,
            index=TARGET,
            data_root=data_root(ids),
            previous_included=previous_round,
            residual_before=before.tree.root if before else zero_residual_root(len(u)),
            residual_after=after.tree.root,
            payload_root=codec.payload_root(payload),
            payload_bytes=len(payload),
            mean_loss=0,
        )
        return self._opened(header, payload, after, before)

    def _opened(
        self,
        header: Header,
        payload: bytes,
        after: openings.Residual,
        before: openings.Residual | None,
    ) -> Evidence:
        sampled = sampled_payload(SIGMA, header, len(after.u), self.config.judge.openings_tiles)
        data = openings.encode(sampled, after, before)
        return Evidence(SIGMA, header, payload, data, openings.openings_root(data))


def honest_history(trainer: Trainer, num_rounds: int) -> Trainer:
    """Let a trainer build up momentum over other sequences."""
    for round_ in range(num_rounds):
        ids = ORDER.sequences(round_ * 8 + 200, 8)
        trainer.round(round_, _past_gradient(ids), ids)
    return trainer


def judged(tensors: Mapping[str, Tensor]) -> Verdict:
    """The verdict on a gradient of BATCH, by a judge's own eager one."""
    layout = TileLayout.from_shapes({n: tuple(t.shape) for n, t in tensors.items()})
    evidence = honest_history(Trainer(), 6).round(6, dct2(layout.to_tiles(tensors)), IDS)
    return judge_work(evidence, Own(coefficients(BATCH).numpy()), CONFIG)


@cache
def _past_gradient(ids: tuple[int, ...]) -> Tensor:
    return coefficients(TOKENS.sequences(ids))
