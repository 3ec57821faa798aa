"""The state of a participant from round to round.

Owns: the fields, and saving the weights. Never: reads the chain or asks another participant.
Next: `replica.py` for the weights, `residual_state.py` for the momentum, `work.py` for the
computations on them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from numpy import int64
from numpy.typing import NDArray

from troth_client.checkpoint.state_store import StateStore
from troth_client.runtime.base import Runtime
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import ResidualArchive
from troth_client.state.residual_state import ResidualState
from troth_client.state.retention import Retention
from troth_client.storage import Store
from troth_client.telemetry.events import EventSink
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.config import RunConfig


class Sequences(Protocol):
    """Where token sequences come from; `data.shards.TokenData` is the implementation."""

    def __len__(self) -> int:
        """Return the number of sequences N; ids are 0..N-1."""
        ...

    def sequences(self, ids: Sequence[int]) -> NDArray[int64]:
        """Return the sequences as int64 [len(ids), T + 1], hash-checked."""
        ...


@dataclass(slots=True)
class RoundState:
    """The state that rounds build on: weights, residual, store, data.

    `has_weights` is false until a run's given start was fetched. `stop` is set when the participant
    is asked to leave.
    """

    config: RunConfig
    data: Sequences
    replica: Replica
    residual: ResidualState
    archive: ResidualArchive
    store: Store
    states: StateStore
    retention: Retention
    runtime: Runtime
    events: EventSink
    has_weights: bool = True
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def order(self) -> SequenceOrder:
        """The order in which the run reads its data."""
        return SequenceOrder(len(self.data), self.config.manifest_digest())

    @property
    def num_tiles(self) -> int:
        """The number of 64x64 tiles of the model."""
        return self.replica.layout.num_tiles

    @property
    def is_saved(self) -> bool:
        """Whether a file of the weights at the start of the replica's round is there, unchecked."""
        known = self.replica.known_root
        return known is not None and self.store.holds_weights(self.replica.round, known.root)

    def save_weights(self) -> None:
        """Save the weights at the start of the replica's round, with their root."""
        self.store.save_weights(self.replica.stored())
