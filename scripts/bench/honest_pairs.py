"""One producer, one judge, honest both, in two precisions: `python scripts/bench/honest_pairs.py`.

Owns: participant-rounds without a chain. Trainers in fp32 and in bf16 train together; each payload
is judged by one witness, in fp32 and in bf16 in turn. Witnesses take single sequences where
trainers take the configured microbatch, so that no pair has equal bits. With --device cuda half of
both compute on the card. Counts what would hurt.
Never: a cheat but tiles forged on the way, to see what is caught with and without all votes.
Next: `honest.py` for whole runs on the program; `troth_client/calibration/rehearsal.py`.

An episode is the run of a config from the weights of a seed on. It is one line of JSON in --out
with the numbers of every audit; an episode that is there already is not played again.
"""

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from whole_runs import ROUNDS_APART, Journal, kinds_of, on_source_text

from troth_attestation.measure import Again, Own, Shown, Yardstick, measure
from troth_attestation.pieces import Float32
from troth_attestation.sketch import Sketch, differ, sketch
from troth_attestation.verdict import Reason
from troth_attestation.work import conclude, yardstick_of
from troth_client.calibration.rehearsal import TARGET, Batch, Offer, Rehearsal, batches
from troth_client.calibration.tails import largest
from troth_client.calibration.ways import Way
from troth_client.calibration.whole_model import FLOORS, Whole
from troth_client.data.shards import TokenData
from troth_client.model.device import Device, choose_device
from troth_client.train.errors import NonFiniteGradientError
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.config import NUM_FAR
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.settings import RunSettings

FORGED = (0.02, 0.06, 0.375)
"""Shares of the model, consecutive tiles, that a forger sends in a direction of its choice."""
SELDOM = 5
"""Sketches and forged tiles are tried in one audit of so many."""
SIZE = 5.0
"""A forged tile has so many times its gradient."""


