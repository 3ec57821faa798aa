"""Targets just inside a bound: honest ways may doubt them, and never contradict each other."""

import numpy as np
import pytest
from support.judged_work import CONFIG, RULE, chosen

from troth_attestation.measure import Own, Yardstick
from troth_attestation.verdict import Reason
from troth_attestation.work import yardstick_of
from troth_client.calibration.comparison import Seat
from troth_client.calibration.edges import INSIDE, Bench, places
from troth_coordinator.rules.config import JudgeSection

NUM_TILES, DRAWN = 90, 64
JUDGE = JudgeSection()


def ways(distance, tiles=NUM_TILES):
    """The gradients of two ways that lie so far apart."""
    rng = np.random.default_rng(3)
    own = rng.normal(size=(tiles, 4096)) * rng.lognormal(size=(tiles, 1))
    noise = rng.normal(size=own.shape) * np.linalg.norm(own, axis=1)[:, None] / 64
    return [own.astype(np.float32), (own + distance * noise).astype(np.float32)]


def bench(gradients, seconds=None, tiles=NUM_TILES):
    """Two judges; a second computation of theirs says the same unless it is given."""
    shaped = [yardstick_of(Own(g.reshape(-1, 64, 64)), tiles) for g in gradients]
    given = zip(("here", "there"), shaped, seconds or shaped, strict=True)
    seats = [Seat(*one) for one in given]
    drawn = list(range(min(DRAWN, tiles)))
    return Bench(seats, drawn, chosen(None, gradients[0]), RULE)


@pytest.mark.parametrize("distance", [0.0, 0.003, 0.02])
def test_ways_that_differ_little_never_contradict_each_other(distance):
    assert bench(ways(distance)).contradictions(JUDGE) == []


def test_the_place_is_ok_for_the_way_that_it_was_made_for():
    """Otherwise a target would stand far inside, and nothing would be tested."""
    here = bench(ways(0.0))
    tight = JUDGE.model_copy(update={"mismatch_bound_micro": round(0.998 * JUDGE.ok_bound_micro)})
    found = here.contradictions(tight)
    assert found
    assert all("just inside" in line for line in found)
    loose = JUDGE.model_copy(update={"mismatch_bound_micro": JUDGE.ok_bound_micro})
    assert here.contradictions(loose) == []


@pytest.mark.parametrize(
    ("harsher", "milder", "place"),
    [
        ("mismatch_bound_micro", "ok_bound_micro", "ok_bound"),
        ("tile_mismatch_bound_micro", "tile_bound_micro", "tile_bound"),
        ("tile_forged_micro", "tile_mismatch_micro", "tile_mismatch"),
        ("residual_mismatch_micro", "residual_bound_micro", "residual_bound"),
        ("residual_mismatch_micro", "residual_tile_ok_micro", "residual_tile_ok"),
    ],
)
def test_two_bounds_at_one_place_are_a_knife_edge(harsher, milder, place):
    """Here says ok, and there a mismatch: what cost honest seats their stake in version 1."""
    together = JUDGE.model_copy(update={harsher: getattr(JUDGE, milder)})
    found = bench(ways(0.05)).contradictions(together)
    knives = [line for line in found if line.startswith(f"just inside {place}: ")]
    assert any("says ok" in line and "says mismatch" in line for line in knives)


def test_ways_that_differ_more_than_the_gap_are_found():
    found = bench(ways(0.09)).contradictions(JUDGE)
    assert any("ok_bound" in line for line in found)


def test_a_second_computation_excuses_single_tiles():
    """The two ways disagree about few tiles; each knows that its own computations do, too."""
    here, there = ways(0.0)
    there[:8] *= -1
    both = [yardstick_of(Own(g.reshape(-1, 64, 64)), NUM_TILES) for g in (there, here)]
    assert bench([here, there]).contradictions(JUDGE)
    assert bench([here, there], both).contradictions(JUDGE) == []


def test_a_judge_that_cannot_judge_takes_no_part():
    alone = bench(ways(0.3))
    blind = Bench(
        [alone.seats[0], Seat("blind", Reason.OWN_NOT_FINITE)], alone.tiles, alone.sent, RULE
    )
    assert isinstance(alone.seats[0].yardstick, Yardstick)
    assert blind.contradictions(JUDGE) == []


def test_one_tile_and_tiles_without_gradient_have_edges_too():
    for tiles in (1, 3):
        assert bench(ways(0.01, tiles), tiles=tiles).contradictions(JUDGE) == []
    here, there = ways(0.01)
    here[::2], there[::2] = 0, 0
    assert bench([here, there]).contradictions(JUDGE) == []


def test_every_milder_bound_has_its_place():
    found = {place.name: place for place in places(JUDGE, DRAWN)}
    assert set(found["ok_bound"].error) == {INSIDE * 0.03}
    assert (found["tile_bound"].error > 0).sum() == DRAWN // 3
    assert (found["tile_mismatch"].error > 0).sum() == JUDGE.ok_tiles
    assert set(found["residual_bound"].residual) == {INSIDE * 20}
    assert (found["residual_tile_ok"].tile_residual > 0).sum() == DRAWN // 3
    assert found["every bound"].error.max() == INSIDE * 0.5
    assert CONFIG.judge == JUDGE
