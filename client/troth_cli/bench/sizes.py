"""Shapes of Llama models by their size, and whether one fits into this machine.

Owns: the list of sizes and the memory that a measurement takes. Never: allocates.
Next: `parts.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Shapes = Mapping[str, tuple[int, ...]]

FIXED_BYTES: Final = 1_600_000_000
"""The memory that no size changes: of PyTorch 2.15, 0.6 GB that processes share and 0.3 GB of each
of three, two of which are those of the all-reduce."""
COPIES: Final = 14
"""Fp32 copies of the model that a measurement holds: weights, gradients and momenta of all ways."""
COPIES_PER_PEER: Final = 0.95
"""Those that the released DeMo takes more for each payload, decoded over its tiles."""


@dataclass(frozen=True, slots=True)
class Size:
    """A Llama: width, width inside the feed-forward, layers, words."""

    width: int
    inner: int
    layers: int
    words: int

    @property
    def shapes(self) -> Shapes:
        """The shapes by name: nine tensors a layer, the embedding and the last norm."""
        width, inner = self.width, self.inner
        shapes: dict[str, tuple[int, ...]] = {"embed": (self.words, width), "norm": (width,)}
        for n in range(self.layers):
            shapes |= {f"{n}.{name}": (width, width) for name in ("q", "k", "v", "o")}
            shapes |= {f"{n}.gate": (inner, width), f"{n}.up": (inner, width)}
            shapes |= {f"{n}.down": (width, inner)}
            shapes |= {f"{n}.norm1": (width,), f"{n}.norm2": (width,)}
        return shapes

    @property
    def num_parameters(self) -> int:
        """How many parameters the shapes have."""
        per_layer = 4 * self.width**2 + 3 * self.width * self.inner + 2 * self.width
        return self.words * self.width + self.width + self.layers * per_layer

    def num_bytes(self, peers: int) -> int:
        """Return the memory of a measurement with so many payloads, rather too much."""
        copies = COPIES + COPIES_PER_PEER * peers
        return FIXED_BYTES + int(copies * 4 * self.num_parameters)


SIZES: Final[Mapping[str, Size]] = {
    "1M": Size(128, 384, 4, 512),
    "7M": Size(256, 704, 6, 8192),
    "30M": Size(512, 1408, 8, 8192),
    "124M": Size(768, 2048, 12, 50304),
    "350M": Size(1024, 2816, 24, 32000),
    "1B": Size(2048, 5632, 20, 32000),
}
"""The sizes by name, ascending."""
