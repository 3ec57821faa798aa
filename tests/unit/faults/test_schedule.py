"""Schedules of faults: equal seeds, bounds, every kind equally often."""

from collections import Counter

import pytest

from troth_simulation.faults.schedule import KILLED_SLOTS, Weather, schedule
from troth_simulation.faults.trouble import PEER_TROUBLES, RPC_TROUBLES, Kind


def weather(**changes):
    fields = {
        "kinds": tuple(Kind),
        "members": range(5),
        "num_slots": 9_000,
        "period_slots": 30,
        "seed": 1,
    }
    return Weather(**fields | changes)


def test_equal_weather_gives_equal_faults_and_another_seed_others():
    assert schedule(weather()) == schedule(weather())
    assert schedule(weather()) != schedule(weather(seed=2))


def test_an_hour_has_three_hundred_faults_of_all_kinds_equally_often():
    faults = schedule(weather(num_slots=9_030))
    assert len(faults) == 300
    counts = Counter(fault.kind for fault in faults)
    assert set(counts) == set(Kind)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert all(fault.num_slots <= KILLED_SLOTS[1] for fault in faults if fault.kind is Kind.KILL)


def test_nobody_has_two_faults_and_never_more_than_two_have_one():
    faults = schedule(weather(period_slots=4))
    assert len(faults) > 500
    for fault in faults:
        others = [one for one in faults if one.slot <= fault.slot < one.end_slot]
        assert len(others) == len({one.member for one in others}) <= 2


@pytest.mark.parametrize("changes", [{"kinds": ()}, {"members": ()}, {"period_slots": 0}])
def test_weather_that_cannot_be_drawn_is_refused(changes):
    with pytest.raises(ValueError, match="expected"):
        weather(**changes)


def test_every_kind_has_exactly_one_way_to_happen():
    own = {Kind.KILL, Kind.STOP, Kind.DISK_FULL}
    assert own | set(RPC_TROUBLES) | set(PEER_TROUBLES) == set(Kind)
    assert not RPC_TROUBLES.keys() & PEER_TROUBLES.keys()
