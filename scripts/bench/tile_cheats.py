"""Cheats about single tiles on a real model: `python scripts/bench/tile_cheats.py [--seeds N]`.

Owns: honest training rounds without a chain, with every tile cheat of the catalogue as a shadow
beside them. A shadow has the gradient and the momentum of a trainer, and its payloads are audited
in every round, but not applied. A seat in bf16 judges, then a juror in the reference mode.
Never: plays the program; tests/adversarial/test_tile_cheats.py does.
Next: `localnet/troth_simulation/cheats/tiles.py`; docs/results.md for the table.

A cheat ends with its first conviction. Every seed is a line of JSON in --out.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from whole_runs import ROUNDS_APART, Journal, on_source_text

from troth_attestation.measure import Own, Yardstick, measure
from troth_attestation.pieces import Float32
from troth_attestation.signs import Signs
from troth_attestation.verdict import Verdict, VerdictKind
from troth_attestation.work import conclude, yardstick_of
from troth_client.calibration.rehearsal import Batch, Offer, Rehearsal, batches
from troth_client.calibration.ways import Way
from troth_client.data.shards import TokenData
from troth_client.model.device import CPU, Device
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings
from troth_simulation.cheats import tiles
from troth_simulation.cheats.catalogue import CHEATS

TRAINERS = 2
HONEST_ROUNDS = 3
BASE = 0.1
"""The rate at which members of long standing are sampled."""
OK, MISMATCH, _, INCONCLUSIVE = VerdictKind


@dataclass
class Shadow:
    """One cheat beside an honest run, and what became of its audits."""

    name: str
    number: int
    change: Callable[[Float32], Float32]
    seats: Counter[str] = field(default_factory=Counter)
    jurors: Counter[str] = field(default_factory=Counter)
    contradictions: int = 0
    owned: list[float] = field(default_factory=list)
    convicted: int = 0


def shadows(settings: RunSettings) -> list[Shadow]:
    """Return honest work, and every cheat of the catalogue that changes tiles."""
    edge = tiles.at_the_edge(settings.config.judge)
    changes: dict[str, Callable[[Float32], Float32]] = {"honest": tiles.same_tiles}
    changes |= {c.name: c.tiles for c in CHEATS.values() if c.tiles is not tiles.same_tiles}
    changes["knife-edge"] = edge
    return [
        Shadow(n, TRAINERS + place, change) for place, (n, change) in enumerate(changes.items())
    ]


class World:
    """The honest run of a seed."""

    def __init__(self, settings: RunSettings, data: TokenData, seed: int) -> None:
        self._config, self._data = settings.config, data
        self.shadows = shadows(settings)
        self._run = Rehearsal(self._config, TRAINERS + len(self.shadows), seed)
        self._seed = seed
        micro = self._config.train.microbatch_sequences
        self._juror = Way("fp32", CPU, 1, micro)
        self._seat = Way("bf16", Device(torch.device("cpu"), is_mixed=True), 1, micro)

    def play(self, rounds: int) -> dict[str, Any]:
        """Train, cheat and judge; return what the journal keeps."""
        for round_ in range(rounds + HONEST_ROUNDS):
            place = self._seed * ROUNDS_APART + round_
            taken = batches(self._config, self._data, place, TRAINERS)
            own = [self._compute(self._juror, batch) for batch in taken]
            judges = (
                yardstick_of(Own(self._compute(self._seat, taken[0])), len(own[0])),
                yardstick_of(Own(own[0]), len(own[0])),
            )
            sent = [self._run.send(number, made).sent for number, made in enumerate(own)]
            for shadow in self.shadows:
                is_honest = round_ < HONEST_ROUNDS
                change = tiles.same_tiles if is_honest else shadow.change
                offer = self._run.send(shadow.number, change(own[0]))
                if not is_honest and not shadow.convicted:
                    self._audit(round_, shadow, offer, judges)
                    shadow.owned.append(new_votes(offer.sent, sent[0]))
            self._run.apply(round_, sent)
        names = ("seats", "jurors", "contradictions", "owned", "convicted")
        return {one.name: {name: getattr(one, name) for name in names} for one in self.shadows}

    def _audit(self, round_: int, shadow: Shadow, offer: Offer, judges: Sequence[Any]) -> None:
        seat, juror = (self._verdict(round_, offer, judges, place) for place in (0, 1))
        shadow.seats[seat.kind.name] += 1
        shadow.jurors[juror.kind.name] += 1
        shadow.contradictions += {seat.kind, juror.kind} >= {OK, MISMATCH}
        if seat.kind == juror.kind == MISMATCH:
            shadow.convicted = round_ - HONEST_ROUNDS + 1

    def _verdict(
        self, round_: int, offer: Offer, judges: Sequence[Yardstick], place: int
    ) -> Verdict:
        about = self._run.opened(offer, round_, 0)
        own, other = judges[place], judges[1 - place]
        found = measure(about, own, offer.sent, self._run.rule)
        judge = (own, lambda: other.tiles)
        return conclude(found, about, judge, offer.sent, self._run.rule)

    def _compute(self, way: Way, batch: Batch) -> Float32:
        return way.coefficients(self._config, self._run.weights, batch)


def new_votes(sent: Signs, honest: Signs) -> float:
    """Return the share of a payload's votes that honest work would not have cast."""
    places = np.arange(sent.num_tiles)[:, None] * 4_096
    cast, usual = (
        set((((places + one.indices) * 2 + one.negative)[one.present]).ravel().tolist())
        for one in (sent, honest)
    )
    return len(cast - usual) / max(1, len(cast))


