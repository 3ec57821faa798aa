"""Tensors of a device as arrays of the host, part by part: the next part travels while one is read.

Owns: the two pinned buffers of a copy, and the order of its parts.
Never: copies from a processor: there an array is a view of the tensor.
Next: `state/residual_state.py` and `state/replica.py`, which hash and store what arrives.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from troth_attestation import merkle
from troth_attestation.pieces import bytes_of
from troth_client.runtime import recycled

Float32 = NDArray[np.float32]

PART_VALUES: Final = 2**22
"""Values of a part, 16 MiB: a whole number of tiles, and of the chunks of a state root."""


class HostCopy:
    """The values of one fp32 tensor on the host; `array` is whole once `parts` has ended.

    A tensor of a processor shares its memory with `array`. Nobody may write into the tensor before
    the last part has arrived.
    """

    __slots__ = ("array", "of")

    def __init__(self, of: Tensor) -> None:
        self.of: Final = of
        self.array: Final[Float32] = (
            of.detach().numpy() if _is_here(of) else recycled.empty(of.shape)
        )

    def fill(self) -> None:
        """Copy all values."""
        for _ in self.parts():
            pass

    def parts(self) -> Iterator[Float32]:
        """Yield the values in order, flat, in parts that are already part of `array`."""
        flat = self.array.reshape(-1)
        if _is_here(self.of):
            yield flat
        else:
            yield from streamed(self.of.detach(), flat)


class HostArrays(Mapping[str, Float32]):
    """Tensors by name as arrays of the host; each is copied when it is first asked for."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        self._arrays: dict[str, Float32] = {}

    def __getitem__(self, name: str) -> Float32:
        """Return the array of one tensor."""
        if name not in self._arrays:
            self._arrays[name] = host_array(self._tensors[name])
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._tensors)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self._tensors)


def host_array(tensor: Tensor) -> Float32:
    """Return the values of an fp32 tensor, in its shape: a view on a processor, else a copy."""
    copy = HostCopy(tensor)
    copy.fill()
    return copy.array


def leaves_of(arrays: Iterable[Float32], leaf_bytes: int) -> Iterator[memoryview]:
    """Cut fp32 arrays of any shape into leaves of `leaf_bytes`, one array after another.

    The last leaf of each array may be shorter. Raises TensorError for another dtype, or no values.
    """
    for array in arrays:
        yield from merkle.cut(bytes_of("cut into leaves", array), leaf_bytes)


def streamed(source: Tensor, target: Float32, part_values: int = PART_VALUES) -> Iterator[Float32]:
    """Copy an fp32 tensor of any shape into a flat array [values] of as many.

    Yields each part [part_values] of the array once it is there and the next is on its way; the
    last one may be shorter.
    """
    values = source.reshape(-1)
    lane = _Lane(values.device)
    starts = range(0, len(values), part_values)
    buffers = [lane.buffer(min(part_values, len(values))) for _ in starts[:2]]
    arrivals = [lane.send(values[:part_values], buffers[0])] if starts else []
    for number, (start, stop) in enumerate(pairwise([*starts, len(values)])):
        if stop < len(values):
            following = values[stop : stop + part_values]
            arrivals.append(lane.send(following, buffers[(number + 1) % 2]))
        lane.wait(arrivals[number])
        part = target[start:stop]
        part[:] = buffers[number % 2][: len(part)].numpy()
        yield part


def _is_here(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


class _Lane:
    """Copies out of one device, beside its other work; done at once where it has no streams."""

    def __init__(self, device: torch.device) -> None:
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def buffer(self, size: int) -> Tensor:
        """Return fp32 memory [size] for copies, pinned where they run beside other work."""
        return torch.empty(size, dtype=torch.float32, pin_memory=self._stream is not None)

    def send(self, values: Tensor, buffer: Tensor) -> torch.cuda.Event | None:
        """Begin to copy fp32 values [n] to the front of a buffer [n or more].

        Returns what tells that they are there; None where they already are.
        """
        into = buffer[: len(values)]
        if self._stream is None:
            into.copy_(values)
            return None
        with torch.cuda.stream(self._stream):
            into.copy_(values, non_blocking=True)
        values.record_stream(self._stream)
        arrival: torch.cuda.Event = self._stream.record_event()
        return arrival

    def wait(self, arrival: torch.cuda.Event | None) -> None:
        """Wait until a copy is there."""
        if arrival is not None:
            arrival.synchronize()
