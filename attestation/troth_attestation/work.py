"""The judgement of work: the tests of the opened tiles and of the payload (protocol section 7).

Owns: the order of the tests, their reasons, and which of several findings is the verdict.
Never: computes a gradient (the witness brings its own), fetches, or decides a penalty.
Next: `measure.py` for the measured numbers, `verdict.py` for the words, `sketch.py` for the proof
that a witness computed at all.

The tests compare gradients, not payloads. A free-rider reproduces most of an honest top-k from old
momentum, but its implied gradient u - beta * M is off by 100 %. No knife edges: honest judges whose
numerics differ may find ok and inconclusive, or inconclusive and mismatch, never ok and mismatch.
"""

from collections.abc import Iterator, Sequence

import numpy as np

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
from troth_attestation.measure import (
    Again,
    Distances,
    Float64,
    JudgeRule,
    Measure,
    Own,
    Shown,
    Tiles,
    measure,
    measure_of,
    with_second,
)
from troth_attestation.openings import Openings, Sampled
from troth_attestation.selection import is_sent, top_k, votes
from troth_attestation.signs import Signs
from troth_attestation.sizes import TILE_SIDE
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_coordinator.rules.config import MICRO, NUM_FAR, JudgeSection

Finding = tuple[VerdictKind, Reason]

OPENING_REASONS: dict[type[OpeningError], Reason] = {
    OpeningFieldError: Reason.OPENINGS_FIELD,
    OpeningLengthError: Reason.OPENINGS_LENGTH,
    OpeningTileError: Reason.OPENINGS_TILE,
    OpeningPathError: Reason.OPENINGS_PATH,
    OpeningRootError: Reason.OPENINGS_ROOT,
    OpeningNotFiniteError: Reason.NOT_FINITE,
}


TILES_TOGETHER = 32
"""So many opened tiles stay in a processor's cache while their exact tests are made."""


def judge(
    data: bytes | None,
    sampled: Sampled,
    recorded_root: bytes,
    signs: Signs | None,
    own: Own,
    rule: JudgeRule,
) -> Verdict:
    """Judge one sampled payload from the bytes served for it.

    `data`: the opening set, None if nobody served it. `recorded_root`: the openings root on chain.
    `signs`: None if the included payload is malformed. `own`: the witness's own gradient. Raises
    TensorError if that has another shape: then the witness itself is at fault.
    """
    if data is None:
        return Verdict(VerdictKind.UNAVAILABLE, Reason.NOT_SERVED)
    shown = _read(data, sampled, recorded_root)
    if isinstance(shown, Verdict):
        return shown
    if signs is None or signs.num_tiles != sampled.num_tiles:
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED)
    return judge_openings(shown, signs, own, rule)


def judge_exactly(
    data: bytes, sampled: Sampled, signs: Signs | None, rule: JudgeRule
) -> Verdict | None:
    """Return the verdict that follows whatever the gradient is; None where that decides.

    `data`: bytes that have the openings root on chain. `judge` finds the same.
    """
    shown = _read(data, sampled, None)
    if isinstance(shown, Verdict):
        return shown
    if signs is None or signs.num_tiles != sampled.num_tiles:
        return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_MALFORMED)
    for part in shown.parts(TILES_TOGETHER):
        chosen = votes(part.after, part.before, rule.demo, rule.judge.sent_floor_log2)
        verdict = _not_top_k(_first_other(part.tiles, chosen, signs))
        if verdict is not None:
            return verdict
    return None


def _read(data: bytes, sampled: Sampled, recorded_root: bytes | None) -> Openings | Verdict:
    try:
        if recorded_root is not None:
            opened.check_root(data, recorded_root)
        return opened.decode(data, sampled)
    except OpeningError as error:
        has_lied = isinstance(error, OpeningNotFiniteError)
        kind = VerdictKind.MISMATCH if has_lied else VerdictKind.UNAVAILABLE
        return Verdict(kind, OPENING_REASONS[type(error)], detail=str(error))


def _not_top_k(tile: int | None) -> Verdict | None:
    if tile is None:
        return None
    return Verdict(VerdictKind.MISMATCH, Reason.PAYLOAD_NOT_TOP_K, tile=tile)


def judge_openings(shown: Openings, signs: Signs, own: Own, rule: JudgeRule) -> Verdict:
    """Judge opened tiles that are already proven to be the trainer's; arguments as in `judge`."""
    about = Shown.of(shown, rule.demo)
    wrong = _not_top_k(first_tile_not_top_k(about, signs, rule))
    if wrong is not None:
        return wrong
    yardstick = yardstick_of(own, signs.num_tiles)
    if isinstance(yardstick, Reason):
        return Verdict(VerdictKind.INCONCLUSIVE, yardstick)
    found = measure(about, yardstick, signs, rule)
    return conclude(found, about, (yardstick, own.again), signs, rule)


def yardstick_of(own: Own, num_tiles: int) -> Measure | Reason:
    """Return what a judge measures with, or the reason why it cannot judge anybody.

    Nothing is measured against a gradient that is not finite, or zero everywhere: the distances
    would be NaN, and a NaN is beyond no bound. Raises TensorError for another model's gradient.
    """
    if own.tiles is None:
        return Reason.OWN_NOT_FINITE
    found = measure_of(_checked(own.tiles, num_tiles))
    if not found.scale.is_finite:
        return Reason.OWN_NOT_FINITE
    return found if found.scale.median > 0 else Reason.ZERO_GRADIENT


