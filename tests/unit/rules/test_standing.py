"""Misses, strikes, membership: who is in, who is out, who comes back when."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fields import assert_fields
from support.views import EMPTY, PARAMS, entry, key, network, roster, run_view

from troth_coordinator.rules import membership, progress, standing
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.params_checks import jury_duty_slots
from troth_coordinator.rules.view import EntryFlag, Role, Status

DUTIES = st.lists(st.builds(standing.Duty, st.booleans(), st.booleans()), min_size=1, max_size=2)


@given(st.lists(DUTIES, max_size=40))
def test_a_round_done_in_full_forgives_all_misses(rounds):
    misses = standing.Misses()
    for duties in rounds:
        misses = standing.after_round(misses, duties)
        assert 0 <= misses.deadline_in_row <= misses.in_row
    done = [standing.Duty(has_acted=True, ran_to_deadline=True)] * 2
    assert standing.after_round(misses, done) == standing.Misses()
    assert not standing.Misses().is_inactive


def test_who_attests_but_never_commits_is_absent():
    half = [standing.Duty(False, True), standing.Duty(True, True)]
    misses = standing.Misses()
    for count in (1, 2, 3):
        misses = standing.after_round(misses, half)
        assert misses == standing.Misses(count, count)
        assert misses.is_inactive == (count == 3)


def test_counters_stay_within_u16():
    full = standing.Misses(2**16 - 1, 2**16 - 1)
    assert standing.after_round(full, [standing.Duty(False, True)] * 2) == full


@given(st.lists(st.integers(0, 150), min_size=1, max_size=30))
def test_jail_needs_three_strikes_within_a_hundred_rounds(gaps):
    ring, since_jail, round_ = standing.NO_STRIKES, [], 0
    for gap in gaps:
        round_ += gap
        since_jail.append(round_)
        ring, is_jailed = standing.add_strike(ring, round_)
        recent = [r for r in since_jail if round_ - r < standing.STRIKE_ROUNDS]
        assert is_jailed == (len(recent) >= 3)
        if is_jailed:
            assert ring == standing.NO_STRIKES
            since_jail = []


@given(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(1, 600))
def test_the_second_inactivity_waits_for_the_next_epoch(before, later, epoch):
    now = before + later
    back = standing.return_round(before, now, epoch)
    if later > standing.REPEAT_ROUNDS:
        assert back == now
    else:
        assert now < back <= now + epoch
        assert back % epoch == 0
    assert standing.return_round(NONE, now, epoch) == now


def test_the_short_go_with_the_leaving_and_still_vote_in_the_root_only_step():
    """Below the stake to keep, or after a conviction below the one to join with."""
    short = entry(1, stake=PARAMS.keep_stake_lamports - 1)
    convict = entry(2, stake=PARAMS.min_stake_lamports - 1, work_faults=1)
    enough = entry(3, stake=PARAMS.keep_stake_lamports)
    sets = membership.sets_at_open(roster(short, convict, enough, entry(4)), 7, PARAMS)
    assert sets.members == 0b1100
    assert_fields(membership.sets_at_open(roster(short, convict), 7, PARAMS), members=0b11)


@pytest.mark.parametrize(("stake", "is_ready"), [(0, True), (1, False)])
def test_the_short_are_never_ready(stake, is_ready):
    run = run_view()
    one = entry(1, ready_round=run.root_round, stake=PARAMS.keep_stake_lamports - stake)
    assert progress.is_ready_for(one, run) == is_ready


def test_the_sets_of_a_round():
    entries = roster(
        entry(1, rounds_served=20, included_since_strike=20),
        entry(2, roles=Role.TRAINER, included_since_strike=19),
        entry(3, roles=Role.WITNESS, rounds_served=19),
        entry(4, status=Status.INACTIVE),
        entry(5, flags=EntryFlag.LEAVING),
        entry(6, active_round=8),
        entry(7, active_round=7, rounds_served=21),
    )
    params = PARAMS.__class__(
        **{name: getattr(PARAMS, name) for name in PARAMS.__slots__} | {"seat_after_rounds": 20}
    )
    sets = membership.sets_at_open(entries, 7, params)
    assert sets.members == 0b1000111
    assert sets.trainers == 0b1000011
    assert sets.eligible == 0b1000101, "the third has earned no seat, but the bench is short"
    assert sets.is_new == 0b1000110


def test_who_is_leaving_still_votes_in_a_root_only_step():
    entries = roster(entry(1), entry(2, flags=EntryFlag.LEAVING), entry(3, roles=Role.WITNESS))
    last = PARAMS.max_rounds
    assert membership.sets_at_open(entries, last - 1, PARAMS).members == 0b101
    assert membership.sets_at_open(entries, last, PARAMS).members == 0b111, "all rounds are done"
    few = roster(entry(1), entry(2, flags=EntryFlag.LEAVING))
    assert membership.sets_at_open(few, 7, PARAMS).trainers == 0b11, "fewer than the minimum stay"
    idle = roster(entry(1, flags=EntryFlag.LEAVING), *(entry(2, roles=Role.WITNESS),) * 2)
    assert membership.sets_at_open(idle, 7, PARAMS).trainers == 0b1, "no trainer stays"


def test_an_owner_is_found_while_it_takes_part():
    entries = roster(entry(1), entry(2, status=Status.LEFT), entry(3, status=Status.BARRED))
    assert membership.index_of_owner(entries, key(1)) == 0
    assert membership.index_of_owner(entries, key(2)) is None
    assert membership.index_of_owner(entries, key(3)) == 2
    assert membership.index_of_owner(entries, bytes(32)) is None


LEFT = entry(2, status=Status.LEFT, left_round=10, stake=0)


@pytest.mark.parametrize(
    ("used", "round_", "is_free"),
    [
        (EMPTY, 0, True),
        (entry(1), 99, False),
        (LEFT, 25, False),
        (LEFT, 26, True),
        (entry(2, status=Status.BARRED, left_round=10, stake=0), 26, True),
        (entry(2, status=Status.LEFT, left_round=10, stake=0, audits=1), 99, False),
        (entry(2, status=Status.LEFT, left_round=10), 99, False),
        (entry(2, status=Status.LEFT, left_round=NONE, stake=0), 99, False),
    ],
)
def test_an_index_is_free_again_a_ring_after_its_owner_left(used, round_, is_free):
    assert membership.is_free(used, round_, ring=16) is is_free


def test_newcomers_take_the_lowest_free_index_within_the_capacity():
    found = membership.free_indices(network(entries=roster(entry(1), EMPTY, entry(3))))
    assert found == [1, *range(3, PARAMS.capacity)]
    full = roster(*(entry(number) for number in range(PARAMS.capacity)))
    assert membership.free_indices(network(entries=full)) == []


@pytest.mark.parametrize(
    ("changes", "slots", "is_free"),
    [
        ({}, 0, False),
        ({}, 1, True),
        ({"status": Status.BARRED}, 0, True),
        ({"active_round": NONE}, 0, True),
    ],
)
def test_an_index_is_free_once_its_owner_can_be_on_no_jury(changes, slots, is_free):
    gone = replace(LEFT, **{"last_action": 1_000, **changes})
    slot = 1_000 + jury_duty_slots(PARAMS) + slots
    view = network(slot, run=run_view(round=99), entries=roster(gone))
    assert (0 in membership.free_indices(view)) is is_free


@pytest.mark.parametrize(
    ("last", "round_", "previous"),
    [(NONE, 7, NONE), (49, 50, NONE), (50, 99, 50), (98, 99, 98), (0, 49, 0)],
)
def test_residuals_end_with_their_period(last, round_, previous):
    assert membership.previous_included(last, round_, residual_rounds=50) == previous