def table(seeds: Sequence[Mapping[str, Any]], settings: RunSettings) -> Iterator[str]:
    """Yield the table in markdown; rewards are those of a round at the base rate."""
    chain = settings.chain
    half = chain.min_stake_lamports / 2 / chain.reward_per_payload
    yield (
        "| client | audits | ok | unproven | mismatch | convicted | honest seats hurt "
        "| votes that honest work would not cast | rewards a round, against honest work |"
    )
    yield "|---|" + "---:|" * 8
    for name in seeds[0]:
        rows = [seed[name] for seed in seeds]
        jurors = sum((Counter(row["jurors"]) for row in rows), Counter[str]())
        seats = sum((Counter(row["seats"]) for row in rows), Counter[str]())
        total = seats.total()
        caught = sum(bool(row["convicted"]) for row in rows)
        convictions = min(seats["MISMATCH"], jurors["MISMATCH"])
        unpaid = total - seats["OK"] - convictions
        owned = list(itertools.chain.from_iterable(row["owned"] for row in rows))
        lost = BASE * (unpaid + convictions * (1 + half)) / total
        cells = [
            name,
            f"{total}",
            *(f"{count / total:.1%}" for count in (seats["OK"], unpaid, convictions)),
            f"{caught} of {len(rows)}",
            f"{sum(row['contradictions'] for row in rows)}",
            f"{np.mean(owned):.1%}",
            f"{-lost:.2f}",
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Play what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path("configs/localnet.toml"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs/tile_cheats.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings, journal = load_config([arguments.config]), Journal(arguments.out)
    with on_source_text(settings) as (bound, data):
        for seed in missing(journal.read(bound), arguments.seeds):
            found = World(bound, data, int(seed)).play(arguments.rounds)
            journal.add(bound, seed, found)
            print(seed, found, file=sys.stderr, flush=True)
        known = journal.read(bound)
    print(*table(list(known.values()), settings), sep="\n")
    return 0


def missing(known: Mapping[str, object], seeds: int) -> Iterable[str]:
    """Return the names of the seeds that were not played yet."""
    return [str(seed) for seed in range(1, seeds + 1) if str(seed) not in known]


if __name__ == "__main__":
    sys.exit(main())
