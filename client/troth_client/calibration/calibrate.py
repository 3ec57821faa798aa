"""Calibration: how far honest work differs between machines, and how far cheats lie beyond it.

Owns: the cheats, and which ways and cheats are measured when. The audits use the judge's own
arithmetic and its own guard against gradients that nothing can be measured with.
Never: a threshold (`thresholds.py` proposes them), a chain, a file.
Next: `ways.py` for the honest ways, `rehearsal.py` for the training, `comparison.py`.

Some trainers train in fp32, on a GPU if there is one. In each measured round, the next is measured.
Every way computes its gradient; each result is opened as a trainer's and judged by every other way.
Cheats compute as trainers do, and every way judges them. All of them start from the true momentum,
as a cheat would.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from troth_attestation.measure import Own, Yardstick
from troth_attestation.pieces import Float32
from troth_attestation.sizes import TILE_SIDE
from troth_attestation.verdict import Reason
from troth_attestation.work import yardstick_of
from troth_client.calibration.comparison import Group, Seat
from troth_client.calibration.edges import Bench
from troth_client.calibration.rehearsal import Batch, Offer, Rehearsal, batches
from troth_client.calibration.ways import Way, fastest
from troth_client.state.round_state import Sequences
from troth_client.train.errors import NonFiniteGradientError
from troth_coordinator.rules.config import RunConfig

SKIPPED = (8, 4, 2)
"""Cheats skip one part in so many of their batch."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Train for `rounds`, measure in every `every`-th, `draws` audits of each pair in those.

    `trainers` payloads are applied in each round: the more, the further the weights move.
    """

    rounds: int = 40
    every: int = 2
    draws: int = 2
    seed: int = 0
    trainers: int = 4

    @property
    def num_measured(self) -> int:
        """The rounds that are measured, round 0 among them."""
        return len(range(0, self.rounds, self.every))


@dataclass(frozen=True, slots=True)
class Found:
    """The measurements: audits by trainer, and the last round that could be judged."""

    groups: list[Group]
    bench: Bench | None


def calibrate(
    config: RunConfig,
    data: Sequences,
    ways: Sequence[Way],
    plan: Plan,
    report: Callable[[int, int], None] = lambda done, total: None,
    start: Mapping[str, Float32] | None = None,
) -> Found:
    """Train and measure; `ways[0]` is the reference.

    `config` is bound to the data's manifest. `start` has the first weights by canonical name, where
    a run is given some; otherwise the plan's seed draws them. Returns a group for each way as a
    trainer and for each cheat. Ways that cannot be compared with another (a single one) give groups
    without audits. Gradients that are not finite or zero everywhere are counted as audits that
    nobody can judge.
    """
    study = _Study(config, list(ways), plan, Rehearsal(config, plan.trainers, plan.seed, start))
    for round_ in range(plan.rounds):
        taken = batches(config, data, round_, plan.trainers)
        study.round(round_, taken, is_measured=round_ % plan.every == 0)
        report(round_ + 1, plan.rounds)
    return Found(list(study.groups.values()), study.bench)


def cheats(batch: Batch) -> Iterator[tuple[str, Batch | None]]:
    """Yield each cheat and the part of the batch [s, T + 1] that it computes; None: no part."""
    sequences, predictions = batch.shape[0], batch.shape[1] - 1
    for part in SKIPPED:
        if sequences % part == 0:
            yield f"1/{part} of the sequences skipped", batch[: sequences - sequences // part]
        if predictions % part == 0:
            kept = predictions - predictions // part
            yield f"1/{part} of every sequence skipped", batch[:, : kept + 1]
    yield "free-rider, nothing computed", None


class _Study:
    """The training run and what was measured along it."""

    def __init__(self, config: RunConfig, ways: list[Way], plan: Plan, run: Rehearsal) -> None:
        self.groups: dict[str, Group] = {}
        self.bench: Bench | None = None
        self._config = config
        self._ways = ways
        self._fastest = fastest(ways)
        self._plan = plan
        self._run = run

    def round(self, round_: int, taken: Sequence[Batch], is_measured: bool) -> None:
        """Measure at w_r if asked to, then train on it; `taken` has the batch of each trainer."""
        found = [self._compute(self._fastest, batch) for batch in taken]
        if is_measured:
            turn = round_ // self._plan.every % len(taken)
            self._measure(round_, turn, taken[turn], found[turn])
        self._run.train(round_, found)

    def _compute(self, way: Way, batch: Batch) -> Float32 | None:
        try:
            return way.coefficients(self._config, self._run.weights, batch)
        except NonFiniteGradientError:
            return None

    def _measure(self, round_: int, turn: int, batch: Batch, trained: Float32 | None) -> None:
        found = [
            trained if way is self._fastest else self._compute(way, batch) for way in self._ways
        ]
        seats = self._seats(found)
        for number, way in enumerate(self._ways):
            group = self.groups.setdefault(way.name, Group(way.name, is_honest=True))
            witnesses = seats[:number] + seats[number + 1 :]
            offer = self._audit(group, round_, turn, found[number], witnesses)
            made = seats[number].yardstick
            if offer is None or not isinstance(made, Yardstick):
                continue
            for witness in witnesses:
                if isinstance(witness.yardstick, Yardstick):
                    group.whole.add(made, witness.yardstick)
                    group.whole.add_votes(offer.sent, witness.yardstick, self._run.rule)
            if number == 0:
                tiles = self._run.opened(offer, round_, 0).tiles
                self.bench = Bench(seats, tiles, offer.sent, self._run.rule)
        for name, part in cheats(batch):
            group = self.groups.setdefault(name, Group(name, is_honest=False))
            made_of = self._nothing if part is None else self._compute(self._fastest, part)
            self._audit(group, round_, turn, made_of, seats)

    def _seats(self, found: Sequence[Float32 | None]) -> list[Seat]:
        """Return each way as a judge, with its computation in the other precision."""
        count = self._run.layout.num_tiles
        sticks = [yardstick_of(Own(tiles), count) for tiles in found]
        seats = []
        for way, stick in zip(self._ways, sticks, strict=True):
            other = way.device.other_precision()
            same = [
                one
                for other_way, one in zip(self._ways, sticks, strict=True)
                if other_way.device == other and isinstance(one, Yardstick)
            ]
            seats.append(Seat(way.name, stick, same[0] if same else None))
        return seats

    def _audit(
        self,
        group: Group,
        round_: int,
        turn: int,
        made: Float32 | None,
        witnesses: Sequence[Seat],
    ) -> Offer | None:
        """Let every witness judge what a trainer shows, over several draws; return the offer.

        A trainer without a finite gradient shows nothing.
        """
        if made is None:
            for _ in range(self._plan.draws * len(witnesses)):
                group.skip(Reason.OWN_NOT_FINITE)
            return None
        offer = self._run.offer(turn, made)
        for draw in range(self._plan.draws):
            about = self._run.opened(offer, round_, draw)
            group.judge(about, offer.sent, witnesses, self._run.rule)
        return offer

    @property
    def _nothing(self) -> Float32:
        return np.zeros((self._run.layout.num_tiles, TILE_SIDE, TILE_SIDE), np.float32)
