"""The price of refusing an audit, and when it counts again. Next: rules/refusal.py."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.refusal import LEAST_REWARDS, Refusals, add_refusal, openings_price

REWARD = 1_000


@pytest.mark.parametrize(
    ("p_ppm", "sum_ppm", "limit", "price"),
    [
        (500_000, 2_000_000, 4, 12_000),
        (100_000, 2_000_000, 4, 18_000),
        (100_000, 8_000_000, 4, 36_000),
        (0, 0, 0, 1_800_000_000),
    ],
)
def test_the_rarer_the_audit_the_dearer_its_refusal(p_ppm, sum_ppm, limit, price):
    assert openings_price(REWARD, p_ppm, sum_ppm, limit) == price


@given(st.integers(1, 10**6), st.integers(0, 64 * 10**6), st.integers(1, 64))
def test_refusing_every_audit_never_pays(p_ppm, sum_ppm, limit):
    """One refusal costs more than unseen rounds earn between two audits."""
    share = min(Fraction(1), Fraction(limit * 10**6, sum_ppm)) if sum_ppm else Fraction(1)
    rounds_between = 1 / (Fraction(p_ppm, 10**6) * share)
    price = openings_price(REWARD, p_ppm, sum_ppm, limit)
    assert price >= Fraction(9, 5) * REWARD * rounds_between
    assert price >= LEAST_REWARDS * REWARD


def test_a_price_fits_its_field():
    assert openings_price(2**64 - 1, 0, 2**64 - 1, 1) == 2**64 - 1


def test_one_outage_is_one_step():
    known, is_first = add_refusal(Refusals(), 5, 8, 4)
    assert is_first
    assert known == Refusals(1, 4, 8)
    assert known.doublings == 0
    same, is_further = add_refusal(known, 8, 30, 20)
    assert not is_further
    assert same == known
    later, is_next = add_refusal(known, 9, 30, 20)
    assert is_next
    assert later == Refusals(2, 20, 30)
    assert later.doublings == 1


def test_the_third_step_stays_until_five_hundred_included_rounds_forget_it():
    known = Refusals(3, 100, 7)
    assert add_refusal(known, 8, 9, 600)[0].step == 3
    assert add_refusal(known, 8, 9, 601)[0].step == 1
    assert Refusals().doublings == 0 and Refusals().decided_round == NONE
