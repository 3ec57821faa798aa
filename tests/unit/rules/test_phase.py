"""When a phase may end: deadline, all acted, four fifths and a grace for stragglers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.rules import phase
from troth_coordinator.rules.ids import NONE

SLOTS = st.integers(0, 2**63)


def test_last_slot_still_accepts_and_the_next_one_ends():
    assert phase.accepts_actions(220, 220)
    assert not phase.accepts_actions(221, 220)
    assert not phase.ran_to_deadline(220, 220)
    assert phase.ran_to_deadline(221, 220)
    assert phase.end_by_time(100, 220, NONE) == 221


@pytest.mark.parametrize(
    ("acted", "required", "enough"), [(4, 5, True), (3, 5, False), (0, 0, True)]
)
def test_quorum_is_four_fifths(acted, required, enough):
    assert phase.has_quorum(acted, required) is enough


def test_stragglers_get_eight_slots_or_a_quarter_of_the_time_taken():
    assert phase.end_by_time(100, 220, 110) == 118
    assert phase.end_by_time(100, 220, 163) == 163 + 15
    assert phase.end_by_time(100, 220, 219) == 221


def test_a_phase_without_end_never_ends_by_time():
    assert phase.end_by_time(100, NONE, NONE) == NONE


@given(SLOTS, st.integers(0, 2**20), st.integers(0, 2**20), st.integers(0, 64), st.integers(0, 64))
def test_a_due_phase_stays_due(start, length, waited, acted, required):
    end = phase.end_by_time(start, start + length, start + waited)
    assert end == start + min(length + 1, waited + max(8, waited // 4))
    assert phase.may_end(end, end, acted, required)
    assert phase.may_end(end + 1, end, acted, required)
    assert phase.may_end(end - 1, end, acted, required) == (acted >= required)


@given(SLOTS, st.integers(1, 500), st.none() | st.integers(0, 500))
def test_attest_by_leaves_four_slots_and_never_precedes_the_phase(start, length, waited):
    quorum = NONE if waited is None else start + waited
    by = phase.attest_by(start, start + length, quorum)
    end = phase.end_by_time(start, start + length, quorum)
    assert by == max(start, end - 4)
