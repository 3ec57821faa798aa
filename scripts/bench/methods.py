"""The ways of training that the benchmarks of quality compare, each for four trainers.

Owns: DeMo through the client's own encoder, codec and apply, every payload included. DeMo with each
update one round late. As baselines, Signum and AdamW on the mean of all gradients.
Never: chooses data, a rate or a schedule. A learner shows everything that its next round depends
on, beside the weights, so that a killed run goes on to the bit.
Next: `training.py`, which plays rounds; `quality.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_client.compression import apply, codec
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import CPU, Device
from troth_client.model.llama import Llama
from troth_client.model.shapes import trainable_shapes
from troth_client.model.weights import trainable_parameters, weight_views
from troth_client.train.step import Gradient, gradient
from troth_coordinator.rules.config import MICRO, NANO, RunConfig
from troth_coordinator.rules.schedule import constants_of, lr_nano

Batch = NDArray[np.int64]


class Learner(Protocol):
    """Trains one model. `num_bytes`: what one trainer tells the others in a round."""

    num_bytes: int

    def play(self, round_: int, batches: Sequence[Batch]) -> None:
        """Change the weights by one round; `batches`: of each trainer.

        Raises NonFiniteGradientError.
        """

    def tensors(self) -> dict[str, Tensor]:
        """Return all state beside the weights."""

    def take_up(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what `tensors` once returned."""


