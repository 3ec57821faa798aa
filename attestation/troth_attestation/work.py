"""The judgement of work: three tests of the opened tiles (protocol section 7).

Owns: three tests and their order: the exact test of the payload against the opened u, the bound on
the residual, the tolerant test of the implied gradient.
Never: computes a gradient (the witness brings its own), fetches, or decides a penalty.
Next: `verdict.py` for the words, `sketch.py` for the proof that a witness computed at all.

The tests compare gradients, not payloads. A free-rider reproduces most of an honest top-k from old
momentum, but its implied gradient u - beta * M is off by 100 %. Arithmetic of norms is fp64.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from troth_attestation import openings as opened
from troth_attestation.errors import (
    OpeningError,
    OpeningFieldError,
    OpeningLengthError,
    OpeningNotFiniteError,
    OpeningPathError,
    OpeningRootError,
    OpeningTileError,
    TensorError,
)
from troth_attestation.openings import Openings, Sampled
from troth_attestation.selection import after_included, decayed, flush, is_sent, top_k
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_attestation.state import Float32
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_coordinator.rules.config import MICRO, DemoSection, JudgeSection

Float64 = npt.NDArray[np.float64]

OPENING_REASONS: dict[type[OpeningError], Reason] = {
    OpeningFieldError: Reason.OPENINGS_FIELD,
    OpeningLengthError: Reason.OPENINGS_LENGTH,
    OpeningTileError: Reason.OPENINGS_TILE,
    OpeningPathError: Reason.OPENINGS_PATH,
    OpeningRootError: Reason.OPENINGS_ROOT,
    OpeningNotFiniteError: Reason.NOT_FINITE,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """The part of the hashed config that the judge reads."""

    demo: DemoSection
    judge: JudgeSection


@dataclass(frozen=True, slots=True)
class Distances:
    """The measurements of residual and gradient over the drawn tiles.

    `has_gradient` is false if every ||g|| is 0.
    """

    has_gradient: bool
    residual_ratio: float = 0.0
    median_error: float = 0.0
    num_bad_tiles: int = 0


def judge(
    data: bytes | None,
    sampled: Sampled,
    recorded_root: bytes,
    signs: Signs | None,
    gradient: Float32,
    rule: Rule,
) -> Verdict:
    """Judge one sampled payload from the bytes served for it.

    `data`: the opening set, None if nobody served it. `recorded_root`: the openings root on chain.
    `signs`: None if the included payload is malformed. `gradient`: the witness's own D(g) after its
    own clip, fp32 [T, 64, 64]. Raises TensorError if the gradient is not usable: that is the
    witness's fault.
    """
    if data is None:
        return Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)
    try:
        opened.check_root(data, recorded_root)
        shown = opened.decode(data, sampled)
    except OpeningError as error:
        has_lied = isinstance(error, OpeningNotFiniteError)
        kind = VerdictKind.MISMATCH if has_lied else VerdictKind.UNAVAILABLE
        return Verdict(kind, OPENING_REASONS[type(error)], detail=str(error))
    return judge_openings(shown, signs, gradient, rule)


def judge_openings(shown: Openings, signs: Signs | None, gradient: Float32, rule: Rule) -> Verdict:
    """Judge opened tiles that are already proven to be the trainer's; arguments as in `judge`."""
    if signs is None:
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED)
    wrong = first_tile_not_top_k(shown, signs, rule)
    if wrong is not None:
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_NOT_TOP_K, tile=wrong)
    own = _own_tiles(gradient, shown.tiles)
    return decide(measure(shown, own, rule), rule.judge)


