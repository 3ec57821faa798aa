"""How this machine computes the gradients of its own payloads.

Owns: the port, and its form on one device: the pass.
Never: a witness's computation (`audit/recompute.py` calls `step.gradient` with the eager pass).
Next: `step.py` for the gradient.

A learner's choices change a gradient within the judge's tolerance only. Parameters that are spread
over devices (FSDP) would be another learner: the rest sees a gradient by name and no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from numpy import int64
from numpy.typing import NDArray

from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.train.compiled import CompiledPass
from troth_client.train.passes import Pass, eager_pass
from troth_client.train.step import Gradient, gradient
from troth_coordinator.rules.config import RunConfig, TrainSection


class Learner(Protocol):
    """Computes the clipped gradient of a batch; heavy, so it is called in a thread."""

    def gradient(
        self, model: Llama, batch: NDArray[int64], train: TrainSection, device: Device
    ) -> Gradient:
        """Return the gradient of a batch, int64 [sequences, T + 1]. Errors as in `step.py`."""
        ...

    def prepare(self, model: Llama, config: RunConfig, device: Device) -> None:
        """Get ready before the first round."""
        ...


@dataclass(frozen=True, slots=True)
class OneDevice:
    """All of the batch on one device, in the device's microbatches."""

    one_pass: Pass = eager_pass

    def gradient(
        self, model: Llama, batch: NDArray[int64], train: TrainSection, device: Device
    ) -> Gradient:
        """Compute in the batch's order."""
        size = train.microbatch_sequences
        return gradient(model, batch, size, train.clip_micro, device, self.one_pass)

    def prepare(self, model: Llama, config: RunConfig, device: Device) -> None:
        """Compile for the batch of a payload; slow, for a thread."""
        self.prepare_for([config.train.sequences_per_payload], model, config, device)

    def prepare_for(
        self, batches: Sequence[int], model: Llama, config: RunConfig, device: Device
    ) -> None:
        """Compile for the microbatches of batches with so many sequences each."""
        one_pass = self.one_pass
        if not isinstance(one_pass, CompiledPass):
            return
        train, width = config.train, config.data.sequence_tokens + 1
        size = device.at_once(train.microbatch_sequences)
        for rows in sorted({rows for batch in batches for rows in microbatches(batch, size)}):
            tokens = torch.arange(rows * width) % config.model.vocab_size
            one_pass.prepare(model, tokens.view(rows, width).to(device.torch), device)


DEFAULT = OneDevice()
"""In eager mode."""


def microbatches(num_sequences: int, size: int) -> Sequence[int]:
    """Return the numbers of rows that occur when a batch is split."""
    found = {min(size, num_sequences), num_sequences % size}
    return sorted(found - {0}, reverse=True)
