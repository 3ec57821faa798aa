"""Rounds of training without a chain: what trainers would send, and what an audit would open.

Owns: the batches, the weights, the momentum of each trainer, the draw of tiles, applying what was
sent.
Never: computes a gradient, judges, or reads a chain.
Next: `calibrate.py` and `scripts/bench/honest_pairs.py`, which bring gradients of several kinds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from troth_attestation.measure import JudgeRule, Shown
from troth_attestation.openings import Openings
from troth_attestation.pieces import Float32
from troth_attestation.sampling import drawn_tiles
from troth_attestation.selection import TopK
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_COEFFICIENTS, TILE_SIDE
from troth_client.compression import codec
from troth_client.compression.apply import update
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Carried, Residual
from troth_client.compression.tiles import TileLayout
from troth_client.compression.topk import top_k
from troth_client.model.init import initial_weights
from troth_client.state.round_state import Sequences
from troth_coordinator.rules.assignment import SequenceOrder, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.schedule import constants_of

Batch = NDArray[np.int64]

TARGET = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """The values that an audit may open: u of the round and of the round before, fp32 [T, 64, 64].

    `sent` is the payload.
    """

    after: Float32
    before: Float32
    sent: Signs


def batches(config: RunConfig, data: Sequences, number: int, num_trainers: int) -> list[Batch]:
    """Return the batch of each trainer in one round, ids [s, T + 1] in the order of the protocol.

    `number`: how many rounds with as many trainers have taken their batches before.
    """
    order = SequenceOrder(len(data), config.manifest_digest())
    each = config.train.sequences_per_payload
    starts = [rank_start(number * num_trainers * each, rank, each) for rank in range(num_trainers)]
    return [data.sequences(order.sequences(start, each)) for start in starts]


class Rehearsal:
    """A run of some trainers, from the weights of a seed on, or from those that it is given.

    `start` has all trainable tensors by canonical name; they stay as they are.
    """

    def __init__(
        self,
        config: RunConfig,
        num_trainers: int,
        seed: int,
        start: Mapping[str, Float32] | None = None,
    ) -> None:
        if start is None:
            initial = initial_weights(H("troth:calibrate", u64(seed)), config.model)
        else:
            initial = {name: array.copy() for name, array in start.items()}
        self.weights = {name: torch.from_numpy(array) for name, array in initial.items()}
        shapes = {name: tuple(w.shape) for name, w in self.weights.items()}
        self.layout = TileLayout.from_shapes(shapes)
        self.rule = JudgeRule(config.demo, config.judge, self.layout.tensor_tiles)
        self._config = config
        self._seed = seed
        self._residual = Residual.of(config)
        self._nothing = np.zeros((self.layout.num_tiles, TILE_SIDE, TILE_SIDE), np.float32)
        self._momenta: list[Carried | None] = [None] * num_trainers
        self._path = choose_path("cpu", num_tiles=self.layout.num_tiles)

    def offer(self, number: int, coefficients: Float32) -> Offer:
        """Return what a trainer would send and open if it had computed this D(g)."""
        return self._made(number, coefficients)[0]

    def momentum(self, number: int) -> Carried | None:
        """Return what a trainer keeps at home; None in its first round."""
        return self._momenta[number]

    def opened(self, offer: Offer, round_: int, draw: int) -> Shown:
        """Draw tiles of an offer by a seed of this round and draw, and open them."""
        sigma = H("troth:calibrate", u64(self._seed), u64(round_), u64(draw))
        count = self.rule.judge.openings_tiles
        tiles = drawn_tiles(sigma, TARGET, self.layout.num_tiles, count)
        rows, flat = list(tiles), (len(tiles), TILE_COEFFICIENTS)
        after, before = (u[rows].reshape(flat) for u in (offer.after, offer.before))
        return Shown.of(Openings(tiles, after, before), self._config.demo)

    def send(self, number: int, coefficients: Float32) -> Offer:
        """Return what a trainer sends for this D(g); its momentum goes on as if it was included."""
        found, top = self._made(number, coefficients)
        self._momenta[number] = Carried(torch.from_numpy(found.after), top.indices)
        return found

    def apply(self, round_: int, sent: Sequence[Signs]) -> None:
        """Apply the payloads that were included in a round."""
        count, k = self.layout.num_tiles, self._config.demo.k
        payloads = [codec.decode(codec.encode(signs), count, k) for signs in sent]
        constants = constants_of(self._config.schedule, round_)
        update(self.weights, payloads, self.layout, (constants.a, constants.b), self._path)

    def train(self, round_: int, coefficients: Sequence[Float32 | None]) -> None:
        """Send the payload of each trainer's D(g), include all of them, apply them.

        None is a gradient that was not finite: its trainer sends nothing in this round.
        """
        numbered = enumerate(coefficients)
        self.apply(round_, [self.send(n, own).sent for n, own in numbered if own is not None])

    def _made(self, number: int, coefficients: Float32) -> tuple[Offer, TopK]:
        """Return what a trainer would send and open, and the choice that its momentum forgets."""
        momentum = self._momenta[number]
        before = self._nothing if momentum is None else momentum.u.numpy()
        moved = self._residual.accumulate(momentum, torch.from_numpy(coefficients))
        top = top_k(moved.u, self._config.demo.k)
        sent = top.signs(self._residual.is_sent(moved))
        return Offer(moved.u.numpy(), before, sent), top
