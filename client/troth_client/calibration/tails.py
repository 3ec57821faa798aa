"""The far tiles of honest work, and all bounds but the two of the median (`thresholds.py`).

Owns: what calibration keeps of each honest audit, and the bounds for single tiles and residuals
that follow; the percentiles. It names the bounds of a config that honest work does not clear by a
factor of three.
Never: measures. Next: `calibrate.py`, which does; `thresholds.py` for the medians.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from troth_attestation.measure import Distances, Float64
from troth_coordinator.rules.config import APART, MICRO, NUM_FAR, JudgeSection

CLEARANCE = 3
"""Honest work stays below every value that is a mismatch by this factor."""
HEADROOM = 1.5
"""A bound lies so far above the worst honest audit that was measured."""
TILE_SHARE = 4
"""One tile is noisier than the median: its bound is at least so many times that of the median."""
HONEST_PERCENT = 99.9
_APART = APART[0] / APART[1]


@dataclass(slots=True)
class Tails:
    """The extremes of the audits of one kind of trainer.

    `ratios` are the residuals of every sent drawn tile. The others are the worst of any audit.
    `spare` is the largest error behind the `ok_tiles` that ok work may have. `median`, `nth`,
    `third` and `most` are errors after a second computation: the median, number `mismatch_tiles`
    from the largest on, the third, the largest. `third_ratio` is the third largest residual of a
    tile. `num_idle` are votes without gradient, each of which makes honest work inconclusive.
    """

    ratios: list[Float64] = field(default_factory=list)
    spare: float = 0.0
    median: float = 0.0
    nth: float = 0.0
    third: float = 0.0
    most: float = 0.0
    third_ratio: float = 0.0
    num_idle: int = 0

    def add(self, found: Distances, counted: Distances, judge: JudgeSection) -> None:
        """Keep one audit: as measured, and as it counts after a second computation."""
        self.ratios.append(found.residual_ratios)
        self.spare = max(self.spare, largest(found.errors, judge.ok_tiles + 1))
        self.median = max(self.median, counted.counted_median)
        self.nth = max(self.nth, largest(counted.counted, judge.mismatch_tiles))
        self.third = max(self.third, largest(counted.counted, NUM_FAR))
        self.most = max(self.most, largest(counted.counted, 1))
        self.third_ratio = max(self.third_ratio, largest(found.residual_ratios, NUM_FAR))
        self.num_idle = max(self.num_idle, found.num_idle)

    @classmethod
    def of(cls, several: Sequence["Tails"]) -> "Tails":
        """Return the worst of several kinds of trainers."""
        return cls(
            ratios=[values for one in several for values in one.ratios],
            spare=max(one.spare for one in several),
            median=max(one.median for one in several),
            nth=max(one.nth for one in several),
            third=max(one.third for one in several),
            most=max(one.most for one in several),
            third_ratio=max(one.third_ratio for one in several),
            num_idle=max(one.num_idle for one in several),
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest sample value with at least this percentage of values at or below it.

    Nearest rank: with few values, the extremes stand for the tails.
    """
    ordered = sorted(values)
    # Integers: 99.9 % of 1000 must be rank 999 and not, by a rounding error, 1000.
    rank = -(-round(percent * 10) * len(ordered) // 1000)
    return ordered[max(rank, 1) - 1]


def largest(values: Float64, place: int) -> float:
    """Return the value at this place from the largest on; the smallest of fewer, 0 of none."""
    if not len(values):
        return 0.0
    return float(np.sort(values)[max(-place, -len(values))])


def tile_bounds(tails: Tails, residual: float, ok_bound_micro: int) -> dict[str, int]:
    """Return the bounds of single tiles and of residuals that honest work allows, in micro.

    `residual` is the largest median of an honest audit. Bounds are never below the defaults where
    a default is a mismatch: a wider gap costs nothing.
    """
    usual = JudgeSection()
    tile = _up(max(HEADROOM * tails.spare, TILE_SHARE * ok_bound_micro / MICRO))
    far = max(tile * _APART, CLEARANCE * tails.nth)
    alone = _up(max(usual.tile_mismatch_micro / MICRO, tile * _APART, CLEARANCE * tails.third))
    forged = max(usual.tile_forged_micro / MICRO, alone * _APART, CLEARANCE * tails.most)
    ratios = [ratio for values in tails.ratios for ratio in values.tolist()] or [0.0]
    tile_ratio = _up(max(10.0, HEADROOM * percentile(ratios, HONEST_PERCENT)))
    median_ratio = _up(max(usual.residual_bound_micro / MICRO, HEADROOM * residual))
    beyond = max(
        usual.residual_mismatch_micro / MICRO,
        _APART * max(tile_ratio, median_ratio),
        CLEARANCE * max(residual, tails.third_ratio),
    )
    found = {
        "tile_bound_micro": tile,
        "tile_mismatch_bound_micro": far,
        "tile_mismatch_micro": alone,
        "tile_forged_micro": forged,
        "residual_bound_micro": median_ratio,
        "residual_tile_ok_micro": tile_ratio,
        "residual_mismatch_micro": beyond,
    }
    return {name: round(_up(value) * MICRO) for name, value in found.items()}


def not_cleared(tails: Tails, residual: float, judge: JudgeSection) -> Iterator[str]:
    """Yield the values of a config that are a mismatch and lie too close to honest work.

    `residual` is the largest median of an honest audit.
    """
    pairs = (
        ("mismatch_bound_micro", tails.median),
        ("tile_mismatch_bound_micro", tails.nth),
        ("tile_mismatch_micro", tails.third),
        ("tile_forged_micro", tails.most),
        ("residual_mismatch_micro", max(residual, tails.third_ratio)),
    )
    for name, honest in pairs:
        bound = getattr(judge, name)
        if CLEARANCE * honest * MICRO > bound:
            yield f"a third of judge.{name} = {bound}: {honest:.4f}"
    if tails.num_idle:
        yield f"no votes without gradient: {tails.num_idle} tiles, judge.sent_floor_log2"


def _up(value: float) -> float:
    """Round up to a thousandth, so that what is derived from it stays apart from it."""
    return -(-round(value * MICRO) // 1_000) / 1_000
