"""Canonical names on top of a torch model: views to read, apply to, and load into.

Owns: the parameter for each canonical name, and that masters are fp32. Never: copies unless asked,
or changes a value except by `load_weights`.
Next: shapes.py for the list of names; compression/apply.py changes the tensors of `weight_views`.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from troth_client.model.errors import WeightShapeError
from troth_client.model.llama import Llama
from troth_client.model.shapes import EMBEDDING, HEAD, check_shapes
from troth_coordinator.rules.config import ModelSection

Arrays = Mapping[str, NDArray[np.float32]]


def build(
    config: ModelSection,
    weights: Arrays | Mapping[str, Tensor],
    device: torch.device | None = None,
) -> Llama:
    """Make a model that holds copies of the weights (canonical names, fp32), on the device."""
    model = Llama(config)
    load_weights(model, weights)
    return model if device is None else model.to(device)


def trainable_parameters(model: Llama) -> dict[str, nn.Parameter]:
    """Canonical name -> parameter, in canonical order; a tied matrix once (see shapes.py)."""
    named = dict(model.named_parameters())
    if model.config.tie_word_embeddings:
        named[HEAD] = named.pop(EMBEDDING)
    return {name: named[name] for name in sorted(named, key=str.encode)}


def weight_views(model: Llama) -> dict[str, Tensor]:
    """Canonical name -> fp32 tensor that shares the memory of the parameter, without gradient."""
    return {name: parameter.detach() for name, parameter in trainable_parameters(model).items()}


def load_weights(model: Llama, weights: Arrays | Mapping[str, Tensor]) -> None:
    """Copy all trainable tensors into the model, bit for bit.

    Raises WeightNamesError or WeightShapeError (other names, shapes, or a dtype that is not fp32);
    the model is then unchanged.
    """
    given: dict[str, NDArray[np.float32] | Tensor] = dict(weights.items())
    for name, value in given.items():
        if value.dtype not in (np.float32, torch.float32):
            raise WeightShapeError(
                f"{name} as float32 masters", str(value.dtype), "Convert the weights to float32."
            )
    check_shapes(model.config, {name: tuple(value.shape) for name, value in given.items()})
    for name, view in weight_views(model).items():
        view.copy_(_as_tensor(given[name]))


def _as_tensor(value: NDArray[np.float32] | Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    # torch warns about arrays that it must not write to: it gets a copy, one tensor at a time.
    return torch.from_numpy(np.require(value, None, ["C", "W"]))