def first_tile_not_top_k(shown: Openings, signs: Signs, rule: Rule) -> int | None:
    """Return the first opened tile where the payload is not what u says, or None.

    Presence, places and signs follow from u and the u before (`selection.py`). A payload of another
    shape differs from the first opened tile on.
    """
    u, without = flush(shown.after), decayed(residual_before(shown, rule.demo), rule.demo)
    sent = is_sent(u, without, rule.judge.sent_floor_log2)
    chosen = top_k(u, rule.demo.k).signs(sent)
    for row, tile in enumerate(shown.tiles):
        if tile >= len(signs.present) or signs.indices.shape[1:] != (rule.demo.k,):
            return tile
        is_equal = (
            bool(signs.present[tile] == chosen.present[row])
            and np.array_equal(signs.indices[tile], chosen.indices[row])
            and np.array_equal(signs.negative[tile], chosen.negative[row])
        )
        if not is_equal:
            return tile
    return None


def residual_before(shown: Openings, demo: DemoSection) -> Float32:
    """Return M before the round on the opened tiles, from u of the round before, fp32 [n, 4096]."""
    return after_included(flush(shown.before), demo)


def measure(shown: Openings, own: Float64, rule: Rule) -> Distances:
    """Measure residual and implied gradient in fp64.

    `own` is the witness's D(g), fp64 [n, 4096], on the tiles.
    """
    size = np.linalg.norm(own, axis=1)
    has_gradient = size > 0
    if not has_gradient.any():
        return Distances(has_gradient=False)
    floor = rule.judge.gradient_floor_micro / MICRO * np.median(size[has_gradient])
    scale = np.maximum(size, floor)
    residual = residual_before(shown, rule.demo)
    ratio = (np.linalg.norm(residual.astype(np.float64), axis=1) / scale)[has_gradient]
    without = decayed(residual, rule.demo).astype(np.float64)
    implied = flush(shown.after).astype(np.float64) - without
    error = np.linalg.norm(implied - own, axis=1) / scale
    return Distances(
        True,
        float(np.median(ratio)),
        float(np.median(error)),
        int(np.count_nonzero(error > rule.judge.tile_bound_micro / MICRO)),
    )


def decide(found: Distances, bounds: JudgeSection) -> Verdict:
    """Turn measurements into a verdict: zero gradient, then the residual, then the gradient.

    Beyond the residual bound, work that agrees is inconclusive. Honest gradients may shrink from
    one round to the next; the older residual is then large beside them (docs/decisions/0012).
    """
    if not found.has_gradient:
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.ZERO_GRADIENT)
    kind, reason = VerdictKind.INCONCLUSIVE, Reason.BETWEEN_BOUNDS
    median, bad = found.median_error, found.num_bad_tiles
    if found.residual_ratio > bounds.residual_mismatch_micro / MICRO:
        kind, reason = VerdictKind.MISMATCH, Reason.RESIDUAL_TOO_LARGE
    elif median >= bounds.mismatch_bound_micro / MICRO or bad >= bounds.mismatch_tiles:
        kind, reason = VerdictKind.MISMATCH, Reason.WORK_DIFFERS
    elif found.residual_ratio > bounds.residual_bound_micro / MICRO:
        reason = Reason.RESIDUAL_UNUSUAL
    elif median <= bounds.ok_bound_micro / MICRO and bad <= bounds.ok_tiles:
        kind, reason = VerdictKind.OK, Reason.WORK_MATCHES
    return Verdict(kind, reason, median, bad, found.residual_ratio)


def _own_tiles(gradient: Float32, tiles: tuple[int, ...]) -> Float64:
    if gradient.shape[1:] != (TILE_SIDE, TILE_SIDE) or len(gradient) <= tiles[-1]:
        raise TensorError(
            "own gradient",
            f"[tiles, 64, 64] with at least {tiles[-1] + 1} tiles",
            list(gradient.shape),
            "transform the whole gradient",
        )
    own = gradient[list(tiles)].reshape(len(tiles), -1).astype(np.float64)
    if not np.isfinite(own).all():
        raise TensorError(
            "own gradient", "finite values", "NaN or infinity", "recompute before judging"
        )
    return own
