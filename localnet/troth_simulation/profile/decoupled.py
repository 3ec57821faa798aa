"""DeMo: the project's own encoder, payload and exact step; payloads go round by all-gather.

Owns: one rank of it without a chain. Every payload is included, and nothing is signed or audited.
Never: another arithmetic than that of a participant.
Next: `rank.py`; `troth_client/compression` for the method itself.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed

from troth_client.compression import apply, codec
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.model.weights import weight_views
from troth_client.train.step import gradient
from troth_coordinator.rules.schedule import constants_of
from troth_simulation.profile.workload import Material


class DeMo:
    """One rank of DeMo, with its momentum kept here."""

    def __init__(self, material: Material) -> None:
        self.model = material.model()
        self._material = material
        self._weights = weight_views(self.model)
        shapes = {name: tuple(weight.shape) for name, weight in self._weights.items()}
        self._layout = TileLayout.from_shapes(shapes)
        rule, k = Residual.of(material.config), material.config.demo.k
        self._path = choose_path("cpu", num_tiles=self._layout.num_tiles, k=k)
        self._encoder = self._path.encoder(self._layout, rule, k)
        self._momentum: Carried | None = None

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Encode the gradient, exchange payloads, apply all of them."""
        config = self._material.config
        found = gradient(self.model, batch, len(batch), config.train.clip_micro)
        encoded = self._encoder.encode(found.tensors, self._momentum, in_place=True)
        raw = codec.encode(encoded.top.signs(encoded.is_sent))
        self._momentum = encoded.carried
        payloads = [
            codec.decode(one, self._layout.num_tiles, config.demo.k) for one in _gathered(raw)
        ]
        constants = constants_of(config.schedule, self._material.schedule_step(step))
        pair = (constants.a, constants.b)
        apply.update(self._weights, payloads, self._layout, pair, self._path)


def _gathered(raw: bytes) -> list[bytes]:
    """Return the payloads of all ranks; those of one model are equally long."""
    own = torch.from_numpy(np.frombuffer(raw, np.uint8).copy())
    found = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(found, own)
    return [one.numpy().tobytes() for one in found]
