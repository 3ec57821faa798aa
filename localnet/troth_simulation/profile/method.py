"""The port that all methods implement: one optimiser step of one rank, exchange included.

Owns: the port. Next: `averaged.py` (DDP and FSDP), `diloco.py`, `decoupled.py` (DeMo).
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from troth_client.model.llama import Llama


class Method(Protocol):
    """A rank's part of a method. Every rank calls the same functions in the same order."""

    @property
    def model(self) -> Llama:
        """The model with this rank's weights, or with its share of them."""
        ...

    def step(self, step: int, batch: NDArray[np.int64]) -> None:
        """Train on this rank's sequences, int64 [sequences, T + 1], and exchange what is due."""
        ...
