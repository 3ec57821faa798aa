"""Exact constants and the learning rate: every bit decided by integers."""

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules import exact
from troth_coordinator.rules.config import ScheduleSection
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.schedule import constants_of, lr_nano

LARGEST = (2**24 - 1) * 2**104
SMALLEST_NORMAL = Fraction(1, 2**126)


def neighbours(value):
    pattern = struct.unpack("<I", struct.pack("<f", value))[0]
    return [
        Fraction(struct.unpack("<f", struct.pack("<I", near))[0])
        for near in (pattern - 1, pattern + 1)
        if near < 0x7F800000
    ]


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_nothing_representable_is_nearer(numerator, denominator):
    ratio = Fraction(numerator, denominator)
    made = Fraction(exact.nearest_fp32(numerator, denominator))
    assert all(abs(made - ratio) <= abs(near - ratio) for near in neighbours(float(made)))


@given(st.integers(2**23, 2**24 - 1), st.integers(-149, 104))
def test_representable_numbers_are_themselves(significand, exponent):
    ratio = Fraction(significand) * Fraction(2) ** exponent
    assert exact.nearest_fp32(ratio.numerator, ratio.denominator) == math.ldexp(
        significand, exponent
    )


def test_ties_go_to_even():
    assert exact.nearest_fp32(2**24 + 1, 1) == 2**24
    assert exact.nearest_fp32(2**24 + 3, 1) == 2**24 + 4


def test_zero_and_the_ends_of_the_range():
    assert exact.nearest_fp32(0, 7) == 0.0
    assert exact.nearest_fp32(LARGEST, 1) == LARGEST
    smallest = exact.nearest_fp32(SMALLEST_NORMAL.numerator, SMALLEST_NORMAL.denominator)
    assert smallest == float(SMALLEST_NORMAL)


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(-1, 1), (1, 0), (1, -3), (1, 2**127), (2**128, 1), (2 * LARGEST + 2**104, 2)],
)
def test_what_is_no_normal_fp32_is_refused(numerator, denominator):
    with pytest.raises(RangeError, match="fp32 constant"):
        exact.nearest_fp32(numerator, denominator)


def test_constants_of_a_step():
    plain = exact.step_constants(1_000_000, 0)
    assert plain.a == 1.0
    assert exact.fp32_bytes(plain.b).hex() == "6f12833a"
    assert exact.fp32_bytes(exact.step_constants(298_023_224, 100).a).hex() == "ffff7f3f"
    with pytest.raises(RangeError, match="lr_nano \\* wd_nano"):
        exact.step_constants(10**9, 10**9)
    assert exact.step_constants(10**9, 10**9 - 1).a > 0


def test_initial_values_have_the_deviation_of_the_config():
    values = list(exact.initial_values(bytes(32), "w", 4_000, 20_000_000))
    assert math.sqrt(sum(v * v for v in values) / len(values)) == pytest.approx(0.02, rel=0.03)
    assert max(map(abs, values)) <= 0.02 * math.sqrt(3) * 1.000001


@st.composite
def schedules(draw):
    rounds = draw(st.integers(1, 10_000))
    decay = draw(st.integers(0, rounds))
    return ScheduleSection(
        rounds=rounds,
        lr_nano=draw(st.integers(1, 10**9)),
        warmup_rounds=draw(st.integers(0, decay)),
        decay_from_round=decay,
    )


@given(schedules(), st.integers(0, 11_000))
def test_schedule_stays_within_its_bounds(schedule, round_):
    rate = lr_nano(schedule, round_)
    assert 0 <= rate <= schedule.lr_nano
    if round_ >= schedule.rounds:
        assert rate == 0
    elif schedule.warmup_rounds <= round_ <= schedule.decay_from_round < schedule.rounds:
        assert rate == schedule.lr_nano


@given(schedules(), st.integers(0, 11_000))
def test_schedule_rises_then_falls(schedule, round_):
    here, then = lr_nano(schedule, round_), lr_nano(schedule, round_ + 1)
    if round_ + 1 < schedule.warmup_rounds:
        assert here <= then
    elif round_ >= schedule.warmup_rounds:
        assert here >= then


def test_constants_of_a_round_use_its_learning_rate():
    schedule = ScheduleSection(rounds=10, lr_nano=1_000, warmup_rounds=2, wd_nano=5)
    assert constants_of(schedule, 0) == exact.step_constants(500, 5)
    assert constants_of(schedule, 1) == exact.step_constants(1_000, 5)
