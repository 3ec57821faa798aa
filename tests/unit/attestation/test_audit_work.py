"""T1, T1b and T2: honest work passes on any hardware, skipped work does not."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.judged_work import changed, decayed, payload_of, trained

from troth_attestation import measure, openings
from troth_attestation.errors import TensorError
from troth_attestation.signs import Signs
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules.config import DemoSection

OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE = VerdictKind


@cache
def honest():
    """One audit of honest work, made when the first test asks for it."""
    return trained(3)


def noisy(share):
    """An honest gradient with relative noise of another machine."""

    def cheat(parts, _, rng):
        g = parts.mean(axis=0)
        noise = rng.normal(size=g.shape)
        return g + share * noise * np.linalg.norm(g, axis=1)[:, None] / 64

    return cheat


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.0, 0.002, 0.02])
def test_honest_work_with_the_noise_of_other_hardware_is_ok(seed, share):
    found = trained(seed, noisy(share)).judged()
    assert found.kind == OK, found.explain()
    assert found.reason == Reason.WORK_MATCHES, found.explain()
    assert found.median_error == pytest.approx(share, rel=0.05, abs=1e-5)
    assert found.num_bad_tiles == 0
    assert found.residual_ratio < 20


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("used", [7, 6, 4, 1])
def test_a_partial_batch_is_a_mismatch(seed, used):
    found = trained(seed, lambda parts, _, rng: parts[:used].mean(axis=0)).judged()
    assert found.kind == MISMATCH, found.explain()
    assert found.reason == Reason.WORK_DIFFERS, found.explain()
    assert found.median_error > 0.1


def test_a_free_rider_is_off_by_all_of_the_gradient():
    found = trained(4, lambda parts, *_: np.zeros_like(parts[0])).judged()
    assert found.kind == MISMATCH
    assert found.reason == Reason.WORK_DIFFERS
    assert found.median_error == pytest.approx(1, abs=1e-5)
    assert found.num_bad_tiles == 32


def test_yesterdays_gradient_and_a_flipped_sign_are_mismatches():
    assert trained(5, lambda _, last, rng: last.mean(axis=0)).judged().kind == MISMATCH
    found = trained(5, lambda parts, *_: -parts.mean(axis=0)).judged()
    assert found.median_error == pytest.approx(2, abs=1e-4)


def test_some_layers_left_out_are_a_mismatch_though_the_median_is_zero():
    def some_layers(parts, *_):
        g = parts.mean(axis=0)
        g[: len(g) // 4] = 0
        return g

    found = trained(6, some_layers).judged()
    assert found.kind == MISMATCH
    assert found.reason == Reason.WORK_DIFFERS
    assert found.median_error < 0.001
    assert 6 <= found.num_bad_tiles < 16


def test_between_the_bounds_nobody_is_accused():
    found = trained(7, noisy(0.06)).judged()
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.BETWEEN_BOUNDS


def test_a_payload_that_is_not_the_top_k_is_a_mismatch():
    tile = honest().sampled.tiles[4]
    signs = honest().signs
    negative = signs.negative.copy()
    negative[tile, 0] ^= True
    found = honest().judged(signs=replace(signs, negative=negative))
    assert found.kind == MISMATCH
    assert found.reason == Reason.PAYLOAD_NOT_TOP_K
    assert found.tile == tile
    indices = signs.indices.copy()
    indices[tile, -1] -= 1
    assert honest().judged(signs=replace(signs, indices=indices)).tile == tile
    present = signs.present.copy()
    present[tile] = False
    assert honest().judged(signs=replace(signs, present=present)).tile == tile


def test_a_payload_with_another_k_is_a_mismatch():
    signs = honest().signs
    narrow = Signs(signs.present, signs.indices[:, 1:], signs.negative[:, 1:])
    assert honest().judged(signs=narrow).tile == honest().sampled.tiles[0]


def test_a_malformed_payload_is_a_mismatch():
    assert honest().judged(signs=None).reason == Reason.PAYLOAD_MALFORMED


@pytest.mark.parametrize(
    ("size", "kind", "reason"),
    [
        (19, OK, Reason.WORK_MATCHES),
        (22, INCONCLUSIVE, Reason.RESIDUAL_UNUSUAL),
        (190, INCONCLUSIVE, Reason.RESIDUAL_UNUSUAL),
        (220, MISMATCH, Reason.RESIDUAL_TOO_LARGE),
    ],
)
def test_a_smuggled_residual_shows_as_long_as_it_has_influence(size, kind, reason):
    """Beyond 20 x gradient it is not paid, beyond 200 x it is a fault; honest reached 26 x."""
    rng = np.random.default_rng(8)
    g = rng.normal(size=(40, 4096)).astype(np.float32)
    smuggled = size * rng.normal(size=g.shape).astype(np.float32)
    found = payload_of(smuggled, decayed(smuggled) + g, g).judged()
    assert found.kind == kind
    assert found.reason == reason
    assert 0.9 * size < found.residual_ratio < size


def test_openings_that_are_absent_or_prove_nothing_are_unavailable():
    spoiled = honest().data[:59] + b"\xff" + honest().data[60:]
    cases = {
        Reason.NOT_SERVED: honest().judged(data=None),
        Reason.OPENINGS_ROOT: honest().judged(recorded_root=bytes(32)),
        Reason.OPENINGS_LENGTH: honest().judged(data=honest().data[:-1]),
        Reason.OPENINGS_FIELD: honest().judged(sampled=changed(honest(), round=4)),
        Reason.OPENINGS_PATH: honest().judged(sampled=changed(honest(), root_after=bytes(32))),
        Reason.OPENINGS_TILE: honest().judged(data=spoiled),
    }
    for reason, found in cases.items():
        assert found.kind == UNAVAILABLE, found.explain()
        assert found.reason == reason, found.explain()


def test_a_committed_nan_is_a_mismatch():
    u = honest().after.u.reshape(-1, 4096).copy()
    u[honest().sampled.tiles[0], 0] = np.nan
    found = payload_of(honest().before.u.reshape(-1, 4096), u, honest().own).judged()
    assert found.kind == MISMATCH
    assert found.reason == Reason.NOT_FINITE
    assert f"tile {honest().sampled.tiles[0]}" in found.explain()


def test_without_any_gradient_nothing_is_concluded():
    zero = np.zeros((3, 4096), np.float32)
    found = payload_of(None, zero, zero).judged()
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.ZERO_GRADIENT


def test_tiles_without_gradient_are_measured_against_the_floor():
    """A trainer's noise where the judge has none: small, it is nothing; then it is doubted."""
    g = np.ones((40, 4096), np.float32)
    g[::2] = 0
    honest = payload_of(None, g, g).judged()
    assert honest.kind == OK
    assert honest.residual_ratio == 0
    noise = g.copy()
    noise[::2] = 2.0**-41
    assert payload_of(None, noise, g).judged().kind == OK
    noise[0] = 2e-5
    found = payload_of(None, noise, g).judged()
    assert found.kind == INCONCLUSIVE
    assert found.reason == Reason.VOTES_WITHOUT_GRADIENT
    noise[::2] = 2e-3
    assert payload_of(None, noise, g).judged().kind == MISMATCH


