"""The gradient of one payload: mean loss over the assigned sequences, clipped.

Owns: microbatch order, accumulation in fp32, the clip by global norm. Never: changes weights or a
`.grad` field, draws a random number, or applies a learning rate (the update's size is consensus).
Next: `compression/` turns the gradient into a payload; a witness calls this same function.

On a CPU with one thread the result is the same bits every time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from troth_client.model.device import CPU, Device
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters
from troth_client.train.errors import BatchShapeError, NonFiniteError

MICRO = 10**6


@dataclass(frozen=True)
class Gradient:
    """The gradient from which one payload is made.

    `tensors`: canonical name -> fp32, on the model's device, after the clip. `mean_loss_micro`:
    micro-nats per token. `norm`: global norm before the clip.
    """

    tensors: Mapping[str, Tensor]
    mean_loss_micro: int
    norm: float


def gradient(
    model: Llama,
    batch: NDArray[np.int64],
    microbatch_sequences: int,
    clip_micro: int,
    device: Device = CPU,
) -> Gradient:
    """Gradient of the mean loss over the sequences of `batch`, int64 [sequences, T + 1].

    Microbatches are taken in the order of the batch and summed in fp32; a last one may be smaller.
    The global norm is clipped to `clip_micro` / 10^6. Pure: the model is not changed.
    Raises BatchShapeError; NonFiniteError when the loss or the gradient is not finite.
    """
    tokens = as_tokens(model, batch, device)
    parameters = trainable_parameters(model)
    weights = list(parameters.values())
    total = [torch.zeros_like(weight) for weight in weights]
    loss_sum = torch.zeros((), dtype=torch.float32, device=device.torch)
    num_predictions = tokens.shape[0] * (tokens.shape[1] - 1)
    for part in torch.split(tokens, microbatch_sequences):
        with device.autocast():
            loss = summed_loss(model, part) / num_predictions
        parts = torch.autograd.grad(loss, weights)
        torch._foreach_add_(total, parts)
        loss_sum += loss.detach()
    norm = clip(total, clip_micro)
    return Gradient(dict(zip(parameters, total, strict=True)), micro_nats(loss_sum), norm)


def summed_loss(model: Llama, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over all predictions, in fp32. tokens int64 [B, T + 1]."""
    logits = model(tokens[:, :-1]).float()
    targets = tokens[:, 1:].reshape(-1)
    return functional.cross_entropy(logits.flatten(0, 1), targets, reduction="sum")


def clip(gradients: list[Tensor], clip_micro: int) -> float:
    """Scale the gradients in place to a global norm of at most `clip_micro` / 10^6.

    Returns the norm before, summed in fp64 over the tensors. Raises NonFiniteError.
    """
    norms = torch.stack(torch._foreach_norm(gradients)).cpu().double()
    norm = float(torch.linalg.vector_norm(norms))
    if not np.isfinite(norm):
        raise NonFiniteError(
            "a finite gradient",
            f"a global norm of {norm}",
            "Nothing is sent this round; if it happens again, lower the learning rate of the run.",
        )
    limit = clip_micro / MICRO
    if norm > limit:
        torch._foreach_mul_(gradients, limit / norm)
    return norm


def micro_nats(loss: Tensor) -> int:
    """Express a loss in nats as a whole number of micro-nats. Raises NonFiniteError."""
    value = float(loss)
    if not np.isfinite(value):
        raise NonFiniteError(
            "a finite loss",
            f"{value}",
            "Check that the weights are those of the state root; lower the run's learning rate.",
        )
    return round(value * MICRO)


def as_tokens(model: Llama, batch: NDArray[np.int64], device: Device) -> Tensor:
    """Put the batch on the device. Raises BatchShapeError for what the model cannot take."""
    longest, vocab = model.config.max_position_embeddings, model.config.vocab_size
    is_shaped = batch.ndim == 2 and len(batch) > 0 and 2 <= batch.shape[1] <= longest + 1
    if not is_shaped or batch.dtype != np.int64:
        raise BatchShapeError(
            f"int64 tokens [sequences, 2..{longest + 1}]",
            f"{batch.dtype} {list(batch.shape)}",
            "Prepare the data with a sequence length that the model config allows.",
        )
    if batch.min() < 0 or batch.max() >= vocab:
        raise BatchShapeError(
            f"tokens in 0..{vocab - 1}",
            f"{int(batch.min())}..{int(batch.max())}",
            "The data and the model config disagree on the vocabulary.",
        )
    return torch.from_numpy(np.ascontiguousarray(batch)).to(device.torch)
