"""Presence, places and signs are exact, alike in numpy and torch; no gradient, no vote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth_attestation import selection
from troth_coordinator.rules.config import DemoSection

TINY = 2.0**-149
FLOOR = 2.0**-40
# Few distinct values: ties everywhere, zeros, subnormal numbers and their border, extremes.
VALUES = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, TINY, -TINY, 2.0**-126, 2.0**-126 - TINY, 3e38, -3e38)
SEEDS = st.integers(0, 2**32 - 1)
RULES = st.builds(
    DemoSection,
    k=st.sampled_from([1, 8, 64]),
    beta_micro=st.sampled_from([0, 1, 500_000, 950_000, 999_999]),
    alpha_micro=st.sampled_from([0, 200_000, 1_000_000]),
)


def awkward(seed):
    """Four tiles: random, of few values, sparse, around the floor; fp32 [4, 4096]."""
    rng = np.random.default_rng(seed)
    u = np.zeros((4, 4096), np.float32)
    u[0] = rng.normal(size=4096)
    u[1] = rng.choice(np.array(VALUES, np.float32), 4096)
    u[2, rng.integers(0, 4096, 5)] = rng.normal(size=5)
    u[3] = rng.normal(size=4096) * 2.0**-42
    return u


def bits(array):
    return np.ascontiguousarray(array).view(np.int32)


@pytest.mark.parametrize("value", VALUES)
def test_what_a_device_may_flush_is_plus_zero(value):
    (found,) = selection.flush(np.array([value], np.float32))
    expected = 0.0 if abs(value) < 2.0**-126 else value
    assert found == expected
    assert not np.signbit(found) or (value < 0 and found != 0)


def test_ties_go_to_the_lowest_index_and_a_tile_of_zeros_has_the_first_entries():
    u = np.zeros((2, 4096), np.float32)
    u[0, [5, 9, 4000]] = [-2, 2, 2]
    chosen = selection.top_k(u, 2)
    assert chosen.indices.tolist() == [[5, 9], [0, 1]]
    assert chosen.negative.tolist() == [[True, False], [False, False]]
    sent = chosen.signs(np.array([True, False]))
    assert sent.present.tolist() == [True, False]
    assert sent.indices.tolist() == [[5, 9], [0, 0]]
    assert sent.negative.tolist() == [[True, False], [False, False]]


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from([1, 8, 64]))
def test_the_choice_is_that_of_a_plain_sort(seed, k):
    u = selection.flush(awkward(seed))
    chosen = selection.top_k(u, k)
    for row in range(len(u)):
        best = sorted(sorted(range(4096), key=lambda e: (-abs(u[row, e]), e))[:k])
        assert chosen.indices[row].tolist() == best
        assert chosen.negative[row].tolist() == [bool(u[row, e] < 0) for e in best]


@pytest.mark.parametrize(
    ("without", "u", "sent"),
    [
        (0.0, FLOOR, True),
        (0.0, -FLOOR, True),
        (0.0, np.nextafter(np.float32(FLOOR), np.float32(0)), False),
        (0.5, 0.5, False),
        # One unit in the last place of b is far above the floor; rounding alone never moves it.
        (1.0, np.nextafter(np.float32(1), np.float32(2)), True),
        (2.0**-30, np.nextafter(np.float32(2.0**-30), np.float32(1)), False),
        # The gradient takes all of the residual away: nothing is left that could vote.
        (1.0, 0.0, False),
    ],
)
def test_a_tile_is_sent_from_the_floor_on(without, u, sent):
    rows = np.zeros((2, 1, 4096), np.float32)
    rows[0, 0, 77], rows[1, 0, 77] = without, u
    assert selection.is_sent(rows[1], rows[0], 40).tolist() == [sent]


def test_a_residual_without_gradient_is_never_sent_however_long_it_decays():
    demo = DemoSection(k=64)
    u = selection.flush(awkward(3))
    for _ in range(80):
        without = selection.decayed(selection.after_included(u, demo), demo)
        assert not selection.is_sent(without, without, 40).any()
        u = without
    assert not u[2].any(), "a rare tile has forgotten what it could not send"


def test_the_top_k_of_a_tile_that_is_not_sent_is_forgotten_too():
    u = np.zeros((1, 4096), np.float32)
    u[0, :3] = 3, 2, 1
    assert selection.after_included(u, DemoSection(k=2))[0, :4].tolist() == [0, 0, 1, 0]
    kept = selection.after_included(u, DemoSection(k=2, alpha_micro=250_000))
    assert kept[0, :4].tolist() == [2.25, 1.5, 1, 0]
    assert u[0, 0] == 3


@settings(max_examples=60, deadline=None)
@given(SEEDS, SEEDS, RULES, st.sampled_from([20, 40, 100]))
def test_trainers_compute_the_same_bits(seed, other, demo, floor):
    torch = pytest.importorskip("torch")
    residual_module = pytest.importorskip("troth_client.compression.residual")
    topk = pytest.importorskip("troth_client.compression.topk")
    rule = residual_module.Residual(demo.beta_micro, demo.alpha_micro, floor)
    before = selection.flush(awkward(seed))
    gradient = np.minimum(awkward(other), np.float32(1e30))
    gradient = np.maximum(gradient, np.float32(-1e30))
    gradient[0] *= seed % 2

    u = _tiles(torch, before)
    theirs = residual_module.Carried(u, topk.top_k(u, demo.k).indices)
    ours = selection.after_included(before, demo)
    moved = rule.accumulate(theirs, _tiles(torch, gradient))
    without = selection.decayed(ours, demo)
    u = selection.flush(without + gradient)
    assert np.array_equal(bits(moved.without.reshape(4, -1).numpy()), bits(without))
    assert np.array_equal(bits(moved.u.reshape(4, -1).numpy()), bits(u))

    assert np.array_equal(rule.is_sent(moved), selection.is_sent(u, without, floor))
    top, own = topk.top_k(moved.u, demo.k), selection.top_k(u, demo.k)
    assert np.array_equal(top.indices, own.indices)
    assert np.array_equal(top.negative, own.negative)


@settings(max_examples=100, deadline=None)
@given(SEEDS, SEEDS, RULES, st.sampled_from([20, 40, 100]), st.sampled_from([0, 70, 4096]))
def test_votes_are_those_of_all_of_b(seed, other, demo, floor, still):
    """Tiles that were moved nowhere, only by the last entries, or by an entry that was sent."""
    before = awkward(seed)
    without = selection.decayed(selection.after_included(selection.flush(before), demo), demo)
    u = without + np.clip(awkward(other), -1e30, 1e30)
    u[:, :still] = without[:, :still]
    u[2, 5] = selection.decayed(selection.flush(before), demo)[2, 5]
    sent = selection.is_sent(selection.flush(u), without, floor)
    expected = selection.top_k(selection.flush(u), demo.k).signs(sent)
    found = selection.votes(u, before, demo, floor)
    assert found.present.tolist() == expected.present.tolist()
    assert np.array_equal(found.indices, expected.indices)
    assert np.array_equal(found.negative, expected.negative)


def test_an_entry_moved_from_only_one_of_its_two_ways_decides_nothing():
    demo = DemoSection(k=1, beta_micro=500_000)
    before = np.zeros((2, 4096), np.float32)
    before[:, 3], before[:, 100] = 1.0, [2.0, 0.5]
    # Entry 3 was sent in the second tile only: there its half would be no decay but a move.
    u = np.zeros((2, 4096), np.float32)
    u[0, 3], u[1, 100] = 0.5, 0.25
    assert selection.votes(u, before, demo, 40).present.tolist() == [False, False]
    u[0, 3], u[1, 3] = 0.25, 0.5
    assert selection.votes(u, before, demo, 40).present.tolist() == [True, True]


def test_a_gradient_that_takes_all_of_u_away_votes_for_nothing():
    before = np.zeros((1, 4096), np.float32)
    before[0, :2] = 2.0, 1.0
    demo = DemoSection(k=1, alpha_micro=500_000)
    u = np.zeros_like(before)
    assert not selection.votes(u, before, demo, 40).present.any()
    u[0, 9] = 1.0
    assert selection.votes(u, before, demo, 40).present.all()


def test_a_fused_multiply_add_would_be_noticed():
    """With one rounding instead of two, more than a quarter of the entries have other bits."""
    torch = pytest.importorskip("torch")
    residual_module = pytest.importorskip("troth_client.compression.residual")
    rng = np.random.default_rng(1)
    residual, gradient = rng.normal(size=(2, 8, 4096)).astype(np.float32)
    fused = residual.astype(np.float64) * np.float32(0.95) + gradient
    rule = residual_module.Residual(950_000)
    nothing = np.zeros((8, 0), np.int16)
    before = residual_module.Carried(_tiles(torch, residual), nothing)
    found = rule.accumulate(before, _tiles(torch, gradient))
    apart = (found.u.reshape(8, -1).numpy() != fused.astype(np.float32)).mean()
    assert 0.2 < apart < 0.4


def _tiles(torch, rows):
    return torch.from_numpy(rows.copy()).reshape(-1, 64, 64)
