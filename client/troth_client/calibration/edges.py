"""Targets that stand just inside a bound, before honest judges of several kinds.

Owns: work that one honest way finds ok with every bound used up, and what the other ways say of it.
Never: computes a gradient, or proposes a bound. Next: `calibrate.py`; `work.py` for the rule.

A cheat may know the seats and the jury. It adds what the milder bound forgives, in the direction
that leads away from another honest way. If that way says mismatch, honest seats lose their stake.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from troth_attestation.measure import (
    Again,
    Float64,
    JudgeRule,
    Scale,
    Shown,
    Yardstick,
    measure,
)
from troth_attestation.pieces import Float32
from troth_attestation.selection import decayed, flush
from troth_attestation.signs import Signs
from troth_attestation.verdict import Verdict, VerdictKind
from troth_attestation.work import conclude
from troth_client.calibration.comparison import Seat
from troth_coordinator.rules.config import MICRO, JudgeSection

INSIDE = 0.999
"""The share of a bound that a target uses up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Sizes of the n drawn tiles: of the error by f, of the residual by f and by the full norm."""

    name: str
    error: Float64
    residual: Float64
    tile_residual: Float64


@dataclass(frozen=True, slots=True)
class _Judge:
    """A seat that can judge."""

    name: str
    own: Yardstick
    again: Again


@dataclass(frozen=True, slots=True)
class Bench:
    """One measured round: its honest judges, the drawn tiles, the payload that was sent."""

    seats: Sequence[Seat]
    tiles: list[int]
    sent: Signs
    rule: JudgeRule

    def contradictions(self, judge: JudgeSection) -> list[str]:
        """Return the targets within all milder bounds of one way that another finds a mismatch."""
        rule = replace(self.rule, judge=judge)
        able = [
            _Judge(seat.name, seat.yardstick, seat.again)
            for seat in self.seats
            if isinstance(seat.yardstick, Yardstick)
        ]
        pairs = [(a, b) for a in able for b in able if a is not b]
        return [line for a, b in pairs for line in self._between(a, b, rule)]

    def _between(self, first: _Judge, other: _Judge, rule: JudgeRule) -> Iterator[str]:
        for place in places(rule.judge, len(self.tiles)):
            about = self._shown(place, first, other, rule)
            here, there = (self._verdict(seat, about, rule) for seat in (first, other))
            if there.kind == VerdictKind.MISMATCH:
                yield (
                    f"just inside {place.name}: {first.name} says {here.explain()}, "
                    f"{other.name} says {there.explain()}"
                )

    def _verdict(self, seat: _Judge, about: Shown, rule: JudgeRule) -> Verdict:
        found = measure(about, seat.own, self.sent, rule)
        return conclude(found, about, (seat.own, seat.again), self.sent, rule)

    def _shown(self, place: Place, first: _Judge, other: _Judge, rule: JudgeRule) -> Shown:
        """Build u and M that use up the bounds for `first`, on the side away from `other`."""
        gradient, scale = self._rows(first.own.tiles), first.own.scale
        f = scale.of_tiles(self.tiles, rule.judge.gradient_floor_micro / MICRO)
        towards = _unit(gradient - self._rows(other.own.tiles), gradient)
        size = np.maximum(place.residual * f, place.tile_residual * self._full(scale))
        residual = flush((_unit(gradient, gradient) * size[:, None]).astype(np.float32))
        without = decayed(residual, rule.demo)
        u = without + gradient + towards * (place.error * f)[:, None]
        return Shown(self.tiles, flush(u.astype(np.float32)), without, residual)

    def _rows(self, tiles: Float32) -> Float64:
        return tiles[self.tiles].reshape(len(self.tiles), -1).astype(np.float64)

    def _full(self, scale: Scale) -> Float64:
        return np.maximum(scale.norms[self.tiles], scale.median)


def places(judge: JudgeSection, num_drawn: int) -> Iterator[Place]:
    """Yield every place just inside the milder bounds, the last one inside all of them at once.

    A median forgives less than half of the tiles: so many may stand at a tile's own bound.
    """
    none = np.zeros(num_drawn)
    third, few = num_drawn // 3, min(judge.ok_tiles, (num_drawn - 1) // 2)

    def some(count: int, bound_micro: int) -> Float64:
        return np.where(np.arange(num_drawn) < count, INSIDE * bound_micro / MICRO, 0.0)

    everywhere = some(num_drawn, judge.ok_bound_micro)
    tiles = some(third, judge.tile_bound_micro)
    far = some(few, judge.tile_mismatch_micro)
    usual = some(num_drawn, judge.residual_bound_micro)
    unusual = some(third, judge.residual_tile_ok_micro)
    yield Place("ok_bound", everywhere, none, none)
    yield Place("tile_bound", tiles, none, none)
    yield Place("tile_mismatch", far, none, none)
    yield Place("residual_bound", none, usual, none)
    yield Place("residual_tile_ok", none, none, unusual)
    largest: Callable[..., Float64] = np.maximum
    errors = largest(largest(everywhere, tiles), far)
    yield Place("every bound", errors, usual, unusual)


def _unit(rows: Float64, instead: Float64) -> Float64:
    """Return rows of norm 1, fp64 [n, 4096]; for a zero row that of `instead`, or a constant."""
    found = np.ones_like(rows)
    for candidate in (instead, rows):
        norms = np.linalg.norm(candidate, axis=1)
        found[norms > 0] = candidate[norms > 0]
    unit: Float64 = found / np.linalg.norm(found, axis=1)[:, None]
    return unit
