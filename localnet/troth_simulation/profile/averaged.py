"""DDP and FSDP: AdamW on the gradient that is the mean over all ranks.

Owns: the two wrappers that torch has for it. DDP keeps all weights on every rank. FSDP keeps a
share on each; it gathers the weights of a layer before use and scatters the gradients after it.
Never: chooses a collective; torch does. Next: `diloco.py`.
"""

from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from troth_client.model.llama import Llama
from troth_simulation.profile.workload import AdamWSteps, Material


class Averaged:
    """AdamW on averaged gradients. `called` is what the forward pass goes through."""

    def __init__(self, material: Material, model: Llama, called: Llama) -> None:
        self.model = model
        self._steps = AdamWSteps(material, model, called)

    @classmethod
    def ddp(cls, material: Material) -> Self:
        """Keep all weights here; one all-reduce of all gradients in each step."""
        model = material.model()
        return cls(material, model, cast(Llama, DistributedDataParallel(model)))

    @classmethod
    def fsdp(cls, material: Material) -> Self:
        """Shard every layer, and what is left, over the ranks (FSDP2, resharded after forward)."""
        from torch.distributed.fsdp import fully_shard  # noqa: PLC0415  takes seconds to import

        model = material.model()
        mesh = init_device_mesh("cpu", (distributed.get_world_size(),))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return cls(material, model, model)

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Average the gradient and step; torch exchanges during the backward pass."""
        self._steps.step(step, batch)
