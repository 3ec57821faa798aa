"""Given weights: the pieces of the first weights of a run that its creator did not draw.

Owns: which list and which pieces such a run starts from. Never: believes a list without its root.
Next: `fetching.py`, which asks for them; `troth_attestation/pieces.py` for the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from troth_attestation.errors import PieceListError
from troth_attestation.pieces import PieceList, Shape, StateName, list_bytes
from troth_client.archive.items import Item
from troth_client.model.shapes import trainable_shapes
from troth_client.transport.base import BlobKind
from troth_coordinator.rules.config import RunConfig


@dataclass(frozen=True, slots=True)
class GivenStart:
    """The first weights of a run: their shapes, and what their root binds beside them."""

    shapes: Mapping[str, Shape]
    name: StateName

    @classmethod
    def of(cls, config: RunConfig) -> Self | None:
        """Return that of a config; None where the weights are drawn."""
        if not config.has_given_start:
            return None
        return cls(trainable_shapes(config.model), StateName(0, 0, config.config_hash()))

    @property
    def list_bytes(self) -> int:
        """The length of the piece list."""
        return list_bytes(self.shapes)

    def pieces(self, root: bytes, data: bytes) -> dict[Item, int]:
        """Return the pieces of a list, and their lengths in bytes.

        Raises PieceListError for a list that has another root.
        """
        found = PieceList.decode(data, self.shapes, self.name)
        if found.root != root:
            raise PieceListError(
                "piece list", f"the root {root.hex()}", found.root.hex(), "ask another holder"
            )
        return {Item(BlobKind.PIECE, one.hash): one.num_bytes for one in found.pieces()}
