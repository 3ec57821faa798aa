"""The honest ways in which this machine can compute one gradient: devices, precisions, threads.

Owns: which ways there are, which of them are asked for, and which is the fastest.
Never: compares them. Next: `calibrate.py`, which does; `audit/recompute.py` for the computation.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from troth_attestation.pieces import Float32
from troth_client.audit.recompute import num_threads, recompute
from troth_client.calibration.rehearsal import Batch
from troth_client.model.device import CPU, Device, in_precision, precisions_of
from troth_coordinator.rules.config import RunConfig

Weights = Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Way:
    """One honest way to compute a gradient: where, with how many threads, in what portions."""

    name: str
    device: Device
    threads: int
    microbatch: int

    def coefficients(self, config: RunConfig, weights: Weights, batch: Batch) -> Float32:
        """Return D(g), fp32 [T, 64, 64], of the batch at these weights."""
        train = config.train.model_copy(update={"microbatch_sequences": self.microbatch})
        own = config.model_copy(update={"train": train})
        with num_threads(self.threads):
            return recompute(own, weights, batch, self.device)


class _Setting(NamedTuple):
    """A device with a number of threads, and whether its microbatches are varied."""

    device: Device
    threads: int
    is_varied: bool

    @property
    def name(self) -> str:
        """Return device, precision and threads in words."""
        threads = f", {self.threads} threads" if self.threads > 1 else ""
        return f"{self.device.torch} {self.device.precision}{threads}"


def ways_here(
    config: RunConfig, device: torch.device | None = None, precisions: Sequence[str] = ()
) -> list[Way]:
    """Return the honest ways of this machine, the reference (fp32, one thread) first.

    Each device in each precision that it has; thread counts on the processor; the configured
    microbatch, single sequences, the whole batch. `device` takes its own ways alone; beside a GPU
    the processor stays with one way in each precision. `precisions` leaves out the others, but not
    the reference. Raises DeviceError for a precision that the device does not have.
    """
    settings = list(_settings(device))
    here = {setting.device.precision for setting in settings}
    for name in precisions:
        if device is not None or name not in here:
            in_precision(device or CPU.torch, name)
    train = config.train
    configured = train.microbatch_sequences
    others = sorted({1, train.sequences_per_payload} - {configured})
    ways = []
    for number, setting in enumerate(settings):
        if number and precisions and setting.device.precision not in precisions:
            continue
        where = (setting.device, setting.threads)
        ways.append(Way(setting.name, *where, configured))
        if setting.is_varied:
            ways += [Way(f"{setting.name}, microbatch {n}", *where, n) for n in others]
    return ways


def fastest(ways: Sequence[Way]) -> Way:
    """Return the way of fp32 that should take the least time: a GPU's, else the reference.

    More threads of a processor may take longer, with a small model or other work beside.
    """
    on_gpu = (way for way in ways if way.device.torch != CPU.torch)
    return next((way for way in on_gpu if way.device.precision == "fp32"), ways[0])


def _settings(chosen: torch.device | None) -> Iterator[_Setting]:
    """Yield the settings of one device, or of all that are here; the reference first."""
    is_varied = chosen is None or chosen == CPU.torch
    yield _Setting(CPU, 1, is_varied)
    if is_varied:
        for threads in sorted({2, os.cpu_count() or 1} - {1}):
            yield _Setting(CPU, threads, is_varied)
    yield _Setting(in_precision(CPU.torch, "bf16"), 1, is_varied)
    there = chosen
    if chosen is None and torch.cuda.is_available():
        there = torch.device("cuda")
    if there is not None and there != CPU.torch:
        for name in precisions_of(there):
            yield _Setting(in_precision(there, name), 1, is_varied=True)
