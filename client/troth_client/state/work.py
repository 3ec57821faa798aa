"""The work of a trainer: a gradient, a payload, and the openings of a sampled payload.

Owns: the port and its honest form. Never: decides when; `steps/produce.py` and
`audit/show_openings.py` do. Next: `train/step.py`, `residual_state.py`, `openings_store.py`.

Cheats implement the same port (`troth_simulation/cheats`).
"""

from dataclasses import dataclass
from typing import Protocol

from numpy import int64
from numpy.typing import NDArray

from troth_attestation.openings import Sampled
from troth_client.compression import codec
from troth_client.compression.known_answer import ApplyPath
from troth_client.compression.residual import Residual
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.residual_archive import ResidualArchive
from troth_client.state.residual_state import Proposal, ResidualState
from troth_client.train.learner import DEFAULT, Learner
from troth_client.train.step import Gradient
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest, RoundIndex


@dataclass(frozen=True, slots=True)
class EncodedPayload:
    """The bytes of a payload with their root."""

    data: bytes
    root: Digest


class TrainerWork(Protocol):
    """The three computations of a trainer; each is heavy, so it is called in a thread."""

    def gradient(self, batch: NDArray[int64]) -> Gradient:
        """Return the clipped gradient of sequences, int64 [sequences, T + 1].

        Raises NonFiniteError.
        """
        ...

    def propose(self, round_: RoundIndex, found: Gradient) -> Proposal:
        """Return u of a round with its chosen signs. Raises NonFiniteError."""
        ...

    def encode(self, proposal: Proposal) -> EncodedPayload:
        """Return the canonical payload of a proposal. Raises MalformedPayloadError."""
        ...

    def open_tiles(self, sampled: Sampled) -> Digest:
        """Keep and serve the opening set of a sampled payload; return its root.

        Raises ResidualLostError, DiskFullError.
        """
        ...


@dataclass(frozen=True, slots=True)
class HonestWork:
    """The work that was assigned, on the model that the replica moves.

    `learner` is how this machine computes a gradient.
    """

    config: RunConfig
    model: Llama
    device: Device
    layout: TileLayout
    residual: ResidualState
    archive: ResidualArchive
    openings: OpeningsStore
    path: ApplyPath
    learner: Learner = DEFAULT

    def gradient(self, batch: NDArray[int64]) -> Gradient:
        """Compute on the weights that the replica holds now."""
        return self.learner.gradient(self.model, batch, self.config.train, self.device)

    def propose(self, round_: RoundIndex, found: Gradient) -> Proposal:
        """Add the gradient's coefficients to the momentum and choose the top k."""
        rule, k = Residual.of(self.config), self.config.demo.k
        encoder = self.path.encoder(self.layout, rule, k)
        encoded = encoder.encode(found.tensors, self.residual.momentum.carried)
        return self.residual.offer(round_, encoded)

    def encode(self, proposal: Proposal) -> EncodedPayload:
        """Encode, then decode as everybody else will: sending a malformed payload is a fault.

        So is a payload that says something else than the committed u.
        """
        payload = codec.encode(proposal.sent)
        found = codec.check_decoded(payload, proposal.sent)
        return EncodedPayload(payload, Digest(found.root))

    def open_tiles(self, sampled: Sampled) -> Digest:
        """Open the drawn tiles, or find the set that an earlier process made."""
        found = self.openings.find_set(sampled)
        if found is not None:
            return found
        after, before = self.archive.pair(sampled)
        return self.openings.make(sampled, after, before)
