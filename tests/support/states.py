"""States for tests: weights of a small model, their pieces, and the root that the chain names.

Owns: the values. Never: files or sockets. Next: `views.py` for the views of the chain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from support import views
from troth_attestation.committed import CommittedState, newest_state
from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import PieceList, Shape, StateName, pieces_of
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.config import ModelSection, RunConfig
from troth_coordinator.rules.ids import Digest, RoundIndex

PROGRAM, RUN = "4" * 43, "5" * 43
"""Base58 addresses that a manifest can name."""

MODEL = ModelSection(
    vocab_size=5_000,
    hidden_size=64,
    intermediate_size=320,
    num_hidden_layers=1,
    num_attention_heads=2,
    tie_word_embeddings=False,
)
"""Two tensors of two pieces each, of which the second is short; ten of one piece."""
CONFIG = RunConfig(model=MODEL).with_manifest(b"m" * 32)

TINY = ModelSection(
    vocab_size=16,
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=8,
)
"""A few kilobytes, with tied embeddings."""

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class State:
    """The weights of a round, and what is known about them."""

    config: RunConfig
    weights: Weights
    pieces: PieceList
    committed: CommittedState

    @property
    def root(self) -> Digest:
        return self.pieces.root

    @property
    def shapes(self) -> dict[str, Shape]:
        return trainable_shapes(self.config.model)

    @property
    def manifest(self) -> CheckpointManifest:
        return CheckpointManifest.of(PROGRAM, RUN, self.config, self.pieces)

    @property
    def views(self) -> dict[str, memoryview]:
        """The bytes of each tensor."""
        return {name: memoryview(value.tobytes()) for name, value in self.weights.items()}

    def piece_bytes(self) -> dict[bytes, bytes]:
        """The bytes of each piece by its hash."""
        whole = self.views
        return {
            piece.hash: bytes(whole[piece.tensor][piece.offset : piece.offset + piece.num_bytes])
            for piece in self.pieces.pieces()
        }


def weights(config: RunConfig = CONFIG, seed: int = 0) -> Weights:
    """Random weights of a model."""
    draw = np.random.default_rng(seed)
    shapes = trainable_shapes(config.model)
    return {name: draw.standard_normal(size=s, dtype=np.float32) for name, s in shapes.items()}


def name_of(config: RunConfig, round_: int) -> StateName:
    """The round, a cursor and the config."""
    return StateName(round_, 100 * round_, config.config_hash())


def state(
    round_: int = 20, seed: int = 0, config: RunConfig = CONFIG, tensors: Weights | None = None
) -> State:
    """The state of a checkpoint that the chain names."""
    held = weights(config, seed) if tensors is None else tensors
    pieces = pieces_of(held, name_of(config, round_))
    run = views.run_view(
        config_hash=config.config_hash(),
        root=pieces.root,
        root_round=RoundIndex(round_),
        root_cursor=100 * round_,
    )
    return State(config, held, pieces, newest_state(run))