def conclude(
    found: Distances, shown: Shown, judge: tuple[Measure, Again], signs: Signs, rule: JudgeRule
) -> Verdict:
    """Return the verdict on measured distances, after a second computation where one may help.

    It is made only if the verdict is not ok, and might be milder with it. Work that passes all
    tests against either computation is honest. `judge` is what measured, and what computes again.
    """
    bounds = rule.judge
    sure = bounds.tile_mismatch_micro / MICRO
    verdict = decide(found, bounds)
    if verdict.kind == decide(found.at_best(sure), bounds).kind:
        return verdict
    own, again = judge
    second = yardstick_of(Own(again()), signs.num_tiles)
    if isinstance(second, Reason):
        return decide(found.excused(sure), bounds)
    other = decide(measure(shown, second, signs, rule), bounds)
    if other.kind == VerdictKind.OK:
        return other
    return decide(with_second(found, shown, (own, second), signs, rule), bounds)


def first_tile_not_top_k(shown: Shown, signs: Signs, rule: JudgeRule) -> int | None:
    """Return the first opened tile where the payload is not what u says, or None.

    Presence, places and signs follow from u and the u before (`selection.py`). A payload with
    another k differs from the first opened tile on.
    """
    sent = is_sent(shown.u, shown.without, rule.judge.sent_floor_log2)
    chosen = top_k(shown.u, rule.demo.k).signs(sent)
    return _first_other(shown.tiles, chosen, signs)


def _first_other(tiles: Sequence[int], chosen: Signs, signs: Signs) -> int | None:
    """Return the first of these tiles where signs of all tiles are not what was chosen of them."""
    if signs.k != chosen.k:
        return tiles[0]
    own = list(tiles)
    is_other = (
        (signs.present[own] != chosen.present)
        | (signs.indices[own] != chosen.indices).any(axis=1)
        | (signs.negative[own] != chosen.negative).any(axis=1)
    )
    return own[int(is_other.argmax())] if is_other.any() else None


def decide(found: Distances, bounds: JudgeSection) -> Verdict:
    """Turn measurements into a verdict: the worst finding, and of equal ones the first.

    The order is the residual's median, its tiles, votes without gradient, the gradient's median
    and tiles as a mismatch, single tiles, these two as a doubt, the agreement of all votes.
    """
    kind, reason = VerdictKind.OK, Reason.WORK_MATCHES
    for one, why in _findings(found, bounds):
        if one == VerdictKind.MISMATCH:
            kind, reason = one, why
            break
        if kind == VerdictKind.OK:
            kind, reason = one, why
    far = _count(found.errors, bounds.tile_bound_micro)
    return Verdict(kind, reason, found.median_error, far, found.residual_ratio)


def _findings(found: Distances, bounds: JudgeSection) -> Iterator[Finding]:
    yield from _residual(found, bounds)
    few = min(NUM_FAR, found.num_drawn)
    yield from _either(
        found.num_surely_idle >= NUM_FAR, found.num_idle > 0, Reason.VOTES_WITHOUT_GRADIENT
    )
    if not found.has_gradient:
        yield VerdictKind.INCONCLUSIVE, Reason.ZERO_GRADIENT
    counted = found.counted
    most = min(bounds.mismatch_tiles, found.num_drawn)
    yield from _either(
        found.counted_median >= bounds.mismatch_bound_micro / MICRO
        or _count(counted, bounds.tile_mismatch_bound_micro) >= most,
        False,
        Reason.WORK_DIFFERS,
    )
    yield from _either(
        _count(counted, bounds.tile_forged_micro) > 0
        or _count(counted, bounds.tile_mismatch_micro) >= few,
        _count(found.errors, bounds.tile_mismatch_micro) > 0,
        Reason.TILES_FORGED,
    )
    yield from _either(
        False,
        found.median_error > bounds.ok_bound_micro / MICRO
        or _count(found.errors, bounds.tile_bound_micro) > bounds.ok_tiles,
        Reason.BETWEEN_BOUNDS,
    )
    if found.agreement is not None and found.agreement < bounds.agreement_bound_micro / MICRO:
        yield VerdictKind.INCONCLUSIVE, Reason.VOTES_DISAGREE


def _residual(found: Distances, bounds: JudgeSection) -> Iterator[Finding]:
    """Honest gradients may shrink from one round to the next; M is then large beside them."""
    limit = bounds.residual_mismatch_micro / MICRO
    if found.residual_ratio > limit:
        yield VerdictKind.MISMATCH, Reason.RESIDUAL_TOO_LARGE
    if found.residual_ratio > bounds.residual_bound_micro / MICRO:
        yield VerdictKind.INCONCLUSIVE, Reason.RESIDUAL_UNUSUAL
    beyond = _count(found.residual_ratios, bounds.residual_mismatch_micro)
    unusual = _count(found.residual_ratios, bounds.residual_tile_ok_micro)
    yield from _either(
        beyond >= min(NUM_FAR, found.num_drawn),
        beyond > 0 or unusual > bounds.ok_tiles,
        Reason.RESIDUAL_OF_TILES,
    )


def _either(is_mismatch: bool, is_doubtful: bool, reason: Reason) -> Iterator[Finding]:
    if is_mismatch:
        yield VerdictKind.MISMATCH, reason
    elif is_doubtful:
        yield VerdictKind.INCONCLUSIVE, reason


def _count(values: Float64, bound_micro: int) -> int:
    return int(np.count_nonzero(values > bound_micro / MICRO))


def _checked(gradient: Tiles, num_tiles: int) -> Tiles:
    if gradient.shape != (num_tiles, TILE_SIDE, TILE_SIDE):
        raise TensorError(
            "own gradient",
            f"[{num_tiles}, 64, 64]",
            list(gradient.shape),
            "transform the whole gradient",
        )
    return gradient
