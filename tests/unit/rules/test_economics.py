"""The closed formulas: the worked values of the research, and what must hold for all values."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules import economics
from troth_coordinator.rules.errors import RangeError

SOL = 10**9
DEFAULT = economics.Assumptions(
    p_ppm=100_000,
    power_ppm=950_000,
    capture_ppm=50_000,
    lazy_ppm=200_000,
    seats=3,
    reward=SOL,
    cost=8 * SOL // 10,
    gain=8 * SOL // 10,
    outside_gain=0,
    unvested=0,
    fee_cost=0,
    keep_stake=60 * SOL,
    people=64,
    max_audits=15,
    forged_ppm=50_000,
    drawn_tiles=64,
)


@pytest.mark.parametrize(
    ("p", "q", "mu", "outside", "d", "stake"),
    [
        (100_000, 950_000, 50_000, 0, 0.0903, 7.9),
        (50_000, 900_000, 100_000, 0, 0.0405, 18.8),
        (20_000, 900_000, 100_000, 0, 0.0162, 48.4),
        (100_000, 950_000, 50_000, 50, 0.0903, 562),
    ],
)
def test_the_worked_values_of_the_research(p, q, mu, outside, d, stake):
    given_ = replace(DEFAULT, p_ppm=p, power_ppm=q, capture_ppm=mu, outside_gain=outside * SOL)
    found = economics.advise(given_)
    assert float(found.detection) == pytest.approx(d, abs=1e-4)
    assert found.minimum_stake / SOL == pytest.approx(stake, rel=6e-3)


@pytest.mark.parametrize(
    ("p", "rounds"),
    [(20_000, 149), (50_000, 59), (100_000, 29), (250_000, 11), (950_000, 1), (10**6, 1)],
)
def test_rounds_until_95_percent_are_caught(p, rounds):
    assert economics.rounds_to_capture(Fraction(p, 10**6)) == rounds


def test_whole_numbers_of_rounds_are_exact():
    assert economics.rounds_to_capture(Fraction(9, 10), 990_000) == 2
    assert economics.rounds_to_capture(Fraction(9, 10), 999_999) == 6
    assert economics.rounds_to_capture(Fraction(1, 2), 875_000) == 3


@given(st.fractions(Fraction(1, 500), 1), st.integers(1, 999_999))
def test_one_round_less_would_not_do(d, confidence):
    rounds = economics.rounds_to_capture(d, confidence)
    missed = Fraction(10**6 - confidence, 10**6)
    assert (1 - d) ** rounds <= missed
    assert (1 - d) ** (rounds - 1) > missed


@given(
    st.integers(0, 2**50),
    st.fractions(Fraction(1, 1000), 1),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
def test_the_minimum_stake_is_the_least_that_deters(gain, d, reward, unvested):
    stake = economics.minimum_stake(gain, d, reward, unvested)
    assert d * (stake + unvested + reward) >= gain
    if stake:
        assert d * (stake - 1 + unvested + reward) < gain


def test_vesting_replaces_stake():
    assert economics.advise(replace(DEFAULT, unvested=24 * SOL)).minimum_stake == 0


def test_witnesses_are_paid_their_cost_and_lose_more_by_laziness():
    found = economics.advise(replace(DEFAULT, fee_cost=5000))
    assert found.witness_pay == DEFAULT.cost + 5000
    assert found.laziness_caught == Fraction(96, 100)
    assert found.witness_penalty == 10 * DEFAULT.cost
    assert found.audit_share == Fraction(3, 10)
    rare = economics.advise(replace(DEFAULT, lazy_ppm=980_000))
    assert rare.witness_penalty * rare.laziness_caught > DEFAULT.cost
    assert rare.witness_penalty > 10 * DEFAULT.cost


def test_without_detection_there_is_no_advice_on_stakes():
    found = economics.advise(replace(DEFAULT, p_ppm=0, lazy_ppm=10**6))
    assert found.rounds_to_capture is None
    assert found.minimum_stake is None
    assert found.witness_penalty is None
    assert found.false_slash_ppb is None
    assert not found.is_refusing_deterred


def test_refusing_to_open_costs_more_than_unseen_rounds_earn():
    """12 rewards at least, 1.8 / q where audits are rare, twice as much the next time."""
    found = economics.advise(DEFAULT)
    assert found.refusal_prices == (18 * SOL, 30 * SOL, 30 * SOL), (
        "at most half of the stake to keep"
    )
    assert found.is_refusing_deterred
    often = economics.advise(replace(DEFAULT, p_ppm=200_000, keep_stake=500 * SOL))
    assert often.refusal_prices == (12 * SOL, 24 * SOL, 48 * SOL)
    rare = replace(DEFAULT, p_ppm=20_000)
    assert not economics.advise(rare).is_refusing_deterred, "the stake bounds the price"
    assert economics.advise(replace(rare, keep_stake=200 * SOL)).is_refusing_deterred


def test_the_limit_of_audits_makes_each_one_rarer_and_dearer():
    assert economics.drawn_chance(100_000, 64, 15) == Fraction(1, 10)
    assert economics.drawn_chance(500_000, 64, 15) == Fraction(15, 64)
    few = replace(DEFAULT, p_ppm=500_000, max_audits=2, keep_stake=500 * SOL)
    newcomers = economics.advise(few)
    assert newcomers.refusal_prices[0] == 57_600_000_000
    assert newcomers.audit_share == Fraction(3 * 2, 64)


@pytest.mark.parametrize(("forged", "seen"), [(0, 0.0), (5_000, 0.274), (50_000, 0.962)])
def test_one_forged_tile_that_is_drawn_is_enough(forged, seen):
    found = economics.advise(replace(DEFAULT, forged_ppm=forged))
    assert float(found.forging_seen) == pytest.approx(seen, abs=1e-3)
    assert (found.rounds_to_see_forging is None) == (forged == 0)


def test_low_rank_gradients_are_priced_and_not_punished():
    assert economics.advise(DEFAULT).low_rank_saves == DEFAULT.cost // 3


def test_colluders_need_three_of_five_seats_and_then_the_jury():
    fifth = economics.captured(64, 13)
    assert float(fifth) == pytest.approx(0.158, abs=1e-3)
    assert economics.captured(64, 0) == 0
    assert economics.captured(64, 64) == 1
    assert economics.captured(7, 1) == 1, "too few people for seats and a jury"


def test_honest_work_pays_only_below_a_rate_of_false_slashes():
    found = economics.advise(DEFAULT)
    rate = Fraction(found.false_slash_ppb, 10**9)
    margin = DEFAULT.reward - DEFAULT.cost
    assert rate * found.minimum_stake <= margin < (rate + Fraction(1, 10**9)) * found.minimum_stake
    assert economics.advise(replace(DEFAULT, cost=2 * SOL)).false_slash_ppb == 0


@pytest.mark.parametrize(
    ("bad", "seats", "needed", "chance"),
    [
        (13, 3, 3, 0.007),
        (13, 3, 2, 0.10),
        (13, 5, 4, 0.005),
        (13, 7, 5, 0.003),
        (21, 5, 4, 0.036),
        (21, 7, 5, 0.034),
    ],
)
def test_committees_are_captured_as_rarely_as_the_research_says(bad, seats, needed, chance):
    assert float(economics.capture(64, bad, seats, needed)) == pytest.approx(chance, abs=0.006)


@given(st.integers(1, 64), st.data())
def test_capture_is_a_probability_and_grows_with_the_bad(people, data):
    bad = data.draw(st.integers(0, people))
    seats = data.draw(st.integers(1, people))
    chance = economics.capture(people, bad, seats, 1)
    assert 0 <= chance <= 1
    assert economics.capture(people, bad, seats, 0) == 1
    assert economics.capture(people, people, seats, seats) == 1


@pytest.mark.parametrize(
    "change", [{"p_ppm": -1}, {"power_ppm": 10**6 + 1}, {"reward": -1}, {"seats": 0}]
)
def test_impossible_assumptions_are_refused(change):
    with pytest.raises(RangeError, match=next(iter(change))):
        replace(DEFAULT, **change)


def test_impossible_questions_are_refused():
    with pytest.raises(RangeError, match="Sample some rounds"):
        economics.rounds_to_capture(Fraction(0))
    with pytest.raises(RangeError):
        economics.rounds_to_capture(Fraction(1, 2), 10**6)
    with pytest.raises(RangeError, match="No stake deters"):
        economics.minimum_stake(1, Fraction(0), 0, 0)
    with pytest.raises(RangeError, match="committee"):
        economics.capture(4, 5, 2, 1)
    with pytest.raises(RangeError, match="committee"):
        economics.capture(4, 1, 5, 1)
