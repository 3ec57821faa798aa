"""Recompute the gradient behind another trainer's payload, for comparison.

Owns: the trainer's computation (`steps/produce.py`) on kept weights: same sequences, same order of
microbatches, own clip, same tiles and transform.
Never: touches the model that trains here, and never waits: call it in a thread.
Next: `judgement.py`, which turns D(g) and the shown openings into a verdict.

A witness computes as it trains: on its device, in its precision and microbatch. A juror computes in
reference mode: fp32 on one thread of the processor, in the config's microbatch whatever the device
has. That gives the same bits each time on one machine.
"""

import contextlib
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_attestation.header import Header
from troth_attestation.measure import Tiles
from troth_attestation.pieces import Float32
from troth_attestation.state import data_root
from troth_client.audit.device_gradient import gradient_of
from troth_client.compression.dct import dct2
from troth_client.compression.host import host_array
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import CPU, Device
from troth_client.model.weights import build
from troth_client.train.step import gradient
from troth_coordinator.rules.assignment import SequenceOrder, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import MAX_PARTICIPANTS

Weights = Mapping[str, NDArray[np.float32]] | Mapping[str, Tensor]


def recompute(
    config: RunConfig, weights: Weights, batch: NDArray[np.int64], device: Device = CPU
) -> Float32:
    """Return D(g), fp32 [T, 64, 64], of the sequences `batch` at w_r, after our own clip.

    `weights` are canonical names -> fp32, `batch` int64 [sequences, tokens + 1]. Raises
    NonFiniteGradientError, BatchShapeError, WeightNamesError, WeightShapeError.
    """
    return host_array(_coefficients(config, weights, batch, device))


def own_gradient(
    config: RunConfig, weights: Weights, batch: NDArray[np.int64], device: Device
) -> Tiles:
    """Return what `recompute` does, for a judge: on another device than the CPU it stays there."""
    return gradient_of(_coefficients(config, weights, batch, device))


def recompute_reference(config: RunConfig, weights: Weights, batch: NDArray[np.int64]) -> Float32:
    """Return D(g) as `recompute` does, in reference mode: always in the config's microbatch."""
    with num_threads(1):
        return recompute(config, weights, batch, CPU)


def _coefficients(
    config: RunConfig, weights: Weights, batch: NDArray[np.int64], device: Device
) -> Tensor:
    """Return D(g) on the device. There are two copies of the model's size at a time, not four.

    The model is gone before tiles are cut, and the gradient before they are transformed in place.
    """
    layout = TileLayout.from_shapes({name: tuple(w.shape) for name, w in weights.items()})
    tiles = layout.to_tiles(_gradient(config, weights, batch, device))
    return dct2(tiles, in_place=True)


def _gradient(
    config: RunConfig, weights: Weights, batch: NDArray[np.int64], device: Device
) -> Mapping[str, Tensor]:
    model = build(config.model, weights, device.torch)
    train = config.train
    return gradient(model, batch, train.microbatch_sequences, train.clip_micro, device).tensors


def named_sequences(
    header: Header, order: SequenceOrder, cursor: int, per_payload: int
) -> tuple[int, ...] | None:
    """Return the sequence ids that a header's data root names, among the ranks of its round.

    For audits that outlive the ring, where the chain no longer shows who trained. `cursor` is the
    cursor before the round (`WeightState.cursor`). While the round is in the ring, use
    `sequences_of`. Returns None if no rank has that root.
    """
    for rank in range(MAX_PARTICIPANTS):
        ids = order.sequences(rank_start(cursor, rank, per_payload), per_payload)
        if data_root(ids) == header.data_root:
            return ids
    return None


@contextlib.contextmanager
def num_threads(count: int) -> Iterator[None]:
    """Compute with this many threads inside the block, in this thread.

    A thread that is new to PyTorch meanwhile starts with the same number; see `runtime/threads.py`.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