class DeMo:
    """Trainers of a run, without a chain: each round's payloads are applied at its end."""

    def __init__(self, config: RunConfig, model: Llama, device: Device = CPU) -> None:
        self.num_bytes = 0
        self._config, self._model, self._weights = config, model, weight_views(model)
        self._device = device
        layout = TileLayout.from_shapes(trainable_shapes(config.model))
        self._path = choose_path(device.torch, num_tiles=layout.num_tiles, k=config.demo.k)
        self._encoder = self._path.encoder(layout, Residual.of(config), config.demo.k)
        self._momenta: dict[int, Carried] = {}

    def play(self, round_: int, batches: Sequence[Batch]) -> None:
        """Encode each trainer's gradient, then apply all payloads."""
        self.apply(round_, self.payloads(batches))

    def payloads(self, batches: Sequence[Batch]) -> list[bytes]:
        """Return what each trainer sends; its momentum moves on."""
        return [self._payload(rank, batch) for rank, batch in enumerate(batches)]

    def apply(self, round_: int, payloads: Sequence[bytes]) -> None:
        """Read payloads as the others do, and apply them at the rate of their round."""
        layout, k = self._encoder.layout, self._encoder.k
        read = [codec.decode(raw, layout.num_tiles, k) for raw in payloads]
        constants = constants_of(self._config.schedule, round_)
        apply.update(self._weights, read, layout, (constants.a, constants.b), self._path)

    def _payload(self, rank: int, batch: Batch) -> bytes:
        found = gradient_of(self._config, self._model, batch, self._device)
        encoder = self._encoder
        made = encoder.encode(found.tensors, self._momenta.get(rank))
        raw = codec.encode(made.top.signs(made.is_sent))
        self._momenta[rank] = made.carried
        self.num_bytes = len(raw)
        return raw

    def tensors(self) -> dict[str, Tensor]:
        """Return u and the places of its top k of each trainer."""
        us = {f"u {rank}": one.u for rank, one in self._momenta.items()}
        tops = {f"top {rank}": torch.from_numpy(o.indices) for rank, o in self._momenta.items()}
        return us | tops

    def take_up(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from these momenta."""
        there = self._path.device
        self._momenta = {
            rank: Carried(tensors[f"u {rank}"].to(there), tensors[f"top {rank}"].numpy())
            for rank in _ranks(tensors)
        }


class DelayedDeMo(DeMo):
    """DeMo in which a round's gradients are computed before the round before has been applied.

    The last round's payloads are applied at its own end, so that no text was read for nothing.
    """

    def __init__(self, config: RunConfig, model: Llama, device: Device = CPU) -> None:
        super().__init__(config, model, device)
        self._waiting: list[bytes] = []

    def play(self, round_: int, batches: Sequence[Batch]) -> None:
        """Encode on weights that lack one update, then apply that update."""
        made = self.payloads(batches)
        if self._waiting:
            self.apply(round_ - 1, self._waiting)
        self._waiting = made
        if round_ == self._config.schedule.rounds - 1:
            self.apply(round_, made)

    def tensors(self) -> dict[str, Tensor]:
        """Return u and top of each trainer, and the payloads that are not yet applied."""
        waiting = {
            f"payload {rank}": torch.frombuffer(bytearray(raw), dtype=torch.uint8)
            for rank, raw in enumerate(self._waiting)
        }
        return super().tensors() | waiting

    def take_up(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from these momenta and payloads."""
        super().take_up(tensors)
        kept = [tensors[f"payload {rank}"] for rank in _ranks(tensors)]
        self._waiting = [payload.numpy().tobytes() for payload in kept]


class Signum:
    """The sign of the mean gradient's momentum, uncompressed; rate, decay and beta as DeMo's."""

    def __init__(self, config: RunConfig, model: Llama, device: Device = CPU) -> None:
        self._config, self._model, self._weights = config, model, weight_views(model)
        self._device = device
        self._momentum = {name: torch.zeros_like(one) for name, one in self._weights.items()}
        self.num_bytes = num_gradient_bytes(model)

    def play(self, round_: int, batches: Sequence[Batch]) -> None:
        """Add the mean gradient to the momentum, and step by its signs."""
        found = gradient_of(self._config, self._model, np.concatenate(batches), self._device)
        constants = constants_of(self._config.schedule, round_)
        for name, weight in self._weights.items():
            momentum = self._momentum[name]
            momentum.mul_(self._config.demo.beta_micro / MICRO).add_(found.tensors[name])
            weight.mul_(constants.a).sub_(momentum.sign().mul_(constants.b))

    def tensors(self) -> dict[str, Tensor]:
        """Return the momentum."""
        return self._momentum

    def take_up(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from this momentum."""
        self._momentum = {name: one.to(self._device.torch) for name, one in tensors.items()}


class AdamW:
    """torch's AdamW on the mean gradient, with the betas that are usual for language models."""

    def __init__(self, config: RunConfig, model: Llama, device: Device = CPU) -> None:
        self._config, self._model, self._device = config, model, device
        self._parameters = trainable_parameters(model)
        decay = config.schedule.wd_nano / NANO
        self._optimizer: Any = torch.optim.AdamW(
            self._parameters.values(), lr=0.0, betas=(0.9, 0.95), weight_decay=decay
        )
        self.num_bytes = num_gradient_bytes(model)

    def play(self, round_: int, batches: Sequence[Batch]) -> None:
        """Step by the mean gradient at the rate of the round."""
        found = gradient_of(self._config, self._model, np.concatenate(batches), self._device)
        self._optimizer.param_groups[0]["lr"] = lr_nano(self._config.schedule, round_) / NANO
        for name, parameter in self._parameters.items():
            parameter.grad = found.tensors[name]
        self._optimizer.step()
        self._optimizer.zero_grad()

    def tensors(self) -> dict[str, Tensor]:
        """Return the two moments and the count of steps of each parameter."""
        return {
            f"{what} {name}": tensor
            for name, parameter in self._parameters.items()
            for what, tensor in self._optimizer.state[parameter].items()
        }

    def take_up(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from these moments."""
        for key, tensor in tensors.items():
            what, name = key.split(" ", 1)
            own = self._parameters[name]
            # torch keeps the count of steps on the processor, and the moments with the weights.
            self._optimizer.state[own][what] = tensor if what == "step" else tensor.to(own.device)


METHODS: dict[str, type[DeMo] | type[Signum] | type[AdamW]] = {
    "adamw": AdamW,
    "signum": Signum,
    "demo": DeMo,
    "delayed": DelayedDeMo,
}


def gradient_of(config: RunConfig, model: Llama, batch: Batch, device: Device) -> Gradient:
    """Return the clipped mean gradient of a batch, as the client computes it."""
    train = config.train
    return gradient(model, batch, train.microbatch_sequences, train.clip_micro, device)


def num_gradient_bytes(model: Llama) -> int:
    """Return the size of a dense gradient in fp32."""
    return 4 * sum(weight.numel() for weight in weight_views(model).values())


def _ranks(tensors: Mapping[str, Tensor]) -> list[int]:
    return sorted(int(name.split()[1]) for name in tensors if name.startswith("u "))
