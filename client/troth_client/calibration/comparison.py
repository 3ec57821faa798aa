"""Audits of one payload by honest judges of several kinds.

Owns: a seat with its own gradient, the audits of one kind of trainer, the verdicts on them.
Never: computes a gradient, draws, trains, or proposes a bound.
Next: `tails.py` and `whole_model.py`, which keep the numbers; `calibrate.py`, which brings them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from troth_attestation.measure import (
    Again,
    Distances,
    JudgeRule,
    Measure,
    Shown,
    Yardstick,
    measure,
    nothing,
    with_second,
)
from troth_attestation.signs import Signs
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_attestation.work import conclude
from troth_client.calibration.tails import Tails
from troth_client.calibration.whole_model import Whole


@dataclass(frozen=True, slots=True)
class Seat:
    """One honest way as a judge: what it measures with, or the reason why it cannot judge.

    `second` is its computation in the other precision, if there is one.
    """

    name: str
    yardstick: Measure | Reason
    second: Yardstick | None = None

    @property
    def again(self) -> Again:
        """Return what the judge asks for a second computation."""
        second = self.second
        return nothing if second is None else lambda: second.tiles


@dataclass(slots=True)
class Group:
    """The audits of one kind of trainer by all witnesses of another kind.

    `unjudged` counts the audits that nobody could judge, by reason: they have no distances.
    """

    name: str
    is_honest: bool
    medians: list[float] = field(default_factory=list)
    most_bad_tiles: int = 0
    highest_residual: float = 0.0
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)
    unjudged: Counter[Reason] = field(default_factory=Counter)
    tails: Tails = field(default_factory=Tails)
    whole: Whole = field(default_factory=Whole)

    def add(self, found: Distances, verdict: Verdict) -> None:
        """Count one audit; drawn tiles without gradient have a verdict but no distance."""
        self.verdicts[verdict.kind] += 1
        if found.has_gradient:
            self.medians.append(found.median_error)
            self.most_bad_tiles = max(self.most_bad_tiles, verdict.num_bad_tiles or 0)
            self.highest_residual = max(self.highest_residual, found.residual_ratio)

    def skip(self, reason: Reason) -> None:
        """Count an audit that could not be judged: such a verdict is inconclusive."""
        self.verdicts[VerdictKind.INCONCLUSIVE] += 1
        self.unjudged[reason] += 1

    def judge(self, about: Shown, sent: Signs, seats: Sequence[Seat], rule: JudgeRule) -> None:
        """Let every seat judge what a trainer shows, as a witness does, and keep its numbers."""
        for seat in seats:
            own = seat.yardstick
            if isinstance(own, Reason):
                self.skip(own)
                continue
            found = measure(about, own, sent, rule)
            self.add(found, conclude(found, about, (own, seat.again), sent, rule))
            if self.is_honest:
                counted = found
                if seat.second is not None:
                    counted = with_second(found, about, (own, seat.second), sent, rule)
                self.tails.add(found, counted, rule.judge)
