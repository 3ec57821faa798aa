"""Opening sets for tests: real residuals with their trees, the fields of a header, a seed."""

from dataclasses import dataclass

import numpy as np

from troth_attestation import openings
from troth_attestation.header import Header
from troth_attestation.state import residual_tree, zero_residual_root
from troth_client.audit.drawn import sampled_payload
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.rules.ids import NONE, Digest

NUM_TILES = 45
NUM_DRAWN = 32
RUN = b"r" * 32


def residual(round_: int, num_tiles: int = NUM_TILES) -> openings.Residual:
    """A u of its own for each round, with its tree."""
    u = np.random.default_rng(round_).normal(size=(num_tiles, 64, 64)).astype(np.float32)
    return openings.Residual(u, residual_tree(u))


@dataclass(frozen=True)
class Opened:
    """One sampled payload: what its trainer holds and what everybody knows."""

    header: Header
    sampled: openings.Sampled
    after: openings.Residual
    before: openings.Residual | None

    @property
    def data(self) -> bytes:
        return openings.encode(self.sampled, self.after, self.before)

    @property
    def root(self) -> Digest:
        return openings.openings_root(self.data)

    @property
    def blob(self) -> BlobId:
        return BlobId(self.sampled.round, BlobKind.OPENINGS, self.root)


def header(
    round_: int,
    index: int,
    previous: int,
    after: openings.Residual,
    before: openings.Residual | None,
) -> Header:
    zero = bytes(32)
    return Header(
        genesis_hash=zero,
        program_id=zero,
        run=RUN,
        epoch=0,
        round=round_,
        index=index,
        owner=zero,
        session=zero,
        config_hash=zero,
        state_root=zero,
        data_root=zero,
        previous_included=previous,
        residual_before=before.tree.root if before else zero_residual_root(NUM_TILES),
        residual_after=after.tree.root,
        payload_root=zero,
        payload_bytes=1,
        mean_loss=0,
        salt=zero,
    )


def opened(round_: int = 9, index: int = 5, previous: int = 7, seed: bytes = b"s" * 32) -> Opened:
    """The audit of a payload; `previous` NONE: it builds on nothing."""
    after = residual(round_)
    before = None if previous == NONE else residual(previous)
    signed = header(round_, index, previous, after, before)
    return Opened(signed, sampled_payload(seed, signed, NUM_TILES, NUM_DRAWN), after, before)
