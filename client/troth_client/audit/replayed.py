"""An auditor's own gradients, on weights that it has replayed.

Owns: from sequence ids to D(g) in fp32 on the CPU, with a second computation in bf16 as seats have.
Never: judges: `troth_audit/replay/recompute.py` does, whose port this fills.
Next: `recompute.py` for the computation; `state/audited.py` for the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from numpy import int64
from numpy.typing import NDArray

from troth_attestation.measure import Own
from troth_attestation.pieces import Float32
from troth_attestation.signs import Signs
from troth_client.audit.recompute import recompute
from troth_client.compression.codec import VerifiedPayload
from troth_client.data.errors import PieceMissingError, ShardError
from troth_client.model.device import CPU, Device
from troth_client.runtime.memory import as_memory_error
from troth_client.state.audited import AuditedWeights
from troth_client.train.errors import NO_GRADIENT, NonFiniteGradientError
from troth_coordinator.rules.config import RunConfig


class Rows(Protocol):
    """The sequences of a data set."""

    def sequences(self, ids: Sequence[int]) -> NDArray[int64]:
        """Return tokens, int64 [len(ids), T + 1]; PieceMissingError where nobody has them."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayedGradients:
    """Gradients on the weights of a replay, while they are those of the round."""

    config: RunConfig
    weights: AuditedWeights
    data: Rows

    def own(self, ids: Sequence[int]) -> Own | str:
        """Return our own D(g), else what it lacks: tokens of any use, or memory."""
        try:
            batch = self.data.sequences(ids)
            tiles = self._tiles(batch, CPU)
        except PieceMissingError:
            return "the tokens of its sequences"
        except NO_GRADIENT:
            return "tokens that the model can take"
        except ShardError as error:  # not one with a token too large: that is the run's own
            return f"{error.path}: {error.expected}, not {error.found}"
        except MemoryError:
            return "memory for its gradient"
        return Own(tiles, lambda: self._again(batch))

    def signs(self, payload: VerifiedPayload) -> Signs:
        """Return the votes in a payload."""
        return payload.signs

    def _again(self, batch: NDArray[int64]) -> Float32 | None:
        try:
            return self._tiles(batch, CPU.other_precision())
        except MemoryError:
            return None

    def _tiles(self, batch: NDArray[int64], device: Device) -> Float32 | None:
        try:
            with as_memory_error():
                return recompute(self.config, self.weights.arrays(), batch, device)
        except NonFiniteGradientError:
            return None
