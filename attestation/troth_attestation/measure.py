"""Distances between what a trainer shows and what a judge computed (protocol section 7).

Owns: the norms of the judge's gradient, the scale of each tile, the measured numbers, and what a
second computation in the other precision excuses. The port to a gradient on a device is here, too.
Never: compares with a bound (`work.py` does), computes a gradient, or fetches.
Next: `work.py`.

Norms are in fp64. Shape legend: T tiles of the model, n drawn tiles of 4096 coefficients.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from troth_attestation.agreement import Group, groups, least_agreement
from troth_attestation.openings import Openings
from troth_attestation.pieces import Float32
from troth_attestation.selection import after_included, decayed, flush
from troth_attestation.signs import Bools, Signs
from troth_attestation.sizes import TILE_COEFFICIENTS
from troth_coordinator.rules.config import MICRO, DemoSection, JudgeSection

Float64 = npt.NDArray[np.float64]
Places = npt.NDArray[np.uint8]

NOISE_FACTOR = 4
"""A tile counts against a trainer only beyond so many times the judge's own uncertainty."""
MEDIAN_FACTOR = 2
"""A median is steadier than a tile: it counts beyond so many times the median of that."""
MILD_LOG2, HARSH_LOG2 = 3, 6
"""A tile without gradient is one below 2^-(sent floor + this), mildly and beyond any doubt."""


@dataclass(frozen=True, slots=True)
class JudgeRule:
    """The part of the hashed config that the judge reads.

    `tensor_tiles` are the tiles of the model's matrices in their order, for the agreement of votes.
    """

    demo: DemoSection
    judge: JudgeSection
    tensor_tiles: tuple[int, ...] = ()


def nothing() -> None:
    """Return no second computation."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Norms and largest magnitudes of all tiles of a gradient, fp64 [T].

    `median` is that of the positive norms; 0 for a gradient that is zero everywhere.
    """

    norms: Float64
    largest: Float64
    median: float

    @classmethod
    def of(cls, norms: Float64, largest: Float64) -> "Scale":
        """Return the scale of measured tiles."""
        positive = norms[norms > 0]
        return cls(norms, largest, float(np.median(positive)) if len(positive) else 0.0)

    @property
    def is_finite(self) -> bool:
        """Whether the gradient holds neither NaN nor infinity."""
        return bool(np.isfinite(self.norms).all())

    def of_tiles(self, tiles: list[int], floor: float) -> Float64:
        """Return f = max(norm, floor * median) of these tiles, fp64 [n]."""
        return np.maximum(self.norms[tiles], floor * self.median)


class Measure(Protocol):
    """A judge measures with this: its own D(g), wherever that lies."""

    @property
    def scale(self) -> Scale:
        """The scale of all tiles."""

    def drawn(self, tiles: list[int]) -> Float32:
        """Return these tiles, fp32 [n, 4096], the bits of D(g)."""

    def agreement(self, cut: Sequence[Group], signs: Signs, counted: Bools) -> float | None:
        """Return the agreement of votes in the group where it is least: see `least_agreement`."""


class DeviceGradient(Measure, Protocol):
    """A judge's own D(g), fp32 [T, 64, 64], on a device; only what is returned here leaves it.

    Sums are in fp64 in any order, so their last bits may differ from numpy's. Norms and scores have
    at most 4096 terms: they differ by less than 2^-40 of what they are, and no bound is finer than
    2^-20. A sketch may differ by a unit of the last place, a millionth of what the rule forgives.
    Largest magnitudes are exact. NaN and infinities come through everywhere.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """[T, 64, 64], unless it is of another model."""

    def sums(self, places: Iterable[Places]) -> Float64:
        """Return the sums of the coefficients by place, fp64 [128].

        `places` has the place of each coefficient in tile order, 0..127, in consecutive parts.
        """


Tiles = Float32 | DeviceGradient
"""D(g), fp32 [T, 64, 64]: an array here, or a port to it elsewhere."""

Again = Callable[[], Tiles | None]
"""Computes a gradient in the other precision; None where it is not finite or comes too late."""


@dataclass(frozen=True, slots=True)
class Own:
    """A judge's own D(g) after its own clip; None where it was not finite.

    `again` is called at most once, and only if it can make the verdict milder.
    """

    tiles: Tiles | None
    again: Again = nothing


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A gradient of a judge in an array, fp32 [T, 64, 64], with its scale."""

    tiles: Float32
    scale: Scale

    def drawn(self, tiles: list[int]) -> Float32:
        """Return these tiles, fp32 [n, 4096]."""
        return self.tiles[tiles].reshape(len(tiles), TILE_COEFFICIENTS)

    def agreement(self, cut: Sequence[Group], signs: Signs, counted: Bools) -> float | None:
        """Return the agreement in the group of tiles where it is least."""
        return least_agreement(cut, signs, self.tiles, counted)


