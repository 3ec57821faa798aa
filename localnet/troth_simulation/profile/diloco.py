"""DiLoCo: many local steps of AdamW, then one exchange of what they changed (arXiv 2311.08105).

Owns: inner and outer optimiser. Never: compresses: the exchange is an all-reduce in fp32.
Next: `decoupled.py`.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from troth_simulation.profile.workload import AdamWSteps, Material

OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9
"""Of the paper, for Nesterov's momentum."""


class DiLoCo:
    """One rank of DiLoCo; `anchor` holds the weights of the last exchange."""

    def __init__(self, material: Material) -> None:
        self.model = material.model()
        self._inner = AdamWSteps(material, self.model, self.model)
        self._inner_steps = material.workload.inner_steps
        self._anchor = nn.Parameter(self._weights())
        self._outer = torch.optim.SGD(
            [self._anchor], lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True
        )

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Step locally; after `inner_steps` of them exchange."""
        self._inner.step(step, batch)
        if (step + 1) % self._inner_steps == 0:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        change = self._anchor.detach() - self._weights()
        distributed.all_reduce(change)
        self._anchor.grad = change / distributed.get_world_size()
        self._outer.step()
        vector_to_parameters(self._anchor.detach().clone(), self.model.parameters())

    def _weights(self) -> torch.Tensor:
        return parameters_to_vector(self.model.parameters()).detach().clone()
