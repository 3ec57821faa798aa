"""The two bounds of the gradient test, derived from measurements of honest work and of cheats.

Owns: the percentiles; the rule that proposes `ok_bound` and `mismatch_bound`, or finds that no pair
of bounds fits; and the other bounds that honest work went beyond.
Never: measures. Next: `calibrate.py`, which does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from troth_attestation.sketch import DEFAULT_FACTOR
from troth_client.audit.calibrate import Group
from troth_client.audit.tails import CLEARANCE, Tails, not_cleared, tile_bounds
from troth_coordinator.rules.config import MICRO, JudgeSection

HONEST_PERCENT = 99.9
HEADROOM = 5
"""The accept bound lies so far above the honest percentile: other machines are noisier."""
CHEAT_SHARE = 3
"""The accept bound is at most this part of the mildest cheat."""
SKETCH_BOUND = DEFAULT_FACTOR**-0.5
CAUGHT_SHARE = 0.75
"""The mismatch bound lies at this share of the mildest cheat, so that a lucky draw is caught."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The bounds that the measurements allow.

    `honest` is the 99.9th percentile of the honest medians, `worst_honest` the largest, `mildest`
    the 0.1th percentile of the cheat named `mildest_cheat`. The bounds are None where honest work
    and the mildest cheat do not separate.
    """

    honest: float
    worst_honest: float
    mildest: float
    mildest_cheat: str
    ok_bound_micro: int | None
    mismatch_bound_micro: int | None

    @property
    def separates(self) -> bool:
        """Whether there are bounds that accept all honest work and never the mildest cheat."""
        return self.ok_bound_micro is not None


def propose_for(groups: Sequence[Group]) -> Proposal:
    """Propose bounds from what calibration measured."""
    honest = [median for group in groups if group.is_honest for median in group.medians]
    return propose(honest, {group.name: group.medians for group in groups if not group.is_honest})


def in_the_way(groups: Sequence[Group], judge: JudgeSection) -> list[str]:
    """Return the other bounds that honest work went beyond; empty for a sound config.

    No pair of bounds helps then: a few tiles far off, or a large residual, decide by themselves.
    In bf16 the tiles of queries and keys are far off once attention no longer matters: the rest of
    their gradient is noise. A residual is large where the gradient has become small. Where honest
    gradients lie far apart, sketches contradict honest seats.
    """
    honest = [group for group in groups if group.is_honest]
    far = max(group.most_bad_tiles for group in honest)
    residual = max(group.highest_residual for group in honest)
    apart = max(group.highest_distance for group in honest)
    found = []
    if far > judge.ok_tiles:
        found.append(f"{far} tiles far off, judge.ok_tiles = {judge.ok_tiles}")
    if residual * MICRO > judge.residual_bound_micro:
        bound = f"judge.residual_bound_micro = {judge.residual_bound_micro}"
        found.append(f"a residual of {residual:.1f} x gradient, {bound}")
    together = Tails.of([group.tails for group in honest])
    median = max((one for group in honest for one in group.medians), default=0.0)
    found += not_cleared(together, median, residual, judge)
    if apart > SKETCH_BOUND:
        found.append(f"gradients that differ by {apart:.3f}, sketches by {SKETCH_BOUND} at most")
    return found


def propose_all(groups: Sequence[Group], proposal: Proposal) -> dict[str, int]:
    """Return every bound of the judge that the measurements allow; empty where they allow none."""
    ok, mismatch = proposal.ok_bound_micro, proposal.mismatch_bound_micro
    if ok is None or mismatch is None or 2 * mismatch < 3 * ok:
        return {}
    honest = [group for group in groups if group.is_honest]
    if CLEARANCE * proposal.worst_honest * MICRO > mismatch:
        return {}
    residual = max(group.highest_residual for group in honest)
    tiles = tile_bounds(Tails.of([group.tails for group in honest]), residual, ok)
    if max(tiles.values()) > 1_000 * MICRO:
        return {}
    return {"ok_bound_micro": ok, "mismatch_bound_micro": mismatch, **tiles}


def propose(honest: Sequence[float], cheats: Mapping[str, Sequence[float]]) -> Proposal:
    """Propose bounds from medians of audits: of honest work, and of each cheat by name.

    accept = 5 x the 99.9th percentile of honest, never above a third of the mildest cheat. Where
    that would refuse honest work which was measured, there is no proposal. Both must not be empty.
    """
    typical, worst = percentile(honest, HONEST_PERCENT), max(honest)
    lowest = {name: percentile(found, 100 - HONEST_PERCENT) for name, found in cheats.items()}
    name = min(lowest, key=lambda cheat: lowest[cheat])
    mildest = lowest[name]
    ok = round(min(HEADROOM * typical, mildest / CHEAT_SHARE) * MICRO)
    mismatch = round(CAUGHT_SHARE * mildest * MICRO)
    if not worst * MICRO <= ok < mismatch:
        return Proposal(typical, worst, mildest, name, None, None)
    return Proposal(typical, worst, mildest, name, ok, mismatch)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest sample value with at least this percentage of values at or below it.

    Nearest rank: with few values, the extremes stand for the tails.
    """
    ordered = sorted(values)
    # Integers: 99.9 % of 1000 must be rank 999 and not, by a rounding error, 1000.
    rank = -(-round(percent * 10) * len(ordered) // 1000)
    return ordered[max(rank, 1) - 1]
