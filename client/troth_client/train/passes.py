"""One forward and backward pass over one microbatch.

Owns: the loss that is differentiated, and the port behind which it may run another way.
Never: sums passes, clips, or changes weights; `step.py` sums.
Next: `compiled.py`, which runs the same pass as compiled kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters

Loss = Callable[[Llama, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Sums:
    """A loss in nats, fp32 [], and its gradients, fp32, in canonical order."""

    loss: Tensor
    gradients: Sequence[Tensor]


class Pass(Protocol):
    """How a machine computes one microbatch; every way is within the judge's tolerance."""

    def __call__(self, model: Llama, tokens: Tensor, num_predictions: int, device: Device) -> Sums:
        """Return the sums of `tokens`, int64 [B, T + 1], divided by `num_predictions`."""
        ...


def eager_pass(model: Llama, tokens: Tensor, num_predictions: int, device: Device) -> Sums:
    """Compute one microbatch operation by operation, as witnesses do."""
    return differentiated(summed_loss, model, (tokens, num_predictions), device)


def differentiated(loss_of: Loss, model: Llama, part: tuple[Tensor, int], device: Device) -> Sums:
    """Return a loss and its gradients; `part` is the tokens and what the loss is divided by."""
    tokens, num_predictions = part
    weights = list(trainable_parameters(model).values())
    with device.products():
        with device.autocast():
            loss = loss_of(model, tokens) / num_predictions
        return Sums(loss.detach(), torch.autograd.grad(loss, weights))


def summed_loss(model: Llama, tokens: Tensor) -> Tensor:
    """Cross-entropy in nats, summed over all predictions, in fp32. tokens int64 [B, T + 1]."""
    logits = model(tokens[:, :-1]).float()
    targets = tokens[:, 1:].reshape(-1)
    return functional.cross_entropy(logits.flatten(0, 1), targets, reduction="sum")
