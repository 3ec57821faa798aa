"""From measured numbers to a verdict: every bound, the gaps between, the second computation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.judged_work import CONFIG, RULE, payload_of

from troth_attestation import measure, work
from troth_attestation.measure import Distances
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules.config import MICRO, JudgeSection

OK, MISMATCH, _, INCONCLUSIVE = VerdictKind
BOUNDS = JudgeSection()
N = 64


def distances(errors=(), ratios=(), n=N, **fields):
    """An honest audit of n drawn tiles but for what is given; the first tiles are far."""
    found = np.full(n, 0.001)
    found[: len(errors)] = errors
    beside = np.full(n, 2.0)
    beside[: len(ratios)] = ratios
    given_ = {"has_gradient": True, "residual_ratio": 2.0, "median_error": 0.001} | fields
    given_ |= {"counted_median": given_["median_error"]}
    return Distances(errors=found, counted=found, residual_ratios=beside, **given_)


def verdict(**given_):
    return work.decide(distances(**given_), BOUNDS)


@pytest.mark.parametrize(
    ("found", "kind", "reason"),
    [
        ({}, OK, Reason.WORK_MATCHES),
        ({"median_error": 0.03}, OK, Reason.WORK_MATCHES),
        ({"median_error": 0.0300001}, INCONCLUSIVE, Reason.BETWEEN_BOUNDS),
        ({"median_error": 0.0999999}, INCONCLUSIVE, Reason.BETWEEN_BOUNDS),
        ({"median_error": 0.1}, MISMATCH, Reason.WORK_DIFFERS),
        ({"errors": [0.13] * 2}, OK, Reason.WORK_MATCHES),
        ({"errors": [0.13] * 3}, INCONCLUSIVE, Reason.BETWEEN_BOUNDS),
        ({"errors": [0.17] * 20}, INCONCLUSIVE, Reason.BETWEEN_BOUNDS),
        ({"errors": [0.19] * 5}, INCONCLUSIVE, Reason.BETWEEN_BOUNDS),
        ({"errors": [0.19] * 6}, MISMATCH, Reason.WORK_DIFFERS),
        ({"errors": [0.5] * 2}, OK, Reason.WORK_MATCHES),
        ({"errors": [0.51]}, INCONCLUSIVE, Reason.TILES_FORGED),
        ({"errors": [0.51] * 2}, INCONCLUSIVE, Reason.TILES_FORGED),
        ({"errors": [0.51] * 3}, MISMATCH, Reason.TILES_FORGED),
        ({"errors": [3.0]}, INCONCLUSIVE, Reason.TILES_FORGED),
        ({"errors": [3.1]}, MISMATCH, Reason.TILES_FORGED),
        ({"residual_ratio": 20.0}, OK, Reason.WORK_MATCHES),
        ({"residual_ratio": 20.1}, INCONCLUSIVE, Reason.RESIDUAL_UNUSUAL),
        ({"residual_ratio": 200.0}, INCONCLUSIVE, Reason.RESIDUAL_UNUSUAL),
        ({"residual_ratio": 200.1}, MISMATCH, Reason.RESIDUAL_TOO_LARGE),
        ({"ratios": [199.0] * 2}, OK, Reason.WORK_MATCHES),
        ({"ratios": [61.0] * 3}, INCONCLUSIVE, Reason.RESIDUAL_OF_TILES),
        ({"ratios": [199.9] * 9}, INCONCLUSIVE, Reason.RESIDUAL_OF_TILES),
        ({"ratios": [201.0]}, INCONCLUSIVE, Reason.RESIDUAL_OF_TILES),
        ({"ratios": [201.0] * 3}, MISMATCH, Reason.RESIDUAL_OF_TILES),
        ({"num_idle": 1}, INCONCLUSIVE, Reason.VOTES_WITHOUT_GRADIENT),
        ({"num_idle": 9, "num_surely_idle": 2}, INCONCLUSIVE, Reason.VOTES_WITHOUT_GRADIENT),
        ({"num_idle": 3, "num_surely_idle": 3}, MISMATCH, Reason.VOTES_WITHOUT_GRADIENT),
        ({"has_gradient": False}, INCONCLUSIVE, Reason.ZERO_GRADIENT),
        # The worst finding decides, whatever was doubted before it.
        ({"residual_ratio": 21.0, "median_error": 0.1}, MISMATCH, Reason.WORK_DIFFERS),
        ({"num_idle": 1, "errors": [3.1]}, MISMATCH, Reason.TILES_FORGED),
        ({"median_error": 0.05, "num_idle": 1}, INCONCLUSIVE, Reason.VOTES_WITHOUT_GRADIENT),
    ],
)
def test_the_bounds_are_those_of_the_protocol(found, kind, reason):
    made = verdict(**found)
    assert made.kind == kind
    assert made.reason == reason


@pytest.mark.parametrize(
    ("n", "errors", "kind"),
    [
        (1, [0.51], MISMATCH),
        (1, [0.17], INCONCLUSIVE),
        (2, [0.51], INCONCLUSIVE),
        (2, [0.51] * 2, MISMATCH),
        (3, [0.51] * 2, INCONCLUSIVE),
        (3, [0.51] * 3, MISMATCH),
        (4, [0.19] * 3, INCONCLUSIVE),
        (4, [0.19] * 4, MISMATCH),
        (12, [0.19] * 5, INCONCLUSIVE),
        (12, [0.19] * 6, MISMATCH),
    ],
)
def test_models_of_a_few_tiles_are_judged_by_all_of_them(n, errors, kind):
    far = np.median(np.resize([*errors, *([0.001] * n)], n))
    assert verdict(n=n, errors=errors, median_error=min(float(far), 0.09)).kind == kind


# Two honest judges of one trainer see each number of the other times at most this.
NUMERICS = 1.2
NUMBERS = st.lists(st.floats(1e-4, 8.0), min_size=1, max_size=8)
RATIOS = st.lists(st.floats(0.1, 500.0), max_size=8)


@settings(max_examples=300)
@given(NUMBERS, RATIOS, st.floats(1e-4, 1), st.floats(0.1, 500), st.data())
def test_honest_judges_never_find_ok_and_mismatch(errors, ratios, median, residual, data):
    """Somebody who stands just inside a bound cannot make seats and jury contradict each other."""

    def other(value):
        return value * data.draw(st.floats(1 / NUMERICS, NUMERICS))

    first = verdict(errors=errors, ratios=ratios, median_error=median, residual_ratio=residual)
    second = verdict(
        errors=[other(value) for value in errors],
        ratios=[other(value) for value in ratios],
        median_error=other(median),
        residual_ratio=other(residual),
    )
    assert {first.kind, second.kind} != {OK, MISMATCH}


def shares(num_tiles, far, share):
    """A gradient, and a u whose first `far` tiles are off by `share` of it."""
    rng = np.random.default_rng(4)
    own = rng.normal(size=(num_tiles, 4096)).astype(np.float32)
    u = own.copy()
    noise = rng.normal(size=(far, 4096))
    size = np.linalg.norm(own[:far], axis=1) / np.linalg.norm(noise, axis=1)
    u[:far] += (share * noise * size[:, None]).astype(np.float32)
    return u, own


def counting(second):
    """A second computation that counts its calls."""

    def again():
        again.calls += 1
        return None if second is None else second.reshape(-1, 64, 64)

    again.calls = 0
    return again


def test_no_second_computation_is_made_where_it_cannot_help():
    u, own = shares(40, 2, 0.4)
    for shown in (own, u, np.zeros_like(own) + 2 * own):
        again = counting(own)
        payload_of(None, shown, own).judged(again=again)
        assert again.calls == 0


def test_tiles_that_the_judges_own_two_computations_doubt_do_not_count():
    """In bf16 the tiles of queries and keys may be noise: an honest trainer is not accused."""
    u, own = shares(40, 40, 0.0)
    u, _ = shares(40, 12, 0.6)
    assert payload_of(None, u, own).judged(again=counting(own)).kind == MISMATCH
    again = counting(own + 3 * (u - own))
    found = payload_of(None, u, own).judged(again=again)
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.TILES_FORGED
    assert again.calls == 1


def test_without_a_finite_second_computation_in_time_nobody_is_accused():
    u, own = shares(40, 40, 0.0)
    u, _ = shares(40, 12, 0.6)
    broken = own.copy()
    broken[3, 3] = np.nan
    for again in (counting(None), counting(broken), counting(np.zeros_like(own))):
        assert payload_of(None, u, own).judged(again=again).kind == INCONCLUSIVE
        assert again.calls == 1


@pytest.mark.parametrize("apart", [0.09, 0.12, 0.6])
def test_a_median_that_may_be_the_judges_own_noise_is_excused(apart):
    """In a few rounds of the demo's model bf16 lay 0.116 from fp32, in half of all tiles.

    A trainer in bf16 would have been convicted by a jury in fp32.
    """
    u, own = shares(40, 40, 0.17)
    far, _ = shares(40, 40, apart)
    again = counting(far)
    found = payload_of(None, u, own).judged(again=again)
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.BETWEEN_BOUNDS
    assert again.calls == 1


@pytest.mark.parametrize(("far", "share"), [(40, 0.4), (40, 0.05), (12, 0.6), (4, 8.0)])
def test_honest_work_in_the_precision_of_the_second_computation_is_ok(far, share):
    """In a rough round bf16 lies far from fp32; trainers in both of them are paid."""
    u, own = shares(40, far, share)
    again = counting(u)
    found = payload_of(None, u, own).judged(again=again)
    assert found.kind == OK
    assert found.median_error == 0
    assert again.calls == 1


def test_what_lies_between_the_two_computations_is_not_ok():
    """No bound becomes wider: a target must be near one of them."""
    u, own = shares(40, 40, 0.08)
    assert payload_of(None, (u + own) / 2, own).judged(again=counting(u)).kind == INCONCLUSIVE
    u, own = shares(40, 40, 0.05)
    assert payload_of(None, (u + own) / 2, own).judged(again=counting(u)).kind == OK


@pytest.mark.parametrize("num_idle", [1, 3])
def test_idle_tiles_of_one_computation_may_have_a_gradient_in_the_other(num_idle):
    rng = np.random.default_rng(9)
    noisy = rng.normal(size=(40, 4096)).astype(np.float32)
    noisy[:num_idle] *= 2.0**-38
    own = noisy.copy()
    own[:num_idle] = 0
    found = payload_of(None, noisy, own).judged(again=counting(noisy))
    assert found.kind == OK


@pytest.mark.parametrize("apart", [0.0, 0.004, 0.03, 0.05])
def test_a_median_beyond_the_judges_own_noise_is_a_mismatch(apart):
    u, own = shares(40, 40, 0.17)
    near, _ = shares(40, 40, apart)
    again = counting(near)
    assert payload_of(None, u, own).judged(again=again).reason == Reason.WORK_DIFFERS
    assert payload_of(None, u, own).judged(again=again).kind == MISMATCH
    assert again.calls == 2


def test_a_median_that_no_second_computation_confirms_in_time_accuses_nobody():
    u, own = shares(40, 40, 0.17)
    assert payload_of(None, u, own).judged(again=counting(None)).kind == INCONCLUSIVE


def test_no_noise_explains_half_of_the_gradient():
    """A free-rider is convicted without a second computation, and whatever it would say."""
    u, own = shares(40, 40, 0.51)
    again = counting(u)
    found = payload_of(None, u, own).judged(again=again)
    assert found.kind == MISMATCH
    assert found.reason == Reason.WORK_DIFFERS
    assert again.calls == 0


def test_a_second_computation_leaves_a_median_that_is_no_noise_as_it_is():
    """Calibration measures with both computations, where an audit would not ask for a second."""
    u, own = shares(40, 40, 0.51)
    tiles = own.reshape(40, 64, 64), u.reshape(40, 64, 64)
    first, second = (measure.Yardstick(one, measure.scale_of(one)) for one in tiles)
    rows = [np.float32(one.reshape(40, -1)) for one in (u, np.zeros_like(own))]
    shown = measure.Shown(list(range(40)), rows[0], rows[1], rows[1])
    signs = payload_of(None, u, own).signs
    found = measure.measure(shown, first, signs, RULE)
    again = measure.with_second(found, shown, (first, second), signs, RULE)
    assert found.median_error > BOUNDS.tile_mismatch_micro / MICRO
    assert again.counted_median == found.median_error


def test_votes_without_gradient_need_both_computations():
    """Flash attention has noise where another kernel cancels to zero exactly."""
    rng = np.random.default_rng(9)
    own = rng.normal(size=(40, 4096)).astype(np.float32)
    own[:5] = 0
    u = own.copy()
    u[:5] = 2.0**-38
    made = payload_of(None, u, own)
    assert made.judged(again=counting(own)).reason == Reason.VOTES_WITHOUT_GRADIENT
    assert made.judged(again=counting(own)).kind == MISMATCH
    noisy = own.copy()
    noisy[:5] = 2.0**-45
    found = made.judged(again=counting(noisy))
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.VOTES_WITHOUT_GRADIENT
    found = made.judged(gradient=noisy.reshape(-1, 64, 64))
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.VOTES_WITHOUT_GRADIENT
    noisy[:5] = 2.0**-43
    assert made.judged(gradient=noisy.reshape(-1, 64, 64)).kind == OK


def test_tiles_without_gradient_are_no_perfect_work_in_the_median():
    """On rare tokens most tiles have no gradient; the median is over those that have one."""
    own = np.random.default_rng(2).normal(size=(40, 4096)).astype(np.float32)
    own[:28] = 0
    found = payload_of(None, 1.11 * own, own).judged()
    assert found.kind == MISMATCH
    assert found.reason == Reason.WORK_DIFFERS
    assert found.median_error == pytest.approx(0.11, abs=1e-3)


def test_where_no_drawn_tile_has_a_gradient_nothing_is_concluded():
    own = np.zeros((2000, 4096), np.float32)
    own[7] = 1
    made = payload_of(None, own, own)
    assert 7 not in made.sampled.tiles
    found = made.judged()
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.ZERO_GRADIENT


def test_the_bounds_come_from_the_hashed_config():
    u, own = shares(40, 40, 0.002)
    strict = replace(RULE, judge=JudgeSection(ok_bound_micro=1, mismatch_bound_micro=2))
    assert payload_of(None, u, own).judged(rule=strict).kind == MISMATCH
    assert CONFIG.judge.ok_bound_micro / MICRO == 0.03


def test_a_median_counts_with_the_nearer_of_the_judges_own_two_computations():
    """At 0.17 from one and 0.09 from the other, which lie 0.08 apart, nobody is accused."""
    u, own = shares(40, 40, 0.17)
    near, _ = shares(40, 40, 0.08)
    found = payload_of(None, u, own).judged(again=counting(near))
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.BETWEEN_BOUNDS
