"""DDP and FSDP: AdamW on the gradient that is the mean over all ranks.

Owns: the two wrappers that torch has for it. DDP keeps all weights on every rank. FSDP keeps a
share on each; it gathers the weights of a layer before use and scatters the gradients after it.
Never: chooses a collective; torch does. Next: `diloco.py`.
"""

from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from troth_client.model.llama import Llama
from troth_client.train.step import MICRO
from troth_simulation.profile.workload import Material, backward


class Averaged:
    """AdamW on averaged gradients. `called` is what the forward pass goes through."""

    def __init__(self, material: Material, model: Llama, called: Llama) -> None:
        self.model = model
        self._material = material
        self._called = called
        self._optimizer = material.adamw(model.parameters())

    @classmethod
    def ddp(cls, material: Material) -> Self:
        """Keep all weights here; one all-reduce of all gradients in each step."""
        model = material.model()
        return cls(material, model, cast(Llama, DistributedDataParallel(model)))

    @classmethod
    def fsdp(cls, material: Material) -> Self:
        """Shard every layer, and what is left, over the ranks (FSDP2, resharded after forward)."""
        model = material.model()
        mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return cls(material, model, model)

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Average the gradient, clip it, step."""
        backward(self._called, self.model, batch)
        limit = self._material.config.train.clip_micro / MICRO
        nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self._material.set_rate(self._optimizer, step)
        self._optimizer.step()
        self._optimizer.zero_grad()

    def is_common(self, num_steps: int) -> bool:
        """After every step."""
        del num_steps
        return True