def measure_of(gradient: Tiles) -> Measure:
    """Return what measures with a gradient; an array has its scale taken first."""
    if isinstance(gradient, np.ndarray):
        return Yardstick(gradient, scale_of(gradient))
    return gradient


@dataclass(frozen=True, slots=True)
class Distances:
    """The measured numbers of one audit.

    `has_gradient` says whether a drawn tile has one. `residual_ratio` is the median of ||M|| / f
    over those tiles, `median_error` that of e. `errors` are e of all drawn tiles. `counted` and
    `counted_median` are what is left of them towards a mismatch, where a second computation excuses
    some. `residual_ratios` are of the drawn tiles that were sent. `num_idle` and `num_surely_idle`
    count sent tiles without gradient, over all tiles. `agreement` is that of the votes with the
    gradient, in the group of tiles where it is least; None where it is not tested.
    """

    has_gradient: bool
    residual_ratio: float
    median_error: float
    errors: Float64
    counted: Float64
    counted_median: float
    residual_ratios: Float64 = field(default_factory=lambda: np.zeros(0))
    num_idle: int = 0
    num_surely_idle: int = 0
    agreement: float | None = None

    @property
    def num_drawn(self) -> int:
        """How many tiles were drawn."""
        return len(self.errors)

    def excused(self, sure: float) -> "Distances":
        """Return the distances without anything that a second computation might excuse.

        A median above `sure` is no noise of honest hardware.
        """
        none = np.zeros_like(self.errors)
        median = self.median_error if self.median_error > sure else 0.0
        return replace(self, counted=none, counted_median=median, num_surely_idle=0)

    def at_best(self, sure: float) -> "Distances":
        """Return the distances if a second computation agreed with the trainer to the bit."""
        excused = self.excused(sure)
        none, median = excused.counted, excused.counted_median
        return replace(excused, errors=none, median_error=median, num_idle=0, agreement=None)


@dataclass(frozen=True, slots=True)
class Shown:
    """The content of opened tiles: u, b and M before the round, flushed fp32 [n, 4096].

    `tiles` are their numbers.
    """

    tiles: list[int]
    u: Float32
    without: Float32
    residual: Float32

    @classmethod
    def of(cls, shown: Openings, demo: DemoSection) -> "Shown":
        """Derive M and b from u of the round before."""
        residual = after_included(flush(shown.before), demo)
        return cls(list(shown.tiles), flush(shown.after), decayed(residual, demo), residual)

    @property
    def implied(self) -> Float64:
        """The gradient that the trainer must have computed: u - b, fp64 [n, 4096]."""
        found: Float64 = self.u.astype(np.float64) - self.without
        return found


def scale_of(gradient: Float32) -> Scale:
    """Measure a gradient, fp32 [T, 64, 64]."""
    rows = gradient.reshape(len(gradient), -1)
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    return Scale.of(norms_of(rows), largest)


