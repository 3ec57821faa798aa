"""Large arrays whose memory is used again when nobody refers to it any more.

Owns: free memory of `SPARE_BYTES` at most, in blocks above `LARGE_BYTES`. Never: hands out memory
that an array, a tensor or a view of either still refers to.
Next: `allocator.py`, by which glibc does the same for smaller blocks.

A trainer takes one array of the model's size in each round; docs/results.md has what new pages
cost. New memory is numpy's, which asks for large pages; torch does not.
"""

import math
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from troth_client.runtime.allocator import LARGE_BYTES, SPARE_BYTES

Float32 = NDArray[np.float32]

_VALUE_BYTES: Final = 4
_free: Final[dict[int, Float32]] = {}
"""Free memory by its identity: each step on a dict is one that no other thread interrupts."""


class _Owner:
    """Every array on some memory refers to its owner. When that is gone, it is free."""

    def __init__(self, memory: Float32) -> None:
        # Held here, too: at exit Python forgets finalizers while threads may still read.
        self._memory = memory
        self.__array_interface__: dict[str, Any] = memory.__array_interface__
        keeping = weakref.finalize(self, _keep, memory)
        keeping.atexit = False  # type: ignore[misc]  # a property


def empty(shape: Sequence[int]) -> Float32:
    """Return an fp32 array with any values, on memory of a former one where one had that size."""
    size = math.prod(shape)
    if size * _VALUE_BYTES <= LARGE_BYTES:
        return np.empty(tuple(shape), np.float32)
    return np.asarray(_Owner(_taken(size))).reshape(tuple(shape))


def give_back() -> None:
    """Return all free memory to the system."""
    _free.clear()


def spare_bytes() -> int:
    """Return how many bytes are free at the moment."""
    return sum(memory.nbytes for memory in map(_free.get, list(_free)) if memory is not None)


def _taken(size: int) -> Float32:
    for key in list(_free):
        memory = _free.get(key)
        if memory is not None and memory.size == size and _free.pop(key, None) is not None:
            return memory
    try:
        return np.empty(size, np.float32)
    except MemoryError:
        give_back()
    return np.empty(size, np.float32)


def _keep(memory: Float32) -> None:
    """Keep memory that became free; older memory has to leave for it."""
    if memory.nbytes > SPARE_BYTES:
        return
    for key in list(_free):
        if spare_bytes() + memory.nbytes > SPARE_BYTES:
            _free.pop(key, None)
    _free[id(memory)] = memory
