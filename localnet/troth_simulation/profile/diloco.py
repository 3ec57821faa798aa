"""DiLoCo: many local steps of AdamW, then one exchange of what they changed (arXiv 2311.08105).

Owns: inner and outer optimiser. Never: compresses: the exchange is an all-reduce in fp32.
Next: `decoupled.py`.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from troth_client.train.step import MICRO
from troth_simulation.profile.workload import Material, backward

OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9
"""Of the paper, for Nesterov's momentum."""


class DiLoCo:
    """One rank of DiLoCo; `anchor` holds the weights of the last exchange."""

    def __init__(self, material: Material) -> None:
        self.model = material.model()
        self._material = material
        self._inner = material.adamw(self.model.parameters())
        self._anchor = nn.Parameter(self._weights())
        self._outer = torch.optim.SGD(
            [self._anchor], lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True
        )

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Step locally; after `inner_steps` of them exchange."""
        backward(self.model, self.model, batch)
        limit = self._material.config.train.clip_micro / MICRO
        nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self._material.set_rate(self._inner, step)
        self._inner.step()
        self._inner.zero_grad()
        if self.is_common(step + 1):
            self._exchange()

    def is_common(self, num_steps: int) -> bool:
        """After whole outer rounds."""
        return num_steps % self._material.workload.inner_steps == 0

    @torch.no_grad()
    def _exchange(self) -> None:
        change = self._anchor.detach() - self._weights()
        distributed.all_reduce(change)
        self._anchor.grad = change / distributed.get_world_size()
        self._outer.step()
        vector_to_parameters(self._anchor.detach().clone(), self.model.parameters())

    def _weights(self) -> torch.Tensor:
        return parameters_to_vector(self.model.parameters()).detach().clone()
