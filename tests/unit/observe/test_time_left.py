"""The time left follows from measured rounds and slots; without them there is a reason."""

import pytest

from troth_audit.rounds import ClosedRound
from troth_cli.observe.time_left import Position, SlotPace, estimate
from troth_cli.observe.words import time_left_text
from troth_cli.slot_time import STATED, SlotTime
from troth_client.telemetry.parts import duration
from troth_coordinator.rules.phase import Phase

HALF = SlotTime(500_000, is_measured=True)


def closed(round_, open_slot):
    return ClosedRound(round_, open_slot, (open_slot or 0) + 90, 4, 4, 4, 4, 0b1111, False)


def rounds(*opened):
    return [closed(number, slot) for number, slot in enumerate(opened)]


def at(round_=5, slot=540, phase=Phase.COMMIT, open_slot=500, left=None, most=20):
    return Position(phase, round_, most, slot, open_slot, left)


STEADY = rounds(0, 100, 200, 300, 400)


def test_steady_rounds_give_an_estimate_without_a_range():
    found = estimate(at(), STEADY, HALF)
    assert found.num_rounds == 15
    assert found.slots == found.slots_low == found.slots_high == 14 * 100 + 60
    assert found.seconds == 730
    assert found.is_slot_time_measured
    assert found.num_measured == 5
    assert time_left_text(found) == "about 12 min 10 s, without halts"


def test_uneven_rounds_give_a_range_and_one_halt_moves_little():
    uneven = rounds(0, 80, 200, 300, 5_300)
    found = estimate(at(slot=5_400, open_slot=5_400), uneven, HALF)
    assert found.slots_low <= found.slots <= found.slots_high
    assert found.slots == 15 * 100, "the median is that of the rounds without a halt"
    assert found.slots_low < found.slots_high
    assert " to " in time_left_text(found)


def test_the_pace_that_solana_states_is_named():
    found = estimate(at(), STEADY, STATED)
    assert not found.is_slot_time_measured
    assert "at 0.4 s a slot" in time_left_text(found)


@pytest.mark.parametrize(
    ("position", "known", "reason"),
    [
        (at(phase=Phase.PAUSED), STEADY, "paused"),
        (at(phase=Phase.HALTED), STEADY, "halted"),
        (at(phase=Phase.WAITING_FOR_MEMBERS, round_=0), [], "waits for members"),
        (at(round_=2, open_slot=200), rounds(0, 100), "too few rounds have closed: 2 of 3"),
        (at(open_slot=None), rounds(None, None, None, None), "too few rounds have closed: 0 of 3"),
        (at(), [closed(round_, round_ * 100) for round_ in (0, 2)], "too few"),
    ],
)
def test_without_enough_to_go_by_there_is_a_reason(position, known, reason):
    found = estimate(position, known, HALF)
    assert found.seconds is None
    assert reason in found.reason
    assert reason in time_left_text(found)


def test_an_ended_run_has_no_time_left():
    found = estimate(at(phase=Phase.FINISHED, round_=20, open_slot=None), STEADY, HALF)
    assert found.seconds == 0
    assert time_left_text(found) == "none: the last round has closed"


def test_the_rest_of_warmup_comes_on_top():
    position = at(phase=Phase.WARMUP, open_slot=None, left=40)
    assert estimate(position, STEADY, HALF).slots == 15 * 100 + 40


def test_the_pace_is_that_of_the_last_two_minutes():
    pace = SlotPace(STATED)
    assert pace.slot_time is STATED
    for second in range(200):
        pace.observe(float(second), second * 2)
    for second in range(200, 400):
        pace.observe(float(second), 400 + (second - 200) * 10)
    assert pace.slot_time == SlotTime(100_000, is_measured=True)


def test_a_look_at_an_older_slot_begins_anew():
    pace = SlotPace(STATED)
    pace.observe(0.0, 100)
    pace.observe(10.0, 120)
    assert pace.slot_time.is_measured
    pace.observe(11.0, 90)
    assert pace.slot_time is STATED


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3_600, "1 h"),
        (3_661, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (10**9, "11574 d 1 h"),
    ],
)
def test_durations_have_two_units(seconds, text):
    assert duration(seconds) == text
