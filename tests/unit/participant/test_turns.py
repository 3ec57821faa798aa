"""One participant a slot sends each step, and everybody has a turn."""

from collections import Counter
from dataclasses import replace

from support.views import entry, network, roster, round_view, run_view

from troth_client.participant.turns import is_our_turn
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

STEP = (7, 2, 0)


def takers(slot, members, step=STEP, indices=range(8)):
    """Return who of these sends the step in a slot of a round with these members."""
    view = network(slot=slot, round_=round_view(members=members))
    return [index for index in indices if is_our_turn(index, view, step)]


def test_one_member_a_slot_sends_a_step_and_each_has_its_turn():
    inside = [0, 2, 3, 5, 6]
    turns = Counter()
    for slot in range(1_000, 1_500):
        (taker,) = takers(slot, 0b0110_1101, indices=inside)
        turns[taker] += 1
    assert sorted(turns) == inside
    assert min(turns.values()) > 70
    assert max(turns.values()) < 130


def test_who_sees_only_each_fourth_slot_has_its_turns_among_four():
    turns = Counter()
    for slot in range(1_000, 3_000, 4):
        turns.update(takers(slot, 0b1111, indices=range(4)))
    assert sorted(turns) == [0, 1, 2, 3]
    assert min(turns.values()) > 90


def test_steps_have_turns_of_their_own():
    first, second = (
        [takers(slot, 0b1111, step, range(4)) for slot in range(1_000, 1_020)]
        for step in ((7, 2, 0), (7, 3, 0))
    )
    assert first != second


def test_who_is_no_member_has_a_turn_as_well():
    """All members may be away, and a run must go on with those who are not."""
    turns = [slot for slot in range(1_000, 1_500) if 6 in takers(slot, 0b1111)]
    assert 70 < len(turns) < 130


def test_without_members_it_is_always_our_turn():
    assert takers(1_000, 0, indices=[3]) == [3]


def test_between_rounds_those_who_may_be_in_the_next_take_turns():
    entries = roster(entry(1), entry(2, status=Status.LEFT), entry(3, status=Status.PENDING))
    run = run_view(phase=Phase.WARMUP)
    turns = Counter()
    for slot in range(1_000, 1_020):
        view = replace(network(slot, run, entries), round=None)
        turns.update(index for index in (0, 2) if is_our_turn(index, view, STEP))
    assert sorted(turns) == [0, 2]
    assert turns.total() == 20
