"""Retention: how many rounds a participant keeps on disk, and how many bytes that is at most.

Owns: the numbers. Never: deletes; `steps/settle.py` and `checkpoint/state_store.py` do.
Next: `storage/store.py` for the files, `residual_archive.py` for residuals.

Cases and audits are opened while the ring holds the round, so weights, headers and payloads of the
ring are kept. Headers and payloads go back to the second-newest checkpoint as well: a joiner may
be on its way from there. The rounds of audits and cases under way come on top, until these are
settled or decided: for as long as their accounts stay open after that, nobody judges them again.
"""

from dataclasses import dataclass

from troth_attestation.sizes import TILE_BYTES
from troth_client.checkpoint.state_store import KEPT_CHECKPOINTS
from troth_coordinator.rules.lateness import least_ring
from troth_coordinator.rules.params_view import ParamsView

FILE_BYTES = 4_096
"""The most that a file holds beside tensors, tiles or a payload, for models of few tensors."""
NUM_COPIES = 2
"""A payload lies twice: in the store for replay, and in the transport for others."""
NUM_CHECKPOINTS = KEPT_CHECKPOINTS + 2
"""Whole ones, one that is being made or fetched, one file that is being replaced."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Numbers of rounds.

    `weights`, `payloads` (with headers) and `residuals` stay on disk for so many closed rounds. The
    weights of the newest `shown` of them are shown to others.
    """

    weights: int
    payloads: int
    shown: int
    residuals: int

    @classmethod
    def of(cls, params: ParamsView) -> "Retention":
        """Return what a participant of a run with these parameters keeps."""
        ring = max(params.keep_rounds, params.ring - 1)
        since = 2 * least_ring(params.checkpoint_every)
        return cls(ring, max(ring, since), params.keep_rounds, params.ring)

    def disk_bytes(
        self, weight_bytes: int, num_tiles: int, payload_bytes: int, capacity: int
    ) -> int:
        """Return the most bytes on disk, beside the rounds of audits under way and the event log.

        `weight_bytes` are those of all tensors, `payload_bytes` those of one payload; `capacity`
        is the most members. Residuals are the u of each submission of our own.
        """
        # Beside those of the ring: the rounds before and after it, and the run's stored root.
        weights = (self.weights + 3 + NUM_CHECKPOINTS) * (weight_bytes + FILE_BYTES)
        # Beside those of the ring: the u that the oldest builds on, and those of a rewind.
        residuals = (self.residuals + 3) * (num_tiles * TILE_BYTES + FILE_BYTES)
        each = NUM_COPIES * (payload_bytes + FILE_BYTES)
        return weights + residuals + (self.payloads + 1) * capacity * each

    def least_bytes(self, weight_bytes: int) -> int:
        """Return the bytes without which a participant could not even start."""
        return NUM_CHECKPOINTS * weight_bytes
