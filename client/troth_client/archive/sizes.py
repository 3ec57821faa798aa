"""How long the bytes of an item are, before the first of them arrives.

Owns: the length of a payload and of an opening set, from the run's config. Never: reads a holder's
word: what is longer or shorter than the run's own is not taken.
Next: `keeper.py`, which asks for so many bytes.
"""

from dataclasses import dataclass
from typing import Self

from troth_attestation import openings
from troth_attestation.header import Header
from troth_client.archive.given import GivenStart
from troth_client.audit.drawn import sampled_payload
from troth_client.compression.limits import payload_length
from troth_client.compression.matrices import count_tiles
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one run. `relays` are those that its config names.

    `given` is its start, where that was not drawn.
    """

    num_tiles: int
    openings_tiles: int
    payload_bytes: int
    relays: tuple[str, ...]
    given: GivenStart | None

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """Return those of a config."""
        num_tiles = count_tiles(trainable_shapes(config.model))
        length = payload_length(num_tiles, config.demo.k)
        return cls(
            num_tiles,
            config.judge.openings_tiles,
            length,
            config.network.relays,
            GivenStart.of(config),
        )

    def opening_bytes(self, seed: Digest, header: Header) -> int:
        """Return the length of the opening set of a payload under the seed of its round."""
        sampled = sampled_payload(seed, header, self.num_tiles, self.openings_tiles)
        return openings.size(sampled)
