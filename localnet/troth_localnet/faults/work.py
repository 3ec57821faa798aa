"""Cheats about work: what a trainer does to its batch and to its gradient before it signs them.

Owns: plain numpy transformations, and when a cheat begins. Never: torch, a model, a chain.
Next: `catalogue.py`, which names them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[np.int64]
"""Tokens [sequences, T + 1]."""
Gradient = Mapping[str, NDArray[np.float32]]
"""Tensors by name."""

HONEST_ROUNDS = 3
"""Cheats earn their way in first: so many included payloads are honest."""


def same_batch(batch: Batch) -> Batch:
    """Return the assigned batch."""
    return batch


def same_gradient(gradient: Gradient) -> Gradient:
    """Return the gradient as it was computed."""
    return gradient


@dataclass(frozen=True, slots=True)
class Cheat:
    """What somebody does instead of the assigned work, from its fourth included payload on.

    `computes`: whether a gradient is computed at all; without, it is zero and what is sent is the
    decayed residual. `stale_rounds`: how many rounds old the weights are that it is computed on.
    """

    name: str
    story: str
    honest_rounds: int = HONEST_ROUNDS
    computes: bool = True
    stale_rounds: int = 0
    batch: Callable[[Batch], Batch] = same_batch
    gradient: Callable[[Gradient], Gradient] = same_gradient


def part_of_each(numerator: int, denominator: int) -> Callable[[Batch], Batch]:
    """Keep the beginning of every sequence: that part of its predictions, at least one."""

    def shorten(batch: Batch) -> Batch:
        predictions = (batch.shape[1] - 1) * numerator // denominator
        return batch[:, : max(1, predictions) + 1]

    return shorten


def backwards(batch: Batch) -> Batch:
    """Read every sequence from its end: text, but not the text that was assigned."""
    return np.ascontiguousarray(batch[:, ::-1])


def negated(gradient: Gradient) -> Gradient:
    """Push the loss up instead of down."""
    return {name: -tensor for name, tensor in gradient.items()}
