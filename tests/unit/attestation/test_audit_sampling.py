"""The draw: nobody chooses it, everybody computes the same, and nobody judges itself."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth_attestation import sampling
from troth_attestation.sampling import Payloads, Rates
from troth_coordinator.rules import bitmap as bitmaps
from troth_coordinator.rules.errors import RangeError

SEEDS = st.binary(min_size=32, max_size=32)
BITMAPS = st.integers(0, 2**64 - 1)
ALL = 2**64 - 1


def seed_of(number):
    return hashlib.sha256(str(number).encode()).digest()


def test_certainty_samples_everybody_and_zero_nobody():
    assert sampling.is_sampled(2**64 - 1, 10**6)
    assert not sampling.is_sampled(0, 0)
    assert sampling.is_sampled(0, 1)
    edge = 2**64 // 2
    assert not sampling.is_sampled(edge, 500_000)
    assert sampling.is_sampled(edge - 1, 500_000)


@given(SEEDS, BITMAPS, BITMAPS, st.integers(1, 64))
def test_the_sample_lies_in_the_included_set_and_under_the_limit(seed, included, is_new, cap):
    payloads = Payloads(included, is_new)
    targets = sampling.sampled_targets(seed, payloads, Rates(300_000, 900_000, cap))
    assert list(targets) == sorted(set(targets))
    assert len(targets) <= cap
    assert all(bitmaps.has(included, target) for target in targets)
    free = sampling.sampled_targets(seed, payloads, Rates(300_000, 900_000, 64))
    assert set(targets) <= set(free)
    assert len(targets) == min(cap, len(free))


@given(SEEDS, BITMAPS, BITMAPS, BITMAPS, st.integers(1, 64))
def test_probation_displaces_others_and_never_adds_what_is_not_included(
    seed, included, is_new, due, cap
):
    rates = Rates(300_000, 900_000, cap)
    targets = set(sampling.sampled_targets(seed, Payloads(included, is_new, due), rates))
    first = {target for target in range(64) if (included & due) >> target & 1}
    plain = sampling.sampled_targets(
        seed, Payloads(included & ~due, is_new), Rates(300_000, 900_000, 64)
    )
    assert len(targets & first) == min(cap, len(first))
    assert len(targets) == min(cap, len(first) + len(plain))
    assert targets <= first | set(plain)


@given(SEEDS, BITMAPS)
def test_a_doubled_round_samples_all_that_a_plain_one_would(seed, included):
    plain = sampling.sampled_targets(seed, Payloads(included), Rates(200_000, 10**6, 64))
    doubled = sampling.sampled_targets(seed, Payloads(included), Rates(200_000, 10**6, 64, True))
    assert set(plain) <= set(doubled)
    assert Rates(200_000, 900_000, 64, True).ppm(True) == 10**6
    assert Rates(200_000, 900_000, 64, True).ppm(False) == 400_000


def test_the_limit_follows_the_cap_the_newcomers_and_the_witnesses():
    assert sampling.limit(4, 1, 0b1111, 0b0011, ALL) == 4
    assert sampling.limit(4, 1, 0b1111, 0b0111, ALL) == 8
    assert sampling.limit(4, 1, 0b1111, 0, 0b11_1111) == 2
    assert sampling.limit(4, 2, 0b1111, 0, 0b11_1111) == 4
    assert sampling.limit(4, 3, 0b1111, 0, 0) == 1


def test_a_tenth_is_sampled_at_a_tenth():
    rates = Rates(100_000, 500_000, 64)
    drawn = sum(len(sampling.sampled_targets(seed_of(n), Payloads(ALL), rates)) for n in range(300))
    assert drawn / (300 * 64) == pytest.approx(0.1, abs=0.01)


@given(SEEDS, st.integers(0, 63), BITMAPS)
def test_seats_are_eligible_distinct_and_never_the_target(seed, target, eligible):
    seats = sampling.seats_of(seed, target, eligible)
    others = bitmaps.count(eligible & ~(1 << target))
    assert len(seats) == (min(7, others) if others >= 3 else 0)
    assert len(set(seats)) == len(seats)
    assert target not in seats
    for witness in range(64):
        number = sampling.seat_number(seed, target, witness, eligible)
        if witness in seats:
            assert number == seats.index(witness)
        else:
            assert number is None or number >= 7


PLACES = st.sets(st.integers(0, 63))


@given(SEEDS, BITMAPS, st.sets(st.integers(0, 63), max_size=2), PLACES, PLACES)
def test_a_jury_leaves_out_who_must_not_judge(seed, eligible, barred, seats, accusers):
    drawn = sampling.jury(seed, eligible, barred, seats, accusers)
    everybody = {j for j in range(64) if eligible >> j & 1 and j not in barred}
    fresh = everybody - seats
    num = len(fresh) if len(fresh) >= 5 else min(5, len(everybody))
    assert set(drawn) <= everybody
    assert len(drawn) == (min(7, num) if num >= 3 else 0)
    if len(fresh) >= 5:
        assert set(drawn) <= fresh
    elif drawn:
        filling = set(drawn) - fresh
        assert fresh <= set(drawn)
        assert not filling & accusers or everybody & seats - accusers <= filling


def test_seats_fill_a_small_jury_and_its_accusers_last():
    seats, accusers = [1, 2, 3, 4, 5], [1, 2, 3]
    drawn = sampling.jury(seed_of("small"), 0b1111_1111, [0], seats, accusers)
    assert len(drawn) == 5
    assert {4, 5, 6, 7} <= set(drawn), "the accusers fill the last place only"


def test_cases_that_take_the_same_slot_draw_different_people():
    slot_hash, run = seed_of("slot"), seed_of("run")
    drawn = {
        sampling.jury(sampling.case_seed(slot_hash, run, 4, target, kind), ALL, [], [], [])
        for target in range(5)
        for kind in range(3)
    }
    assert len(drawn) == 15


@settings(deadline=None)
@given(SEEDS, st.integers(0, 63), st.integers(1, 10**6), st.integers(1, 100))
def test_drawn_tiles_are_distinct_and_as_many_as_there_are(seed, target, num_tiles, count):
    drawn = sampling.drawn_tiles(seed, target, num_tiles, count)
    assert len(drawn) == min(count, num_tiles)
    assert list(drawn) == sorted(set(drawn))
    assert drawn[-1] < num_tiles


def test_no_set_of_tiles_is_safe_from_the_draw():
    """With one draw in each stratum, two strata of 32 held at most two draws for certain."""
    first = range(100 * 2 // 32)
    hits = [
        sum(tile in first for tile in sampling.drawn_tiles(seed_of(n), 5, 100, 32))
        for n in range(400)
    ]
    assert max(hits) >= 4
    assert sum(hits) / 400 == pytest.approx(32 * len(first) / 100, rel=0.1)


def test_targets_and_seeds_draw_different_tiles():
    draws = {
        sampling.drawn_tiles(seed_of(seed), target, 10**6, 64)
        for seed in range(3)
        for target in range(3)
    }
    assert len(draws) == 9


def test_arguments_that_are_off_are_refused():
    with pytest.raises(RangeError, match="num_tiles"):
        sampling.drawn_tiles(bytes(32), 0, 0, 64)
    with pytest.raises(RangeError, match="seed"):
        sampling.score("troth:sample", b"short")
    with pytest.raises(RangeError, match="participant index"):
        sampling.seats_of(bytes(32), 64, ALL)
