"""Bounds of single tiles and residuals: far above honest work, and refused where they are not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from troth_attestation.measure import Distances
from troth_cli.errors import InputError
from troth_cli.workflows.create import check_calibrated
from troth_client.calibration.comparison import Group
from troth_client.calibration.tails import Tails, largest, not_cleared, tile_bounds
from troth_client.calibration.thresholds import propose_all, propose_for
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.config import JudgeSection

JUDGE = JudgeSection()


def kept(errors, ratios=(1.0,), counted=None, median=0.001):
    """The tails of one honest audit."""
    values = np.array(errors, float)
    found = Distances(True, 1.0, 0.001, values, values, median, np.array(ratios, float))
    after = found if counted is None else replace(found, counted=np.array(counted, float))
    tails = Tails()
    tails.add(found, after, JUDGE)
    return tails


@pytest.mark.parametrize(("place", "value"), [(1, 5.0), (3, 2.0), (4, 1.0), (9, 1.0)])
def test_the_nth_largest_of_few_is_the_smallest(place, value):
    assert largest(np.array([2.0, 5.0, 1.0, 4.0]), place) == value
    assert largest(np.zeros(0), place) == 0


def test_bounds_lie_far_above_honest_tiles_and_form_a_valid_config():
    tails = kept([0.01] * 61 + [0.067] * 3, ratios=[3.0] * 64)
    assert tile_bounds(tails, 5.0, 30_000)["tile_bound_micro"] == 120_000
    bounds = tile_bounds(tails, 5.0, 10_000)
    assert bounds["tile_bound_micro"] == 101_000
    assert bounds["tile_mismatch_bound_micro"] == 152_000
    assert bounds["tile_mismatch_micro"] == 500_000
    assert bounds["tile_forged_micro"] == 3_000_000
    assert bounds["residual_bound_micro"] == 20_000_000
    assert bounds["residual_tile_ok_micro"] == 10_000_000
    assert JudgeSection(**bounds).tile_bound_micro == 101_000


def test_noisy_tiles_widen_what_is_a_mismatch_by_a_factor_of_three():
    tails = kept([0.01] * 50 + [0.4, 0.4, 0.4, 1.5], ratios=[90.0] * 9)
    bounds = tile_bounds(tails, 30.0, 30_000)
    assert bounds["tile_forged_micro"] >= 4_500_000
    assert bounds["tile_mismatch_micro"] >= 1_200_000
    assert bounds["residual_bound_micro"] == 45_000_000
    assert bounds["residual_tile_ok_micro"] == 135_000_000
    assert bounds["residual_mismatch_micro"] == 270_000_000
    assert JudgeSection(**bounds).residual_mismatch_micro == 270_000_000


def test_what_a_second_computation_excuses_does_not_widen_a_mismatch():
    noisy = [0.01] * 60 + [1.5] * 4
    tails = kept(noisy, counted=[0.0] * 64)
    assert tails.most == 0
    assert tails.spare == 1.5
    assert list(not_cleared(tails, 1.0, JUDGE)) == []


@pytest.mark.parametrize(
    ("tails", "residual", "name"),
    [
        (kept([0.01] * 64, median=0.04), 1.0, "judge.mismatch_bound_micro"),
        (kept([0.01] * 58 + [0.07] * 6), 1.0, "judge.tile_mismatch_bound_micro"),
        (kept([0.01] * 61 + [0.17] * 3), 1.0, "judge.tile_mismatch_micro"),
        (kept([0.01] * 63 + [1.1]), 1.0, "judge.tile_forged_micro"),
        (kept([0.01] * 64), 70.0, "judge.residual_mismatch_micro"),
        (kept([0.01] * 64, ratios=[70.0] * 3), 1.0, "judge.residual_mismatch_micro"),
        (Tails(num_idle=1), 1.0, "judge.sent_floor_log2"),
    ],
)
def test_a_mismatch_within_a_factor_of_three_of_honest_work_is_named(tails, residual, name):
    (line,) = not_cleared(tails, residual, JUDGE)
    assert name in line


def test_the_worst_of_several_kinds_is_kept():
    both = Tails.of([kept([0.5, 0.1], ratios=[2.0]), kept([0.3], ratios=[7.0, 7.0, 7.0])])
    assert both.most == 0.5
    assert both.third == 0.3
    assert both.third_ratio == 7.0
    assert both.spare == 0.3
    assert len(both.ratios) == 2


def groups(worst, cheat=0.3, tails=None):
    honest = Group("cpu fp32", True, [0.001, worst], 0, 2.0)
    honest.tails = tails or kept([0.01] * 64)
    return [honest, Group("half", False, [cheat])]


def test_all_bounds_are_proposed_together_or_none():
    found = groups(0.004)
    bounds = propose_all(found, propose_for(found))
    assert bounds.refusal == ""
    judge = JudgeSection(**bounds.values)
    assert judge.mismatch_bound_micro == 225_000
    usual = JudgeSection()
    assert judge.gradient_floor_micro == usual.gradient_floor_micro
    assert judge.sent_floor_log2 == usual.sent_floor_log2
    assert judge.agreement_bound_micro == 0
    assert judge.agreement_audits == 0


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (lambda: groups(0.2), "do not separate"),
        (lambda: groups(0.004, tails=kept([0.01], median=0.08)), "within a factor of three"),
        (lambda: groups(0.004, tails=kept([400.0] * 3)), "beyond every bound"),
        (lambda: [Group("cpu fp32", True), Group("half", False, [0.3])], "nothing"),
        (lambda: [Group("cpu fp32", True, [0.01]), Group("half", False)], "nothing"),
        (lambda: strayed(groups(0.004)), "which tiles have a gradient"),
    ],
)
def test_no_bounds_come_with_the_reason(bad, why):
    found = bad()
    bounds = propose_all(found, propose_for(found))
    assert bounds.values == {}
    assert why in bounds.refusal


def strayed(found):
    """Honest ways that disagree about a tile's gradient at every floor."""
    found[0].whole.strays += 1
    return found


@pytest.mark.parametrize(
    "rpc", ["http://127.0.0.1:8899", "http://localhost:1", "http://[::1]:8899"]
)
def test_bounds_that_nobody_measured_do_on_this_machine(rpc):
    check_calibrated(load_config(), rpc)


def test_bounds_that_nobody_measured_are_refused_on_a_public_cluster():
    rpc = "https://rpc.example.org"
    with pytest.raises(InputError, match=r"rpc.example.org.*troth calibrate"):
        check_calibrated(load_config(), rpc)
    with pytest.raises(InputError, match=r"--set start.weights=given and --start base, and add"):
        check_calibrated(load_config(), rpc, Path("base"))
    check_calibrated(load_config(overrides={"judge.calibrated": True}), rpc)
