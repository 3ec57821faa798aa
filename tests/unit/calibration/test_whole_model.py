"""All tiles of honest gradients: floors, agreement and sketches follow from their differences."""

import numpy as np
import pytest
from support.fields import assert_fields
from support.judged_work import CONFIG, RULE, chosen

from troth_attestation.measure import JudgeRule, Own
from troth_attestation.work import yardstick_of
from troth_client.calibration.whole_model import (
    FLOORS,
    LEAST_SMALL,
    LOG2_FLOORS,
    Whole,
    agreement_bound,
    sketch_factor,
    whole_bounds,
)
from troth_coordinator.rules.config import LEAST_AGREEMENT_AUDITS, JudgeSection

NUM_TILES = 40
ALL = JudgeRule(CONFIG.demo, CONFIG.judge, (NUM_TILES,))


def gradient(seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(NUM_TILES, 64, 64)).astype(np.float32)


def stick(tiles):
    return yardstick_of(Own(tiles), NUM_TILES)


def compared(first, second):
    whole = Whole()
    whole.add(stick(first), stick(second))
    return whole


def test_the_distance_is_that_of_whole_gradients_and_the_share_that_of_the_witness():
    first = gradient()
    second = first * np.float32(1.02)
    second[:10] = 0
    whole = compared(first, second)
    apart = np.linalg.norm(first - second) / np.linalg.norm(first)
    assert whole.distance == pytest.approx(apart, rel=1e-4)
    assert whole.least_share == 0.75


def test_a_small_gradient_is_measured_against_each_floor():
    """It differs by all of itself: 0.004 of the median, an error of 0.4 above a floor of 1 %."""
    first = gradient()
    first[0] *= np.float32(0.004 / 1)
    second = first.copy()
    second[0] *= -1
    whole = compared(first, second)
    share = 0.004 * np.linalg.norm(gradient()[0]) / np.median(stick(first).scale.norms)
    errors = [2 * share / max(share, floor / 10**6) for floor in FLOORS]
    assert whole.small_errors == pytest.approx(errors, rel=1e-3)
    assert whole.num_small == 1


@pytest.mark.parametrize(
    ("errors", "count", "floor"),
    [
        ([0.0] * 5, 0, 10_000),
        ([0.0] * 5, LEAST_SMALL - 1, 10_000),
        ([0.0] * 5, LEAST_SMALL, 1_000),
        ([0.5, 0.2, 0.05, 0.01, 0.01], LEAST_SMALL, 10_000),
        ([0.5, 0.2, 0.0501, 0.01, 0.01], LEAST_SMALL, 30_000),
        ([9.0] * 5, LEAST_SMALL, 100_000),
    ],
)
def test_the_floor_is_the_least_above_which_small_tiles_agree(errors, count, floor):
    """Half of the tile bound, 0.1 here; a lower floor than usual needs a thousand such tiles."""
    whole = Whole(num_small=count, small_errors=np.array(errors))
    assert whole_bounds(whole, 100_000)["gradient_floor_micro"] == floor


@pytest.mark.parametrize(
    ("noise", "floor"),
    [(0.0, 40), (2.0**-46, 40), (2.0**-42, 40), (2.0**-41, 39), (2.0**-30, 28), (2.0**-21, None)],
)
def test_noise_where_another_way_has_none_raises_the_floor_of_what_is_sent(noise, floor):
    """Two thirds of all tiles would otherwise be sent by one device and idle for another."""
    first, second = gradient(), gradient()
    first[3], second[3] = noise, 0
    whole = compared(first, second)
    assert whole_bounds(whole, 100_000).get("sent_floor_log2") == floor
    if floor is not None:
        assert JudgeSection(sent_floor_log2=floor).sent_floor_log2 == floor
    assert compared(second, first).strays.sum() == 0, "a witness may have noise of its own"


def test_a_tiny_gradient_that_both_ways_have_is_no_stray():
    first, second = gradient(), gradient()
    first[3] *= np.float32(2.0**-44)
    second[3] *= np.float32(2.0**-44 * 0.7)
    assert compared(first, second).strays.tolist() == [0] * len(LOG2_FLOORS)


def test_votes_are_held_against_the_gradient_above_each_floor():
    own = gradient()
    own[20:] *= np.float32(0.02)
    payload = chosen(None, own.reshape(NUM_TILES, -1))
    whole = Whole()
    whole.add_votes(payload, stick(own), ALL)
    (found,) = whole.agreements
    assert found == pytest.approx([1.0] * 5)
    flipped = own.copy()
    flipped[20:] *= -1
    whole.add_votes(payload, stick(flipped), ALL)
    assert whole.agreements[1][0] == pytest.approx(0.0, abs=1e-6), "half of one group disagrees"
    assert whole.agreements[1][-1] == pytest.approx(1.0), "below the floor nobody counts"


def test_votes_of_too_few_tiles_are_no_measurement():
    whole = Whole()
    rule = JudgeRule(RULE.demo, RULE.judge, (7,))
    own = gradient()[:7]
    whole.add_votes(chosen(None, own.reshape(7, -1)), yardstick_of(Own(own), 7), rule)
    assert np.isnan(whole.agreements[0]).all()
    assert len(whole.votes_above(10_000)) == 0


@pytest.mark.parametrize(
    ("count", "least", "bound"),
    [
        (0, 0.9, 0),
        (LEAST_AGREEMENT_AUDITS - 1, 0.9, 0),
        (LEAST_AGREEMENT_AUDITS, 0.9, 600_000),
        (LEAST_AGREEMENT_AUDITS, 0.0, 0),
        (LEAST_AGREEMENT_AUDITS, -0.1, 0),
    ],
)
def test_the_bound_on_votes_needs_thousands_of_audits_without_an_alarm(count, least, bound):
    votes = np.full(count, 0.95)
    votes[:1] = least
    assert agreement_bound(votes) == bound
    found = whole_bounds(Whole(agreements=[np.full(5, vote) for vote in votes]), 100_000)
    assert found["agreement_audits"] == count
    assert JudgeSection(**found).agreement_bound_micro == bound


@pytest.mark.parametrize(
    ("distance", "factor"),
    [(0.0, 600), (0.01, 600), (0.0101, 100), (0.066, 100), (0.08, 69), (0.133, 25), (0.14, None)],
)
def test_the_sketch_factor_leaves_room_above_honest_differences(distance, factor):
    assert sketch_factor(distance) == factor


def test_the_worst_of_several_kinds_is_kept():
    one = Whole(0.1, 0.9, 3, np.arange(5.0), agreements=[np.zeros(5)])
    two = Whole(0.2, 0.8, 4, np.ones(5), agreements=[np.ones(5)])
    one.strays[0], two.strays[:2] = 2, 5
    both = Whole.of([one, two])
    assert_fields(both, distance=0.2, least_share=0.8, num_small=7)
    assert both.small_errors.tolist() == [1, 1, 2, 3, 4]
    assert both.strays[:3].tolist() == [7, 5, 0]
    assert both.votes_above(FLOORS[0]).tolist() == [0, 1]
