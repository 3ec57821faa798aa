"""The gradient of one payload: mean loss over the assigned sequences, clipped.

Owns: microbatch order, accumulation in fp32, the clip by global norm. Never: changes weights or a
`.grad` field, draws a random number, or applies a learning rate (the update's size is consensus).
Next: `compression/` turns the gradient into a payload; a witness calls this same function.
`learner.py` is how a trainer may compute it otherwise.

On a CPU with one thread the result is the same bits every time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_client.model.device import CPU, Device
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters
from troth_client.train.errors import BatchShapeError, NonFiniteGradientError
from troth_client.train.passes import Pass, Sums, eager_pass

MICRO = 10**6
MAX_HEADER_LOSS = 2**63
"""A header holds fewer micro-nats: they are an i64 there."""
_NORM_BLOCK = 2**20
"""A sum of so many squares in fp32 is off by some 1e-5; over 10^8 it would lose a hundredth."""


@dataclass(frozen=True)
class Gradient:
    """The gradient from which one payload is made.

    `tensors`: canonical name -> fp32, on the model's device, after the clip. `mean_loss_micro`:
    micro-nats per token. `norm`: global norm before the clip.
    """

    tensors: Mapping[str, Tensor]
    mean_loss_micro: int
    norm: float


def gradient(  # the six things that a gradient depends on
    model: Llama,
    batch: NDArray[np.int64],
    microbatch_sequences: int,
    clip_micro: int,
    device: Device = CPU,
    one_pass: Pass = eager_pass,
) -> Gradient:
    """Gradient of the mean loss over the sequences of `batch`, int64 [sequences, T + 1].

    Microbatches are taken in the order of the batch and summed in fp32; a last one may be smaller.
    `microbatch_sequences` is the config's number; the device may have one of its own.
    The global norm is clipped to `clip_micro` / 10^6. Pure: the model is not changed.
    Raises BatchShapeError; NonFiniteGradientError when the loss or the gradient is not finite.
    """
    tokens = as_tokens(model, batch, device)
    parts = torch.split(tokens, device.at_once(microbatch_sequences))
    return clipped(model, summed(model, parts, predictions(batch), device, one_pass), clip_micro)


def summed(
    model: Llama, parts: Sequence[Tensor], num_predictions: int, device: Device, one_pass: Pass
) -> Sums:
    """Return loss and gradients summed over microbatches, each int64 [B, T + 1] on the device.

    Both are divided by `num_predictions`, so that sums of shares add up to means over the whole.
    """
    total = [torch.zeros_like(weight) for weight in trainable_parameters(model).values()]
    loss = torch.zeros((), dtype=torch.float32, device=device.torch)
    for part in parts:
        found = one_pass(model, part, num_predictions, device)
        torch._foreach_add_(total, list(found.gradients))
        loss += found.loss
        del found  # before there is the next one: each is as large as the model
    return Sums(loss, total)


def clipped(model: Llama, sums: Sums, clip_micro: int) -> Gradient:
    """Return the gradient of a payload from the sums of its batch, which are changed in place.

    Raises NonFiniteGradientError.
    """
    total = list(sums.gradients)
    norm = clip(total, clip_micro)
    names = trainable_parameters(model)
    return Gradient(dict(zip(names, total, strict=True)), micro_nats(sums.loss), norm)


def predictions(batch: NDArray[np.int64]) -> int:
    """Return the number of predicted tokens in a batch, int64 [sequences, T + 1]."""
    return int(batch.shape[0]) * (int(batch.shape[1]) - 1)


def clip(gradients: list[Tensor], clip_micro: int) -> float:
    """Scale the gradients in place to a global norm of at most `clip_micro` / 10^6.

    Returns the norm before. Raises NonFiniteGradientError.
    """
    norm = norm_of(gradients)
    limit = clip_micro / MICRO
    if norm > limit:
        torch._foreach_mul_(gradients, limit / norm)
    return norm


def norm_of(gradients: Sequence[Tensor]) -> float:
    """Return the global norm of fp32 tensors: of blocks, whose norms are summed in fp64.

    Devices sum in different orders, and must clip alike. Raises NonFiniteGradientError.
    """
    blocks = [block for one in gradients for block in torch.split(one.reshape(-1), _NORM_BLOCK)]
    norms = torch.stack(torch._foreach_norm(blocks)).cpu().double()
    norm = float(torch.linalg.vector_norm(norms))
    if not np.isfinite(norm):
        raise NonFiniteGradientError(
            "a finite gradient",
            f"a global norm of {norm}",
            "Nothing is sent this round; if it happens again, lower the learning rate of the run.",
        )
    return norm


def micro_nats(loss: Tensor) -> int:
    """Express a loss in nats as a whole number of micro-nats. Raises NonFiniteGradientError."""
    value = float(loss)
    if not abs(value) * MICRO < MAX_HEADER_LOSS:  # nor NaN
        raise NonFiniteGradientError(
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
