"""Measurements on all tiles of a model, drawn or not, and the bounds that follow.

Owns: the floor of small gradients, the floor of what is sent, the agreement of votes, the distance
of whole gradients; `gradient_floor`, `sent_floor`, `agreement_bound` and `sketch_factor`.
Never: draws tiles, or judges. Next: `tails.py` for drawn tiles, `thresholds.py` for the medians.

One measurement is one trainer's gradient before one witness of another kind. It needs no draw, so a
round has one for each pair of ways, however often tiles are drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from troth_attestation.agreement import groups, least_mean, scores_of
from troth_attestation.measure import Float64, JudgeRule, Yardstick, norms_of
from troth_attestation.signs import Signs
from troth_client.calibration.tails import HEADROOM
from troth_coordinator.rules.config import LEAST_AGREEMENT_AUDITS, MICRO, JudgeSection

Int64 = npt.NDArray[np.int64]

FLOORS = (1_000, 3_000, 10_000, 30_000, 100_000)
"""The gradient floors that may be proposed, in micro of the median norm."""
LEAST_SMALL = 1_000
"""Below so many tiles with a small gradient, nothing is known about them: the default stays."""
LOG2_FLOORS = np.arange(20, JudgeSection().sent_floor_log2 + 1)
"""The floors of what is sent that may be proposed: from 2^-20 down to the default."""
CLOSE_DISTANCE, CLOSE_FACTOR = 0.01, 600
"""Sketches may differ by 4 % only where honest gradients differ by at most 1 %."""
USUAL_FACTOR, LEAST_FACTOR = 100, 25


@dataclass(slots=True)
class Whole:
    """The worst of all pairs of one kind of trainer.

    `distance` is ||g1 - g2|| / max(||g1||, ||g2||), which two sketches estimate. `small_errors` are
    the largest errors of tiles below a tenth of the median norm, one for each of `FLOORS`,
    `num_small` counts those below the default floor. `strays` counts, for each of `LOG2_FLOORS`,
    tiles that one way would send and another finds without gradient. `agreements` are those of each
    pair, fp64 [len(FLOORS)], NaN where too few tiles count. `least_share` is the smallest share of
    tiles that have a gradient.
    """

    distance: float = 0.0
    least_share: float = 1.0
    num_small: int = 0
    small_errors: Float64 = field(default_factory=lambda: np.zeros(len(FLOORS)))
    strays: Int64 = field(default_factory=lambda: np.zeros(len(LOG2_FLOORS), np.int64))
    agreements: list[Float64] = field(default_factory=list)

    def add(self, made: Yardstick, witness: Yardstick) -> None:
        """Compare an honest trainer's gradient with that of a witness."""
        apart = norms_of((made.tiles - witness.tiles).reshape(len(made.tiles), -1))
        norms, median = witness.scale.norms, witness.scale.median
        larger = max(float(np.linalg.norm(n)) for n in (made.scale.norms, norms))
        self.distance = max(self.distance, float(np.linalg.norm(apart)) / larger)
        self.least_share = min(self.least_share, float((norms > 0).mean()))
        small = (norms < FLOORS[-1] / MICRO * median) & ((norms > 0) | (made.scale.norms > 0))
        usual = JudgeSection().gradient_floor_micro / MICRO
        self.num_small += int((small & (norms < usual * median)).sum())
        for place, floor in enumerate(FLOORS):
            errors = apart[small] / np.maximum(norms[small], floor / MICRO * median)
            self.small_errors[place] = max(self.small_errors[place], errors.max(initial=0.0))
        self.strays += _strays(made.scale.largest, witness.scale.largest)

    def add_votes(self, sent: Signs, witness: Yardstick, rule: JudgeRule) -> None:
        """Measure the agreement of a payload with a witness's gradient, above each floor."""
        cut, scores = groups(rule.tensor_tiles), scores_of(sent, witness.tiles)
        found = np.full(len(FLOORS), np.nan)
        for place, floor in enumerate(FLOORS):
            counted = witness.scale.norms >= floor / MICRO * witness.scale.median
            least = least_mean(cut, scores, sent.present & counted)
            found[place] = np.nan if least is None else least
        self.agreements.append(found)

    @classmethod
    def of(cls, several: Sequence["Whole"]) -> "Whole":
        """Return the worst of several kinds of trainers."""
        return cls(
            distance=max(one.distance for one in several),
            least_share=min(one.least_share for one in several),
            num_small=sum(one.num_small for one in several),
            small_errors=np.max([one.small_errors for one in several], axis=0),
            strays=np.sum([one.strays for one in several], axis=0),
            agreements=[values for one in several for values in one.agreements],
        )

    def votes_above(self, floor_micro: int) -> Float64:
        """Return the agreement of each pair, above the largest of `FLOORS` up to this one."""
        place = max([0, *(n for n, floor in enumerate(FLOORS) if floor <= floor_micro)])
        found: Float64 = np.array([one[place] for one in self.agreements])
        return found[~np.isnan(found)]


def whole_bounds(whole: Whole, tile_bound_micro: int) -> dict[str, int]:
    """Return gradient_floor, sent_floor, agreement_bound and the number of audits behind it.

    A tile below the proposed gradient floor differs by at most half of `tile_bound_micro`. Where
    every floor of what is sent has strays there is no bound: empty.
    """
    clean = LOG2_FLOORS[whole.strays == 0]
    if not len(clean):
        return {}
    floor = _gradient_floor(whole, tile_bound_micro / MICRO / 2)
    votes = whole.votes_above(floor)
    return {
        "gradient_floor_micro": floor,
        "sent_floor_log2": int(clean[-1]),
        "agreement_bound_micro": agreement_bound(votes),
        "agreement_audits": len(votes),
    }


def agreement_bound(votes: Float64) -> int:
    """Return a bound that no honest audit comes near, in micro; 0 while too few were measured.

    Without a false alarm in 2995 audits, the upper 95 % bound of their rate is below 1 in 1000.
    """
    if len(votes) < LEAST_AGREEMENT_AUDITS or votes.min() <= 0:
        return 0
    return math.floor(float(votes.min()) / HEADROOM * 1_000) * 1_000


def sketch_factor(distance: float) -> int | None:
    """Return the `sketch_factor` for honest gradients that lie so far apart; None beyond 13 %.

    Sketches of 64 numbers estimate a distance; it must lie below the bound by the headroom.
    """
    if distance <= CLOSE_DISTANCE:
        return CLOSE_FACTOR
    found = min(USUAL_FACTOR, math.floor((HEADROOM * distance) ** -2))
    return found if found >= LEAST_FACTOR else None


def _gradient_floor(whole: Whole, limit: float) -> int:
    usual = JudgeSection().gradient_floor_micro
    if whole.num_small < LEAST_SMALL:
        return usual
    enough = [floor for floor, e in zip(FLOORS, whole.small_errors, strict=True) if e <= limit]
    return min(enough, default=FLOORS[-1])


def _strays(made: Float64, witness: Float64) -> Int64:
    """Count tiles that are sent above each floor, and lie far below it for the witness.

    A trainer sends a move of 2^-floor; rounding lifts a gradient by less than a factor of two.
    """
    is_sent = made[:, None] >= 2.0 ** -(LOG2_FLOORS + 1)
    is_idle = witness[:, None] < 2.0 ** -(LOG2_FLOORS + 2)
    found: Int64 = (is_sent & is_idle).sum(axis=0)
    return found