class Episode:
    """One run from the weights of a seed on, and the numbers of its audits."""

    def __init__(
        self,
        settings: RunSettings,
        data: TokenData,
        seed: int,
        trainers: int,
        kinds: Mapping[str, Device],
    ) -> None:
        self._config, self._data, self._seed = settings.config, data, seed
        self._factor = settings.chain.sketch_factor
        self._run = Rehearsal(self._config, trainers, seed)
        micro = self._config.train.microbatch_sequences
        several = itertools.cycle(kinds.items())
        self._makers = [Way(*next(several), 1, micro) for _ in range(trainers)]
        self._judges = [Way(name, device, 1, 1) for name, device in kinds.items()]
        self.whole = Whole()
        self.audits: list[dict[str, Any]] = []
        self.forged: list[dict[str, Any]] = []
        self.num_sketch_differences = self.num_sketch_pairs = 0
        self._num_tiles = self._run.layout.num_tiles

    def play(self, rounds: int) -> dict[str, Any]:
        """Train and judge; return what the journal keeps."""
        begun, burnt = time.monotonic(), time.process_time()
        for round_ in range(rounds):
            self._round(round_)
        whole = self.whole
        return {
            "participant_rounds": rounds * len(self._makers),
            "seconds": time.monotonic() - begun,
            "processor_seconds": time.process_time() - burnt,
            "load": os.getloadavg()[0],
            "audits": self.audits,
            "forged": self.forged,
            "sketch_pairs": self.num_sketch_pairs,
            "sketch_differences": self.num_sketch_differences,
            "distance": whole.distance,
            "least_share": whole.least_share,
            "num_small": whole.num_small,
            "small_errors": whole.small_errors.tolist(),
            "strays": whole.strays.tolist(),
        }

    def _round(self, round_: int) -> None:
        begin = self._seed * ROUNDS_APART + round_
        taken = batches(self._config, self._data, begin, len(self._makers))
        made = [self._compute(way, batch) for way, batch in zip(self._makers, taken, strict=True)]
        for number, batch in enumerate(taken):
            # Every kind judges every other in turn.
            place = (number + number // len(self._judges) + round_) % len(self._judges)
            self._audit(round_, number, made[number], place, batch)
        self._run.train(round_, made)

    def _compute(self, way: Way, batch: Batch) -> Float32 | None:
        try:
            return way.coefficients(self._config, self._run.weights, batch)
        except NonFiniteGradientError:
            return None

    def _audit(
        self, round_: int, number: int, made: Float32 | None, place: int, batch: Batch
    ) -> None:
        """Let one witness judge one payload, and now and then a forged one made of it."""
        witness = self._judges[place].name
        names = {"round": round_, "maker": self._makers[number].name, "judge": witness}
        own = Own(
            self._compute(self._judges[place], batch),
            lambda: self._compute(self._judges[place ^ 1], batch),
        )
        judge, maker = (yardstick_of(one, self._num_tiles) for one in (own, Own(made)))
        if isinstance(judge, Reason) or isinstance(maker, Reason):
            self.audits.append(names | {"verdict": "INCONCLUSIVE", "reason": str((maker, judge))})
            return
        offer = self._run.offer(number, maker.tiles)
        about = self._run.opened(offer, round_, number)
        self.whole.add(maker, judge)
        self.audits.append(names | self._numbers(about, offer, judge, own.again))
        if (round_ + number) % SELDOM == 0:
            first, second = (self._sketch(stick.tiles, round_) for stick in (maker, judge))
            self.num_sketch_pairs += 1
            self.num_sketch_differences += differ(first, second, self._factor)
            self._forge(round_, number, maker.tiles, (witness, judge, own.again))

    def _numbers(
        self, about: Shown, offer: Offer, judge: Yardstick, again: Again
    ) -> dict[str, Any]:
        rule = self._run.rule
        found = measure(about, judge, offer.sent, rule)
        verdict = conclude(found, about, (judge, again), offer.sent, rule)
        votes = Whole()
        votes.add_votes(offer.sent, judge, rule)
        far = sorted(found.errors.tolist())[-rule.judge.mismatch_tiles :]
        return {
            "verdict": verdict.kind.name,
            "reason": verdict.reason.name,
            "error": found.median_error,
            "far": far,
            "residual": found.residual_ratio,
            "third_residual": largest(found.residual_ratios, NUM_FAR),
            "idle": found.num_idle,
            "agreement": votes.agreements[0].tolist(),
        }

    def _forge(
        self, round_: int, number: int, made: Float32, witness: tuple[str, Yardstick, Again]
    ) -> None:
        """Send a direction of one's choice in a part of the model; the momentum stays honest."""
        rng = np.random.default_rng(self._seed * 1_000 + round_)
        name, judge, again = witness
        for share in FORGED:
            length = max(1, round(share * self._num_tiles))
            begin = int(rng.integers(self._num_tiles - length + 1))
            tiles = np.arange(begin, begin + length)
            shown = made.copy()
            wanted = rng.standard_normal(made[tiles].shape).astype(np.float32)
            norms = [np.linalg.norm(x.reshape(length, -1), axis=1) for x in (made[tiles], wanted)]
            shown[tiles] = wanted * (SIZE * norms[0] / norms[1])[:, None, None]
            offer = self._run.offer(number, shown)
            about = self._run.opened(offer, round_, number)
            numbers = self._numbers(about, offer, judge, again)
            kept = {key: numbers[key] for key in ("verdict", "reason", "agreement")}
            self.forged.append({"share": share, "judge": name} | kept)

    def _sketch(self, tiles: Float32, round_: int) -> Sketch:
        return sketch(tiles, H("troth:pairs", u64(self._seed), u64(round_)), TARGET)


def upper(hits: int, tries: int, confidence: float = 0.95) -> float:
    """Return the upper bound of a rate of which `hits` of `tries` were seen (Clopper-Pearson)."""
    low, high = hits / max(1, tries), 1.0
    for _ in range(60):
        middle = (low + high) / 2
        terms = (
            math.lgamma(tries + 1)
            - math.lgamma(n + 1)
            - math.lgamma(tries - n + 1)
            + n * math.log(max(middle, 1e-300))
            + (tries - n) * math.log1p(-min(middle, 1 - 1e-16))
            for n in range(hits + 1)
        )
        tail = sum(math.exp(term) for term in terms)
        low, high = (middle, high) if tail > 1 - confidence else (low, middle)
    return high


def report(episodes: Iterable[dict[str, Any]], agreement_bound: float) -> Iterable[str]:
    """Yield the tables in markdown."""
    known = list(episodes)
    audits = [audit for one in known for audit in one["audits"]]
    total = sum(one["participant_rounds"] for one in known)
    seconds = sum(one["seconds"] for one in known)
    yield f"{total} participant-rounds, {len(audits)} audits, {seconds:.0f} s"
    yield (
        "| trainer | judge | audits | error | third tile | residual | least agreement "
        "| inconclusive (95 % below) | mismatch (95 % below) |"
    )
    yield "|---|---|" + "---:|" * 7
    place = FLOORS.index(10_000)
    kinds = dict.fromkeys(audit[who] for who in ("maker", "judge") for audit in audits)
    for maker, judge in itertools.product(kinds, kinds):
        pair = [a for a in audits if (a["maker"], a["judge"]) == (maker, judge)]
        if not pair:
            continue
        counts = {
            kind: sum(a["verdict"] == kind for a in pair) for kind in ("INCONCLUSIVE", "MISMATCH")
        }
        cells = [f"{n} ({upper(n, len(pair)):.2%})" for n in counts.values()]
        worst = [max(a.get(key, 0) for a in pair) for key in ("error", "residual")]
        worst.insert(1, max(a["far"][-NUM_FAR] for a in pair if "far" in a))
        votes = min(a["agreement"][place] for a in pair if "agreement" in a)
        numbers = " | ".join(f"{value:.4f}" for value in worst)
        yield f"| {maker} | {judge} | {len(pair)} | {numbers} | {votes:.3f} | {' | '.join(cells)} |"
    differences, pairs = (
        sum(one[f"sketch_{n}"] for one in known) for n in ("differences", "pairs")
    )
    distance = max((one["distance"] for one in known), default=0)
    yield f"sketches that differ: {differences} of {pairs}; gradients apart by {distance:.4f}"
    forged = [made for one in known for made in one["forged"]]
    for share in FORGED:
        some = [made for made in forged if made["share"] == share]
        if some:
            mismatch = sum(m["verdict"] == "MISMATCH" for m in some)
            unpaid = sum(m["verdict"] != "OK" for m in some)
            all_votes = sum(
                m["verdict"] != "OK" or m["agreement"][place] < agreement_bound for m in some
            )
            yield (
                f"| {share:.1%} forged | {len(some)} | mismatch {mismatch / len(some):.1%} | "
                f"not ok {unpaid / len(some):.1%} | with all votes {all_votes / len(some):.1%} |"
            )


def main() -> int:
    """Play episode after episode until there are enough; 1 if anybody honest was a mismatch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, action="append", default=[])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=INTEGER")
    parser.add_argument("--participant-rounds", type=int, default=10_000)
    parser.add_argument("--trainers", type=int, default=4, help="every second one in bf16")
    parser.add_argument("--device", default="cpu", help="a second device, beside the processor")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of an episode")
    parser.add_argument("--seed", type=int, default=1, help="the first; the others follow it")
    parser.add_argument("--agreement-bound", type=float, default=0.5)
    parser.add_argument("--out", type=Path, default=Path("runs/honest_pairs.jsonl"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    changes = {key: int(value) for key, value in (one.split("=") for one in arguments.set)}
    settings = load_config(arguments.config, changes)
    with on_source_text(settings) as (bound, data):
        known = play_all(bound, data, arguments)
    lines = list(report(known.values(), arguments.agreement_bound))
    print("\n".join(lines), flush=True)
    return int(any(a["verdict"] == "MISMATCH" for one in known.values() for a in one["audits"]))


def play_all(
    settings: RunSettings, data: TokenData, arguments: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Play what is missing; return all episodes."""
    second = choose_device(arguments.device)
    kinds, journal = kinds_of(second), Journal(arguments.out, second)
    while True:
        known = journal.read(settings)
        done = sum(one["participant_rounds"] for one in known.values())
        print(json.dumps({"participant_rounds": done, "episodes": len(known)}), flush=True)
        if done >= arguments.participant_rounds:
            return known
        seed = next(n for n in itertools.count(arguments.seed) if str(n) not in known)
        journal.add(
            settings,
            str(seed),
            Episode(settings, data, seed, arguments.trainers, kinds).play(arguments.rounds),
        )


if __name__ == "__main__":
    sys.exit(main())
