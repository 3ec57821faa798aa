"""The proposed bounds: far above honest work, far below the mildest cheat, or none at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_attestation.verdict import Reason
from troth_client.calibration.comparison import Group
from troth_client.calibration.tails import percentile
from troth_client.calibration.thresholds import in_the_way, propose, propose_for
from troth_client.calibration.whole_model import Whole
from troth_coordinator.rules.config import JudgeSection

HONEST = [0.001 * n / 1000 for n in range(1, 1001)]


def test_five_times_the_honest_percentile_where_there_is_room():
    found = propose(HONEST, {"mild": [0.1] * 100, "strong": [0.9] * 100})
    assert found.honest == 0.000999
    assert found.worst_honest == 0.001
    assert found.ok_bound_micro == 4_995
    assert found.mismatch_bound_micro == 75_000
    assert found.mildest_cheat == "mild"
    assert found.separates


def test_never_above_a_third_of_the_mildest_cheat():
    found = propose([0.01] * 10, {"mild": [0.06, 0.09]})
    assert found.ok_bound_micro == 20_000
    assert found.mismatch_bound_micro == 45_000


@pytest.mark.parametrize("honest", [[0.05], [0.001] * 5_000 + [0.05]])
def test_no_bounds_where_honest_work_would_be_refused(honest):
    """Also where only one in thousands would: it would be an honest participant's stake."""
    found = propose(honest, {"mild": [0.1]})
    assert not found.separates
    assert found.ok_bound_micro is None
    assert found.mismatch_bound_micro is None


def test_no_bounds_where_a_cheat_leaves_no_trace():
    assert not propose([0.0, 0.0], {"none": [0.0]}).separates


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=50),
    st.lists(st.floats(0, 2), min_size=1, max_size=50),
)
def test_whatever_is_proposed_accepts_all_honest_work_and_no_cheat(honest, cheat):
    found = propose(honest, {"cheat": cheat})
    if found.ok_bound_micro is not None and found.mismatch_bound_micro is not None:
        assert max(honest) * 10**6 <= found.ok_bound_micro < found.mismatch_bound_micro
        assert found.mismatch_bound_micro <= min(cheat) * 10**6 + 1


@pytest.mark.parametrize(
    ("percent", "expected"), [(0.1, 1), (50, 500), (99.9, 999), (100, 1000), (0, 1)]
)
def test_percentiles_are_values_of_the_sample(percent, expected):
    assert percentile(list(range(1000, 0, -1)), percent) == expected


def test_the_tails_of_few_values_are_the_extremes():
    assert percentile([3.0, 1.0, 2.0], 99.9) == 3.0
    assert percentile([3.0, 1.0, 2.0], 0.1) == 1.0


def group(name, *, medians=(0.001,), far=0, residual=1.0, apart=0.0):
    is_honest = name.startswith("cpu")
    return Group(name, is_honest, list(medians), far, residual, whole=Whole(distance=apart))


def obstacles(*groups, judge=None, factor=100):
    return in_the_way(groups, judge or JudgeSection(), factor)


CHEAT = group("half", medians=[0.5], far=32, residual=50.0)


def test_the_proposal_pools_honest_ways_and_keeps_cheats_apart():
    found = propose_for([group("cpu fp32"), group("cpu bf16", medians=[0.004]), CHEAT])
    assert found.worst_honest == 0.004
    assert found.mildest_cheat == CHEAT.name


def test_nothing_is_in_the_way_of_honest_work_within_all_bounds():
    assert obstacles(group("cpu fp32", far=2, residual=20.0), CHEAT) == []


def test_far_tiles_and_residuals_of_honest_work_are_named_with_their_bounds():
    """An honest bf16 trainer lost its stake to six far tiles while its median was 0.016."""
    groups = [group("cpu fp32"), group("cpu bf16", medians=[0.016], far=6, residual=20.5), CHEAT]
    assert propose_for(groups).separates, "the two bounds alone would promise safety"
    far, residual = obstacles(*groups)
    assert "6 tiles far off, judge.ok_tiles = 2" in far
    assert "20.5 x gradient, judge.residual_bound_micro = 20000000" in residual


def test_gradients_so_far_apart_that_honest_sketches_differ_are_named():
    """Two honest bf16 seats lost ten recompute costs each to three fp32 seats that agreed."""
    assert obstacles(group("cpu bf16", apart=0.1)) == []
    (apart,) = obstacles(group("cpu bf16", apart=0.11))
    assert "gradients that differ by 0.110" in apart
    assert obstacles(group("cpu bf16", apart=0.11), factor=50) == []
    (apart,) = obstacles(group("cpu bf16", apart=0.05), factor=600)
    assert "sketches by 0.041 at most (sketch_factor = 600)" in apart


def test_audits_that_nobody_can_judge_are_counted_by_their_reason():
    blind = group("cpu bf16")
    blind.skip(Reason.OWN_NOT_FINITE)
    blind.skip(Reason.OWN_NOT_FINITE)
    (line,) = obstacles(blind)
    assert line == "what can be judged: 2 of 2 audits, the judge's own gradient is not finite"


def test_draws_that_often_miss_every_gradient_are_named():
    rare = group("cpu fp32")
    rare.whole.least_share = 0.05
    (line,) = obstacles(rare)
    assert "judge.openings_tiles" in line


def test_a_bound_on_all_votes_that_honest_work_breaks_is_named():
    close = group("cpu fp32")
    close.whole.agreements = [np.full(5, 0.4)]
    judge = JudgeSection(agreement_bound_micro=400_001, agreement_audits=2_995)
    (line,) = obstacles(close, judge=judge)
    assert "the agreement of votes: 0.400, judge.agreement_bound_micro = 400001" in line
    assert obstacles(close) == []
