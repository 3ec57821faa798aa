"""Prices of priority: never above a cap, never lower nearer to the deadline, nothing for none."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fields import assert_fields

from troth_coordinator.chain.errors import PriorityPolicyError
from troth_coordinator.chain.priority import (
    FLOOR,
    FULL_WINDOW,
    LAST_LEVEL,
    LEAST_EPOCH_SECONDS,
    MAX_PRICE,
    EpochLamports,
    PriorityKind,
    PriorityPolicy,
    lamports_of,
    least_epoch_seconds,
    level_of,
    percentile,
)
from troth_coordinator.rules.params import ChainParams

LEAST = 60.0
"""Seconds that the count of an epoch lasts at least."""

FIXED, SHARE = PriorityKind.FIXED, PriorityKind.PERCENTILE
prices = st.lists(st.integers(0, 10**9), max_size=200)
lamports = st.integers(0, 10**9)
units = st.integers(1, 1_400_000)
left = st.one_of(st.none(), st.integers(0, FULL_WINDOW))
policies = st.one_of(
    st.builds(PriorityPolicy, st.just(PriorityKind.NONE), st.just(0), lamports, lamports),
    st.builds(PriorityPolicy, st.just(FIXED), st.integers(1, MAX_PRICE), lamports, lamports),
    st.builds(PriorityPolicy, st.just(SHARE), st.integers(1, 100), lamports, lamports),
)


def price_of(policy, recent, left_of_window, units_, lamports_left, is_tried):
    level = level_of(left_of_window, is_tried=is_tried)
    return policy.price(policy.base(recent), level, units_, lamports_left)


@given(policies, prices, left, units, lamports, st.booleans())
def test_a_price_never_costs_more_than_a_cap(policy, recent, left_of_window, num, rest, is_tried):
    price = price_of(policy, recent, left_of_window, num, rest, is_tried)
    assert 0 <= price <= MAX_PRICE
    assert lamports_of(price, num) <= min(policy.cap_lamports, rest)


@given(policies, prices, st.tuples(left, left), units, lamports, st.booleans())
def test_a_price_never_falls_nearer_to_the_deadline(policy, recent, pair, num, rest, is_tried):
    early, late = sorted(pair, key=lambda one: FULL_WINDOW if one is None else one, reverse=True)
    args = num, rest, is_tried
    assert price_of(policy, recent, early, *args) <= price_of(policy, recent, late, *args)


@given(policies, prices, left, units, lamports)
def test_a_repetition_never_offers_less(policy, recent, left_of_window, num, rest):
    args = policy, recent, left_of_window, num, rest
    assert price_of(*args, is_tried=False) <= price_of(*args, is_tried=True)


@given(prices, left, units, lamports, st.booleans())
def test_none_is_nothing(recent, left_of_window, num, rest, is_tried):
    args = recent, left_of_window, num, rest, is_tried
    assert price_of(PriorityPolicy(), *args) == 0


@pytest.mark.parametrize(
    ("left_of_window", "is_tried", "level"),
    [
        (None, True, 0),
        (FULL_WINDOW, True, 0),
        (501, True, 0),
        (500, False, 1),
        (251, True, 1),
        (250, True, 2),
        (126, True, 2),
        (125, False, 2),
        (125, True, LAST_LEVEL),
        (0, True, LAST_LEVEL),
    ],
)
def test_levels(left_of_window, is_tried, level):
    assert level_of(left_of_window, is_tried=is_tried) == level


def test_a_quiet_chain_costs_nothing_until_time_is_short():
    policy = PriorityPolicy.parse("percentile:75")
    offered = [policy.price(policy.base([0, 0]), level, 20_000, 10**9) for level in range(4)]
    assert offered == [0, 4 * FLOOR, 16 * FLOOR, 5_000_000]
    assert lamports_of(offered[LAST_LEVEL], 20_000) == policy.cap_lamports


def test_the_guide_says_what_a_late_transaction_pays_on_a_quiet_chain():
    guide = Path(__file__).parents[3] / "docs/guide/keep-running.md"
    words = " ".join(guide.read_text(encoding="utf-8").split())
    policy, used = PriorityPolicy.parse("percentile:75"), 200_000
    paid = [
        lamports_of(policy.price(0, level, used, policy.epoch_cap_lamports), used)
        for level in range(1, LAST_LEVEL + 1)
    ]
    told = "transaction of {:,} units pays {:,} lamports, then {:,}, then {:,}, the cap"
    assert told.format(used, *paid) in words


def test_what_others_pay_is_the_base():
    policy = PriorityPolicy.parse("percentile:75")
    assert policy.base([1_000, 4_000, 2_000, 3_000]) == 3_000
    assert policy.price(3_000, 0, 20_000, 10**9) == 3_000
    assert policy.price(300_000, 1, 20_000, 10**9) == 1_200_000


def test_a_fixed_price_needs_no_others():
    policy = PriorityPolicy.parse("fixed:5000", 1_000, 2_000)
    assert policy == PriorityPolicy(FIXED, 5_000, 1_000, 2_000)
    assert policy.base([7]) == 5_000


@pytest.mark.parametrize(
    ("found", "percent", "expected"),
    [([], 50, 0), ([7], 1, 7), ([1, 2, 3, 4], 50, 2), ([4, 3, 2, 1], 51, 3), ([1, 2], 100, 2)],
)
def test_percentiles(found, percent, expected):
    assert percentile(found, percent) == expected


@pytest.mark.parametrize("text", ["none", "fixed:1", "percentile:100"])
def test_a_policy_reads_what_it_writes(text):
    assert str(PriorityPolicy.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "none:1",
        "fixed",
        "fixed:",
        "fixed:0",
        "fixed:-1",
        "fixed:\N{ARABIC-INDIC DIGIT ONE}",
        f"fixed:{2**64}",
        "fixed:" + "9" * 5_000,
        "percentile:0",
        "percentile:101",
        "median:1",
    ],
)
def test_an_unknown_policy_is_refused_with_those_there_are(text):
    with pytest.raises(PriorityPolicyError, match=r"none, fixed:N .* or percentile:P"):
        PriorityPolicy.parse(text)


def test_the_lamports_of_an_epoch():
    epoch = EpochLamports(100)
    epoch.begin(3, 0.0, LEAST)
    epoch.hold(40)
    epoch.hold(50)
    assert epoch.left == 10
    epoch.settle(40, 0)
    epoch.settle(50, 50)
    assert_fields(epoch, spent=50, held=0, left=50)
    epoch.begin(2, 1.0, LEAST)
    epoch.begin(3, 2.0, LEAST)
    assert epoch.spent == 50, "an older view of the run starts no epoch"
    epoch.begin(4, LEAST, LEAST)
    assert_fields(epoch, spent=0, left=100)


def test_epochs_that_a_node_makes_up_renew_no_cap_before_one_can_be_over():
    """Each answer shows a newer epoch; in ten times the least length of one, ten caps are paid."""
    epoch, paid = EpochLamports(100), 0
    for second in range(10 * int(LEAST)):
        epoch.begin(1_000 + second, float(second), LEAST)
        paid += epoch.left
        epoch.settle(0, epoch.left)
    assert paid == 10 * 100


def test_a_false_epoch_does_not_hold_up_the_next_true_one():
    epoch = EpochLamports(100)
    epoch.begin(2**64 - 2, 0.0, LEAST)
    epoch.settle(0, 100)
    epoch.begin(3, 1.0, LEAST)
    assert_fields(epoch, "the number is corrected, the count is not", epoch=3, left=0)
    epoch.begin(4, 1.0 + LEAST, LEAST)
    assert_fields(epoch, epoch=4, left=100)


def test_a_cap_lasts_a_quarter_of_the_windows_of_an_epoch():
    params = ChainParams.public().to_view()
    assert least_epoch_seconds(params) == 500 * (150 + 125) // 4 * 0.4
    short = replace(params, rounds_per_epoch=1, commit_slots=1, attest_slots=1)
    assert least_epoch_seconds(short) == LEAST_EPOCH_SECONDS
