"""A participant that cheats: its doors, with a clock that does something else than was asked.

Owns: turning a cheat of `troth_localnet.faults` into doors. Never: changes a step of a round; what
a cheat does is done behind the doors, as a real one would do it with a changed copy of the client.
Next: `actor.py`, which opens such doors; `troth_localnet/faults` for the cheats.
"""

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

import torch

from troth_client.assembly import Doors
from troth_client.clock import Clock, Work
from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.model.weights import trainable_parameters
from troth_client.telemetry.events import EventSink, JsonValue
from troth_client.train.step import Gradient, gradient
from troth_localnet.faults.work import Batch, Cheat

P = ParamSpec("P")
T = TypeVar("T")


def cheating(cheat: Cheat, doors: Doors) -> Doors:
    """Return the same doors with a clock that cheats once enough payloads were included."""
    record = _Record(doors.events)
    return replace(doors, events=record, clock=_CheatingClock(doors.clock, cheat, record))


class _Record:
    """An event sink that counts how many of our payloads were included."""

    def __init__(self, events: EventSink) -> None:
        self._events = events
        self.num_included = 0

    def emit(self, event: str, /, **fields: JsonValue) -> None:
        self.num_included += event == "round_closed" and bool(fields.get("own"))
        self._events.emit(event, **fields)


class _CheatingClock:
    """A clock that computes gradients its own way, and everything else as it is told."""

    def __init__(self, clock: Clock, cheat: Cheat, record: _Record) -> None:
        self._clock = clock
        self._cheat = cheat
        self._record = record
        self._has_begun = False
        self._last_loss = 0
        self._past: deque[Llama] = deque(maxlen=cheat.stale_rounds + 1)

    async def wait(self, work: Work[T] = ()) -> None:
        await self._clock.wait(work)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        chosen: Callable[..., T] = function
        if function is gradient:
            chosen = self._gradient  # type: ignore[assignment]  # T is Gradient here
        return await self._clock.compute(chosen, *args, **kwargs)

    def seconds(self) -> float | None:
        return self._clock.seconds()

    def _gradient(
        self, model: Llama, batch: Batch, microbatch: int, clip_micro: int, device: Device
    ) -> Gradient:
        """Return what the cheat sends in place of the gradient that `train.step` describes."""
        cheat = self._cheat
        if cheat.stale_rounds:
            self._past.append(copy.deepcopy(model))
        if self._record.num_included < cheat.honest_rounds:
            found = gradient(model, batch, microbatch, clip_micro, device)
            self._last_loss = found.mean_loss_micro
            return found
        if not self._has_begun:
            self._has_begun = True
            self._record.emit("cheating", cheat=cheat.name, story=cheat.story)
        if not cheat.computes:
            parameters = trainable_parameters(model).items()
            zeros = {name: torch.zeros_like(tensor) for name, tensor in parameters}
            return Gradient(zeros, self._last_loss, 0.0)
        used = self._past[0] if cheat.stale_rounds else model
        found = gradient(used, cheat.batch(batch), microbatch, clip_micro, device)
        tensors = {name: tensor.cpu().numpy() for name, tensor in found.tensors.items()}
        sent = cheat.gradient(tensors)
        changed = {name: torch.from_numpy(sent[name]).to(device.torch) for name in sent}
        return replace(found, tensors=changed)
