"""The workload in torch: first weights, the tokens of each step and rank, rates, held-out text.

Owns: everything that the methods share, so that they differ in nothing else.
Never: an exchange between ranks. Next: `averaged.py`, `diloco.py` and `decoupled.py`.
"""

import numpy as np
from numpy.typing import NDArray
from torch import nn

from troth_client.data.manifest import load_manifest
from troth_client.data.shards import TokenData
from troth_client.model.device import CPU
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.weights import build
from troth_client.runtime.files import Closable
from troth_client.train.adamw import adamw
from troth_client.train.evaluate import evaluate
from troth_client.train.passes import summed_loss
from troth_client.train.step import MICRO, as_tokens
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.schedule import lr_nano
from troth_simulation.profile.records import Workload

HELD_OUT: int = 64
"""Sequences of held-out text, at most, in one loss."""
BETAS = (0.9, 0.95)
WEIGHT_DECAY = 0.1
"""Of AdamW, in all three methods that use it."""


class Material(Closable):
    """Everything that one rank trains on. A context manager; leaving it closes the data."""

    def __init__(self, workload: Workload, rank: int) -> None:
        self.workload = workload
        self.config = workload.config
        self._rank = rank
        manifest = load_manifest(workload.data)
        self._train = TokenData(workload.data, manifest)
        self._held_out = TokenData(workload.data, manifest, "validation")
        self._order = SequenceOrder(len(self._train), manifest.hash)

    def model(self) -> Llama:
        """Return the model with its first weights, which are the same for every rank and method."""
        seed = self.workload.seed.to_bytes(32, "little")
        return build(self.config.model, initial_weights(seed, self.config.model))

    def batch(self, step: int) -> NDArray[np.int64]:
        """Return this rank's sequences of a step, as a round of a run assigns them."""
        ranks, count = self.workload.num_ranks, self.config.train.sequences_per_payload
        cursor = step * next_cursor(0, ranks, count)
        ids = self._order.sequences(rank_start(cursor, self._rank, count), count)
        return self._train.sequences(ids)

    def schedule_step(self, step: int) -> int:
        """Return the round of the schedule that a step stands for: the last one after its end."""
        return min(step, self.config.schedule.rounds - 1)

    def adamw_lr(self, step: int) -> float:
        """Return the learning rate of a step: the peak times the share that the schedule gives."""
        schedule = self.config.schedule
        share = lr_nano(schedule, self.schedule_step(step)) / schedule.lr_nano
        return self.workload.adamw_lr * share

    def held_out_loss(self, model: Llama) -> float:
        """Return the mean loss in nats a token over this rank's part of the held-out text."""
        count = min(HELD_OUT, len(self._held_out)) // self.workload.num_ranks
        ids = range(self._rank * count, (self._rank + 1) * count)
        return evaluate(model, self._held_out.sequences(ids)) / 1e6

    def close(self) -> None:
        """Close the data."""
        self._train.close()
        self._held_out.close()


class AdamWSteps:
    """AdamW on one rank, as three methods use it; `called` is the model or its wrapper."""

    def __init__(self, material: Material, model: Llama, called: Llama) -> None:
        self._material = material
        self._model = model
        self._called = called
        self._optimizer = adamw(
            model.parameters(), lr=material.adamw_lr(0), betas=BETAS, weight_decay=WEIGHT_DECAY
        )

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Take the gradient of the mean loss, as the wrapper exchanges it; clip it, step."""
        tokens = as_tokens(self._model, batch, CPU)
        loss = summed_loss(self._called, tokens) / tokens[:, 1:].numel()
        loss.backward()  # type: ignore[no-untyped-call]
        limit = self._material.config.train.clip_micro / MICRO
        nn.utils.clip_grad_norm_(self._model.parameters(), limit)
        for group in self._optimizer.param_groups:
            group["lr"] = self._material.adamw_lr(step)
        self._optimizer.step()
        self._optimizer.zero_grad()
