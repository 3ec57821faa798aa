"""The bounds that calibration proposes: of the median here, and all of them together.

Owns: the rule that proposes `ok_bound` and `mismatch_bound`, or finds that no pair of bounds fits;
the obstacles that no bound removes, in words.
Never: measures. Next: `tails.py` and `whole_model.py` for the other bounds.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from troth_attestation.verdict import Reason
from troth_client.calibration.comparison import Group
from troth_client.calibration.tails import (
    CLEARANCE,
    HONEST_PERCENT,
    Tails,
    not_cleared,
    percentile,
    tile_bounds,
)
from troth_client.calibration.whole_model import Whole, whole_bounds
from troth_coordinator.rules.config import APART, MICRO, JudgeSection

MEDIAN_HEADROOM = 5
"""The accept bound lies so far above the honest percentile: other machines are noisier."""
CHEAT_SHARE = 3
"""The accept bound is at most this part of the mildest cheat."""
MOST_EMPTY_DRAWS = 1e-3
"""How often a draw may miss all tiles with a gradient: such an audit is unpaid by luck."""
CAUGHT_SHARE = 0.75
"""The mismatch bound lies at this share of the mildest cheat, so that a lucky draw is caught."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The bounds that the measurements allow.

    `honest` is the 99.9th percentile of the honest medians, `worst_honest` the largest, `mildest`
    the 0.1th percentile of the cheat named `mildest_cheat`; None where nothing could be measured.
    The bounds are None where honest work and the mildest cheat do not separate.
    """

    honest: float | None = None
    worst_honest: float | None = None
    mildest: float | None = None
    mildest_cheat: str = ""
    ok_bound_micro: int | None = None
    mismatch_bound_micro: int | None = None

    @property
    def separates(self) -> bool:
        """Whether there are bounds that accept all honest work and never the mildest cheat."""
        return self.ok_bound_micro is not None


@dataclass(frozen=True, slots=True)
class Bounds:
    """All bounds of the judge by their keys, or the reason why there are none."""

    values: Mapping[str, int]
    refusal: str = ""


def propose_for(groups: Sequence[Group]) -> Proposal:
    """Propose bounds from what calibration measured; none where honest work or a cheat was not."""
    honest = [median for group in groups if group.is_honest for median in group.medians]
    cheats = {group.name: group.medians for group in groups if not group.is_honest}
    is_measured = honest and cheats and all(cheats.values())
    return propose(honest, cheats) if is_measured else Proposal()


def in_the_way(groups: Sequence[Group], judge: JudgeSection, sketch_factor: int) -> list[str]:
    """Return the other bounds that honest work went beyond; empty for a sound config.

    No pair of bounds helps then: a few tiles far off, or a large residual, decide by themselves.
    In bf16 the tiles of queries and keys are far off once attention no longer matters: the rest of
    their gradient is noise. A residual is large where the gradient has become small. Where honest
    gradients lie far apart, sketches contradict honest seats.
    """
    honest = [group for group in groups if group.is_honest]
    far = max(group.most_bad_tiles for group in honest)
    residual = max(group.highest_residual for group in honest)
    found = list(_unjudged(honest))
    if far > judge.ok_tiles:
        found.append(f"{far} tiles far off, judge.ok_tiles = {judge.ok_tiles}")
    if residual * MICRO > judge.residual_bound_micro:
        bound = f"judge.residual_bound_micro = {judge.residual_bound_micro}"
        found.append(f"a residual of {residual:.1f} x gradient, {bound}")
    together = Tails.of([group.tails for group in honest])
    median = max((one for group in honest for one in group.medians), default=0.0)
    if median * MICRO > judge.ok_bound_micro:
        bound = f"judge.ok_bound_micro = {judge.ok_bound_micro}"
        found.append(f"a median error of {median:.4f}, {bound}: such work is unpaid")
    found += not_cleared(together, residual, judge)
    whole = Whole.of([group.whole for group in honest])
    return found + list(_whole_model(whole, judge, sketch_factor))


def _unjudged(honest: Sequence[Group]) -> Iterator[str]:
    """Yield why audits of honest work could not be judged at all."""
    together: Counter[Reason] = sum((group.unjudged for group in honest), Counter())
    total = sum(group.verdicts.total() for group in honest)
    for reason, number in together.items():
        yield f"what can be judged: {number} of {total} audits, {reason.value}"


def _whole_model(whole: Whole, judge: JudgeSection, sketch_factor: int) -> Iterator[str]:
    misses = (1 - whole.least_share) ** judge.openings_tiles
    if misses > MOST_EMPTY_DRAWS:
        yield f"one empty draw in 1000: {misses:.4f}, judge.openings_tiles"
    votes = whole.votes_above(judge.gradient_floor_micro)
    least = float(votes.min()) if len(votes) else math.inf
    if least * MICRO < judge.agreement_bound_micro:
        bound = f"judge.agreement_bound_micro = {judge.agreement_bound_micro}"
        yield f"the agreement of votes: {least:.3f}, {bound}"
    most = sketch_factor**-0.5
    if whole.distance > most:
        yield (
            f"gradients that differ by {whole.distance:.3f}, sketches by {most:.3f} at most "
            f"(sketch_factor = {sketch_factor})"
        )


def propose_all(groups: Sequence[Group], proposal: Proposal) -> Bounds:
    """Return every bound of the judge that the measurements allow, or why they allow none."""
    ok, mismatch = proposal.ok_bound_micro, proposal.mismatch_bound_micro
    if proposal.honest is None:
        return Bounds({}, "nothing could be measured")
    if ok is None or mismatch is None:
        return Bounds({}, "honest work and the mildest cheat do not separate")
    honest = [group for group in groups if group.is_honest]
    residual = max(group.highest_residual for group in honest)
    tails = Tails.of([group.tails for group in honest])
    tiles = tile_bounds(tails, residual, ok)
    whole = whole_bounds(Whole.of([group.whole for group in honest]), tiles["tile_bound_micro"])
    refusals = {
        "the mildest cheat leaves no room between the two bounds": (
            APART[1] * mismatch < APART[0] * ok
        ),
        "honest work comes within a factor of three of the mildest cheat": (
            CLEARANCE * tails.median * MICRO > mismatch
        ),
        "single tiles of honest work lie beyond every bound": max(tiles.values()) > 1_000 * MICRO,
        "honest ways do not agree which tiles have a gradient": not whole,
    }
    for refusal, holds in refusals.items():
        if holds:
            return Bounds({}, refusal)
    return Bounds({"ok_bound_micro": ok, "mismatch_bound_micro": mismatch, **tiles, **whole})


def propose(honest: Sequence[float], cheats: Mapping[str, Sequence[float]]) -> Proposal:
    """Propose bounds from medians of audits: of honest work, and of each cheat by name.

    accept = 5 x the 99.9th percentile of honest, never above a third of the mildest cheat. Where
    that would refuse honest work which was measured, there is no proposal. Both must not be empty.
    """
    typical, worst = percentile(honest, HONEST_PERCENT), max(honest)
    lowest = {name: percentile(found, 100 - HONEST_PERCENT) for name, found in cheats.items()}
    name = min(lowest, key=lambda cheat: lowest[cheat])
    mildest = lowest[name]
    ok = round(min(MEDIAN_HEADROOM * typical, mildest / CHEAT_SHARE) * MICRO)
    mismatch = round(CAUGHT_SHARE * mildest * MICRO)
    if not worst * MICRO <= ok < mismatch:
        return Proposal(typical, worst, mildest, name, None, None)
    return Proposal(typical, worst, mildest, name, ok, mismatch)