def measure(shown: Shown, own: Measure, signs: Signs, rule: JudgeRule) -> Distances:
    """Measure residual and implied gradient by a judge's own gradient."""
    scale = own.scale
    f = scale.of_tiles(shown.tiles, rule.judge.gradient_floor_micro / MICRO)
    has_gradient = scale.norms[shown.tiles] > 0
    errors = _errors(shown, own.drawn(shown.tiles)) / f
    residuals = norms_of(shown.residual)
    ratios = residuals / f
    beside = residuals / np.maximum(scale.norms[shown.tiles], scale.median)
    floor = rule.judge.sent_floor_log2
    any_gradient = bool(has_gradient.any())
    median = float(np.median(errors[has_gradient])) if any_gradient else 0.0
    return Distances(
        has_gradient=any_gradient,
        residual_ratio=float(np.median(ratios[has_gradient])) if any_gradient else 0.0,
        median_error=median,
        errors=errors,
        counted=errors,
        counted_median=median,
        residual_ratios=beside[signs.present[shown.tiles]],
        num_idle=_num_idle(signs, scale.largest, floor + MILD_LOG2),
        num_surely_idle=surely_idle(own, signs, rule),
        agreement=agreement_of(own, signs, rule) if rule.judge.agreement_bound_micro else None,
    )


def agreement_of(own: Measure, signs: Signs, rule: JudgeRule) -> float | None:
    """Return the agreement of all votes with a judge's own gradient; None for too few tiles.

    It needs no opened tile, so it does not depend on the draw.
    """
    floor = rule.judge.gradient_floor_micro / MICRO * own.scale.median
    counted = signs.present & (own.scale.norms >= floor)
    return own.agreement(groups(rule.tensor_tiles), signs, counted)


def surely_idle(own: Measure, signs: Signs, rule: JudgeRule) -> int:
    """Return how many sent tiles have no gradient beyond any doubt. It needs no opened tile."""
    return _num_idle(signs, own.scale.largest, rule.judge.sent_floor_log2 + HARSH_LOG2)


def with_second(
    found: Distances, shown: Shown, own: tuple[Measure, Measure], signs: Signs, rule: JudgeRule
) -> Distances:
    """Excuse what the judge's two computations, `own`, do not agree about.

    A tile counts with the smaller of its two errors, and not at all within four times the distance
    of the two. The median counts likewise beyond twice that distance, and in any case where it is
    too large for noise. A tile is surely without gradient if both say so.
    """
    first, second = (one.drawn(shown.tiles) for one in own)
    scales = own[0].scale, own[1].scale
    f = scales[0].of_tiles(shown.tiles, rule.judge.gradient_floor_micro / MICRO)
    apart = norms_of(first - second) / f
    others = _errors(shown, second) / f
    least = np.minimum(found.errors, others)
    largest = np.maximum(scales[0].largest, scales[1].largest)
    return replace(
        found,
        counted=np.where(least > NOISE_FACTOR * apart, least, 0.0),
        counted_median=_counted_median(found, others, apart, scales[0].norms[shown.tiles], rule),
        num_surely_idle=_num_idle(signs, largest, rule.judge.sent_floor_log2 + HARSH_LOG2),
    )


def _counted_median(
    found: Distances, others: Float64, apart: Float64, norms: Float64, rule: JudgeRule
) -> float:
    """Return the median that counts, 0 where it may be the judge's own noise."""
    sure = rule.judge.tile_mismatch_micro / MICRO
    if found.median_error > sure or not found.has_gradient:
        return found.median_error
    has_gradient = norms > 0
    least = min(found.median_error, float(np.median(others[has_gradient])))
    return least if least > MEDIAN_FACTOR * float(np.median(apart[has_gradient])) else 0.0


def _errors(shown: Shown, drawn: Float32) -> Float64:
    """Return ||u - b - g|| of the drawn tiles, fp64 [n]; `drawn` is g, fp32 [n, 4096]."""
    found: Float64 = np.linalg.norm(shown.implied - drawn.astype(np.float64), axis=1)
    return found


def norms_of(rows: Float32) -> Float64:
    """Return the norms of rows, fp64 [n] of fp32 [n, 4096], with sums in fp64."""
    found: Float64 = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return found


def _num_idle(signs: Signs, largest: Float64, log2: int) -> int:
    """Count sent tiles whose gradient lies below 2^-log2 everywhere."""
    return int(np.count_nonzero(signs.present & (largest < 2.0**-log2)))
