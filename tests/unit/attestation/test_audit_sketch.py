"""Sketches: what all who computed agree on, and nobody else knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged_work import SIGMA, gradients

from troth_attestation import sketch
from troth_attestation.errors import ReportError, TensorError

SKETCHES = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=64, max_size=64)


def unit(values):
    """Scale as a clipped gradient is."""
    return (values / np.linalg.norm(values)).astype(np.float32)


PARTS = gradients(1, 2)
OWN = unit(PARTS[-1].mean(axis=0))


def relative(first, second):
    a, b = np.array(first, np.float64), np.array(second, np.float64)
    return np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b))


def test_two_who_computed_agree():
    rng = np.random.default_rng(0)
    other = OWN * (1 + 0.01 * rng.normal(size=OWN.shape).astype(np.float32))
    first, second = sketch.sketch(OWN, SIGMA, 3), sketch.sketch(other, SIGMA, 3)
    assert not sketch.differ(first, second)
    assert relative(first, second) < 0.02


@pytest.mark.parametrize("used", [7, 4, 1])
def test_who_computed_less_differs(used):
    part = unit(PARTS[-1][:used].mean(axis=0))
    assert sketch.differ(sketch.sketch(OWN, SIGMA, 3), sketch.sketch(part, SIGMA, 3))


def test_a_sketch_serves_one_target_of_one_round_only():
    own = sketch.sketch(OWN, SIGMA, 3)
    assert sketch.differ(own, sketch.sketch(OWN, SIGMA, 4))
    assert sketch.differ(own, sketch.sketch(OWN, bytes(32), 3))
    assert sketch.differ(own, sketch.sketch(-OWN, SIGMA, 3))


def test_a_sketch_has_the_norm_of_the_gradient():
    values = np.array(sketch.sketch(OWN, SIGMA, 3)) / sketch.SCALE
    assert np.linalg.norm(values) == pytest.approx(1, rel=0.25)


def test_buckets_and_signs_are_even():
    """64 buckets of both signs: none is a third away from its share of 2^17 bytes."""
    places = sketch._places(b"any", 2**17)
    counts = np.bincount(places, minlength=128)
    assert counts.size == 128
    assert abs(counts / 2**10 - 1).max() < 1 / 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5 / 2**23, 0),
        (1.5 / 2**23, 2),
        (-0.5 / 2**23, 0),
        (-2.5 / 2**23, -2),
        (1e300, 2**31 - 1),
        (-1e300, -(2**31)),
        (255.99999999, 2**31 - 1),
    ],
)
def test_rounding_is_half_to_even_and_saturates(value, expected):
    assert sketch.fixed_point(value) == expected


def test_the_difference_rule_is_exact_at_its_edge():
    first = (10,) + (0,) * 63
    assert not sketch.differ(first, (9,) + (0,) * 63)
    assert sketch.differ((100,) + (0,) * 63, (89,) + (0,) * 63)
    assert not sketch.differ((0,) * 64, (0,) * 64)
    assert sketch.differ((0,) * 64, (1,) + (0,) * 63)
    assert sketch.differ((2**31 - 1,) * 64, (-(2**31),) * 64)


@given(SKETCHES, SKETCHES)
def test_difference_does_not_depend_on_the_order(first, second):
    assert sketch.differ(first, second) == sketch.differ(second, first)
    assert not sketch.differ(first, first)


@given(SKETCHES)
def test_bytes_and_back(values):
    assert list(sketch.decode(sketch.encode(values))) == values


@pytest.mark.parametrize("values", [[0] * 63, [0] * 65, [2**31] + [0] * 63, []])
def test_what_is_no_sketch_is_refused(values):
    with pytest.raises(ReportError, match="64 int32"):
        sketch.sketch_hash(values)


@pytest.mark.parametrize("size", [0, 255, 257])
def test_other_lengths_are_refused(size):
    with pytest.raises(ReportError, match="256 bytes"):
        sketch.decode(bytes(size))


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, 1]])
def test_gradients_that_cannot_be_projected_are_refused(values):
    with pytest.raises(TensorError, match="finite coefficients"):
        sketch.sketch(np.array(values, np.float32), SIGMA, 0)


def test_every_chunk_has_a_stream_of_its_own():
    """The first coefficients of four chunks each count once, not all in the same bucket."""
    values = np.zeros(3 * sketch.CHUNK + 1, np.float32)
    values[:: sketch.CHUNK] = [1, 2, 4, 8]
    made = np.array(sketch.sketch(values, SIGMA, 1)) / sketch.SCALE
    alone = [np.zeros(3 * sketch.CHUNK + 1, np.float32) for _ in range(4)]
    for number, one in enumerate(alone):
        one[number * sketch.CHUNK] = 2**number
    parts = [np.array(sketch.sketch(one, SIGMA, 1)) / sketch.SCALE for one in alone]
    assert np.array_equal(sum(parts), made)
    assert len({int(abs(part).argmax()) for part in parts}) > 1
