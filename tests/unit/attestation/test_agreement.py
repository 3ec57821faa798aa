"""All votes against one's own gradient: groups of any model, forged tensors that nobody drew."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.judged_work import RULE, payload_of

from troth_attestation import agreement, measure
from troth_attestation.signs import Signs
from troth_attestation.verdict import Reason, VerdictKind
from troth_coordinator.rules.config import JudgeSection


@pytest.mark.parametrize(
    ("tensor_tiles", "sizes"),
    [
        ([1], [1]),
        ([12], [12]),
        ([31, 32, 33], [32, 33, 31]),
        ([64, 5, 100, 6], [32, 32, 32, 32, 36, 11]),
        ([20, 20, 20], [60]),
        ([20, 20, 24], [32, 32]),
        # A large model has at most 512 groups.
        ([32 * 1024], [64] * 512),
    ],
)
def test_groups_are_parts_of_matrices_and_small_ones_are_pooled(tensor_tiles, sizes):
    found = agreement.groups(tensor_tiles)
    assert [len(group) for group in found] == sizes


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=20))
@example([1_000] * 20)
def test_every_tile_is_in_one_group(tensor_tiles):
    """Only the pool may be smaller than a group should be: where all of it is too little."""
    found = agreement.groups(tensor_tiles)
    least = max(32, math.ceil(sum(tensor_tiles) / 512))
    pooled = sum(count for count in tensor_tiles if count < least)
    assert sorted(tile for group in found for tile in group) == list(range(sum(tensor_tiles)))
    assert len(found) <= 512
    small = [len(group) for group in found if len(group) < least]
    assert small == ([pooled] if 0 < pooled < least else [])


def votes(scores):
    """Two votes of each tile; a tile's gradient makes its score, 0 with no gradient there."""
    count = len(scores)
    gradient = np.zeros((count, 4096), np.float32)
    for tile, score in enumerate(scores):
        if score is not None:
            gradient[tile, :2] = (1 + score) / 2, -(1 - score) / 2
    indices = np.tile(np.array([0, 1], np.int16), (count, 1))
    signs = Signs(np.ones(count, bool), indices, np.zeros((count, 2), bool))
    return signs, gradient.reshape(-1, 64, 64)


def least(scores, cut, uncounted=()):
    counted = np.ones(len(scores), bool)
    counted[list(uncounted)] = False
    return agreement.least_agreement(cut, *votes(scores), counted)


def test_the_score_of_a_group_is_the_mean_of_its_tiles():
    cut = [tuple(range(8)), tuple(range(8, 16))]
    scores = [1.0] * 8 + [0.5] * 4 + [-0.5] * 2 + [None] * 2
    assert least(scores, cut) == pytest.approx((4 * 0.5 - 2 * 0.5) / 8)


def test_negative_votes_agree_with_negative_gradients():
    signs, gradient = votes([1.0] * 8)
    down = replace(signs, negative=np.ones((8, 2), bool))
    cut, counted = [tuple(range(8))], np.ones(8, bool)
    assert agreement.least_agreement(cut, down, gradient, counted) == pytest.approx(-1)
    assert agreement.least_agreement(cut, down, -gradient, counted) == pytest.approx(1)


def test_groups_with_few_counted_tiles_join_others():
    cut = [tuple(range(8)), tuple(range(8, 16)), tuple(range(16, 20))]
    scores = [0.0] * 8 + [0.5] * 8 + [1.0] * 4
    # The last joins back; the first, with too few, joins the next.
    assert least(scores, cut) == pytest.approx(0)
    joined = least(scores, cut, uncounted=range(1, 8))
    assert joined == pytest.approx((0 + 8 * 0.5 + 4 * 1) / 13)
    assert least(scores, cut, uncounted=range(13)) is None


def test_a_forged_tensor_is_doubted_though_no_tile_of_it_was_drawn():
    """Votes alone are never a mismatch, and the test is off unless the config has a bound."""
    rng = np.random.default_rng(5)
    own = rng.normal(size=(640, 4096)).astype(np.float32)
    u = own.copy()
    u[:4] = own[:4]
    u[32:64] = rng.normal(size=(32, 4096))
    made = payload_of(None, u, own, b"z" * 32, 1)
    assert not set(range(32, 64)) & set(made.sampled.tiles)
    assert made.judged().kind == VerdictKind.OK
    bounds = JudgeSection(agreement_bound_micro=500_000, agreement_audits=2_995)
    strict = replace(RULE, judge=bounds, tensor_tiles=(640,))
    found = made.judged(rule=strict)
    assert found.kind == VerdictKind.INCONCLUSIVE
    assert found.reason == Reason.VOTES_DISAGREE
    honest = payload_of(None, own, own, b"z" * 32, 1)
    assert honest.judged(rule=strict).kind == VerdictKind.OK


def test_tiles_that_were_not_sent_or_have_hardly_a_gradient_do_not_count():
    """Their votes are noise: honest work would be doubted for them."""
    signs, gradient = votes([1.0] * 32 + [-1.0] * 2)
    present = signs.present.copy()
    present[32] = False
    gradient[33] *= 1e-6
    rule = replace(RULE, tensor_tiles=(34,))
    own = measure.measure_of(gradient)
    found = measure.agreement_of(own, replace(signs, present=present), rule)
    assert found == pytest.approx(1)
