"""Cheats about work: changes of the batch and of the gradient before they are signed.

Owns: plain numpy transformations. Never: torch, a model, a chain.
Next: `signed.py` for cheats about signed bytes, `cheat.py` for the beginning of a cheat.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[np.int64]
"""Tokens [sequences, T + 1]."""
Gradient = Mapping[str, NDArray[np.float32]]
"""Tensors by name."""

_LAYER = "model.layers."


def same_batch(batch: Batch) -> Batch:
    """Return the assigned batch."""
    return batch


def part_of_each(numerator: int, denominator: int) -> Callable[[Batch], Batch]:
    """Keep this share of every sequence's predictions, from its beginning, at least one."""

    def shorten(batch: Batch) -> Batch:
        predictions = (batch.shape[1] - 1) * numerator // denominator
        return batch[:, : max(1, predictions) + 1]

    return shorten


def part_of_batch(numerator: int, denominator: int) -> Callable[[Batch], Batch]:
    """Keep this share of the sequences, at least one; the others are skipped."""

    def skip(batch: Batch) -> Batch:
        return batch[: max(1, len(batch) * numerator // denominator)]

    return skip


def backwards(batch: Batch) -> Batch:
    """Read every sequence from its end: text, but not the assigned text."""
    return np.ascontiguousarray(batch[:, ::-1])


def same_gradient(gradient: Gradient) -> Gradient:
    """Return the gradient as it was computed."""
    return gradient


def negated(gradient: Gradient) -> Gradient:
    """Push the loss up instead of down."""
    return {name: -tensor for name, tensor in gradient.items()}


def of_last_layers(gradient: Gradient) -> Gradient:
    """Stop the backward pass half-way: the first half of the layers and the embedding get zeros."""
    numbers = {name: _layer(name) for name in gradient}
    first_kept = (max(numbers.values()) + 2) // 2
    is_kept = {
        name: number >= first_kept if number >= 0 else "embed" not in name
        for name, number in numbers.items()
    }
    return {name: t if is_kept[name] else np.zeros_like(t) for name, t in gradient.items()}


def bent(share: float) -> Callable[[Gradient], Gradient]:
    """Move every value by this share of itself towards a target: here, every weight upwards.

    The error of each tile is exactly this share of its norm.
    """

    def bend(gradient: Gradient) -> Gradient:
        return {n: (t - share * np.abs(t)).astype(np.float32) for n, t in gradient.items()}

    return bend


def _layer(name: str) -> int:
    """Return the number of the layer that a tensor belongs to, -1 for the others."""
    return int(name.removeprefix(_LAYER).split(".")[0]) if name.startswith(_LAYER) else -1
