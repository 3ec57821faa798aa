"""The validation loss: how well weights predict text that no trainer sees.

Owns: one number. Never: feeds anything back into training; it is telemetry.
Next: passes.py for the loss itself.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from troth_client.model.device import CPU, Device
from troth_client.model.llama import Llama
from troth_client.train.passes import summed_loss
from troth_client.train.step import as_tokens, micro_nats


@torch.no_grad()
def evaluate(
    model: Llama, batch: NDArray[np.int64], microbatch_sequences: int = 8, device: Device = CPU
) -> int:
    """Mean loss in micro-nats per token over `batch`, int64 [sequences, T + 1].

    `microbatch_sequences` is the config's number; the device may have one of its own.
    Raises BatchShapeError, NonFiniteGradientError.
    """
    tokens = as_tokens(model, batch, device)
    total = torch.zeros((), dtype=torch.float32, device=device.torch)
    for part in torch.split(tokens, device.at_once(microbatch_sequences)):
        with device.products(), device.autocast():
            total += summed_loss(model, part)
    return micro_nats(total / (tokens.shape[0] * (tokens.shape[1] - 1)))