def test_alpha_below_one_keeps_a_part_of_the_top_k():
    u = np.arange(1, 4097, dtype=np.float32)[None]
    shown = openings.Openings((0,), u, u)
    residual = measure.Shown.of(shown, DemoSection(k=1, alpha_micro=250_000)).residual
    assert residual[0, -1] == 0.75 * 4096
    assert residual[0, 0] == 1
    assert measure.Shown.of(shown, DemoSection(k=1)).residual[0, -1] == 0
    assert u[0, -1] == 4096


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_judge_without_a_finite_gradient_of_its_own_concludes_nothing(bad):
    """Zeros in its place would accuse honest work of votes without gradient."""
    own = honest().own.copy()
    own[7, 0, 0] = bad
    for found in (honest().judged(gradient=own), honest().judged(gradient=None)):
        assert found.kind == INCONCLUSIVE
        assert found.reason == Reason.OWN_NOT_FINITE


def test_a_judge_with_the_gradient_of_another_model_is_at_fault():
    with pytest.raises(TensorError, match=r"\[45, 64, 64\]"):
        honest().judged(gradient=honest().own[:3])


def test_a_payload_for_another_number_of_tiles_is_malformed():
    signs = honest().signs
    short = Signs(signs.present[:1], signs.indices[:1], signs.negative[:1])
    assert honest().judged(signs=short).reason == Reason.PAYLOAD_MALFORMED
