"""The plan and the findings of a profile, and how loss against time is put together.

Owns: the records, and the composition of two measurements: loss by step, and seconds by step.
Never: imports torch, or measures. A composed number stays apart from a measured one.
Next: `study.py`, which makes the records; `troth_cli/view/profile.py`, which shows them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_coordinator.rules.config import RunConfig

MEGABIT: Final = 10**6
"""Bits in one Mbit."""

Point = tuple[float, float]
"""Steps or seconds, and a loss in nats a token."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The training that every method does: model, data, tokens, schedule; the same for all of them.

    `adamw_lr` is the peak rate of the three methods that use AdamW; DeMo takes that of the config.
    `inner_steps`: local steps of DiLoCo between two exchanges.
    """

    name: str
    config: RunConfig
    data: Path
    num_ranks: int
    adamw_lr: float
    inner_steps: int
    seed: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The measurements to make: methods by name, rates in Mbit/s, least steps of each of them."""

    methods: tuple[str, ...]
    mbits: tuple[int, ...]
    num_steps: int

    @property
    def rates(self) -> tuple[int | None, ...]:
        """All rates; None stands for loopback without a bound, which is always measured."""
        return (*self.mbits, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. Bytes are those of one rank and step: a mean over all of them.

    `seconds` of a step: the median over steps, of DiLoCo over outer rounds; beside it the slowest.
    `mbit`: the rate of each rank's cable in each direction, None for loopback without a bound.
    """

    model: str
    num_parameters: int
    method: str
    mbit: int | None
    num_steps: int
    seconds: float
    slowest_seconds: float
    sent_bytes: float
    received_bytes: float

    @property
    def wire_seconds(self) -> float | None:
        """The least seconds of a step that these bytes need at this rate; None without a bound."""
        if self.mbit is None:
            return None
        return max(self.sent_bytes, self.received_bytes) * 8 / (self.mbit * MEGABIT)


@dataclass(frozen=True, slots=True)
class Curve:
    """Loss on held-out text by steps, trained once without a bound. The first point is step 0."""

    model: str
    method: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that was found, in the order in which it was measured."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    def rows_of(self, model: str, mbit: int | None) -> list[Row]:
        """Return the rows of one model at one rate, one for each method."""
        return [row for row in self.rows if (row.model, row.mbit) == (model, mbit)]

    def curve_of(self, row: Row) -> Curve:
        """Return the curve of a row's model and method."""
        return next(
            one for one in self.curves if (one.model, one.method) == (row.model, row.method)
        )

    def common_loss(self, model: str) -> float:
        """Return the lowest loss that every method reached with this model."""
        found = [min(loss for _, loss in one.points) for one in self.curves if one.model == model]
        return max(found)


def composed(points: Iterable[tuple[int, float]], seconds: float) -> list[Point]:
    """Return loss against time: the loss of each step, at step times `seconds` a step.

    Nobody measured these pairs: losses and seconds come from two different runs.
    """
    return [(step * seconds, loss) for step, loss in points]


def steps_to(points: Sequence[tuple[int, float]], loss: float) -> float | None:
    """Return after how many steps a curve is first down at a loss, None where it never is.

    Between two points the curve is taken to be straight.
    """
    before: tuple[int, float] | None = None
    for step, found in points:
        if found <= loss:
            if before is None or before[1] <= found:
                return float(step)
            share = (before[1] - loss) / (before[1] - found)
            return before[0] + share * (step - before[0])
        before = (step, found)
    return None
