"""How well a run is audited, and the warnings that people read. Next: rules/oversight.py."""

from dataclasses import replace

import pytest
from support.views import PARAMS, entry, network, roster, round_view

from troth_coordinator.rules import eligibility, membership
from troth_coordinator.rules.oversight import Oversight, oversight, recent_rounds, warnings_of
from troth_coordinator.rules.view import EntryFlag, Role, SeedStatus, Status


def frozen(eligible, sampled):
    return round_view(eligible=eligible, sampled=sampled, seed_status=SeedStatus.FROZEN)


def test_the_open_round_tells_the_eligible_and_recent_ones_what_could_be_audited():
    recent = [frozen(0b111, 0b1111), frozen(0b1111, 0b1), None, round_view(sampled=0b1)]
    found = oversight(network(round_=round_view(eligible=0b11111)), recent)
    assert found.num_eligible == 5
    assert found.num_sampled == 5
    assert found.num_auditable == 2


def test_while_no_round_is_open_those_who_wait_are_counted():
    waiting = roster(*[entry(n, status=Status.PENDING) for n in range(1, 5)])
    view = replace(network(entries=waiting), round=None)
    assert oversight(view).num_eligible == 4


@pytest.mark.parametrize(
    ("num_eligible", "p_base", "words"),
    [(5, 1, []), (4, 1, ["only 4"]), (3, 1, ["no payload"]), (0, 0, ["off", "no payload"])],
)
def test_warnings_say_when_few_or_none_can_judge(num_eligible, p_base, words):
    warned = list(warnings_of(Oversight(num_eligible, 0, 0, p_base)))
    assert len(warned) == len(words)
    for text, word in zip(warned, words, strict=True):
        assert word in text


def test_recent_rounds_are_closed_and_in_the_ring():
    view = network()
    run = replace(view.run, round=40, params=replace(PARAMS, ring=8))
    assert recent_rounds(replace(view, run=run)) == range(33, 40)
    young = replace(view, run=replace(run, round=3))
    assert recent_rounds(young) == range(3)


def test_a_silent_witness_is_not_seated_even_on_a_short_bench():
    entries = roster(entry(1), entry(2, flags=EntryFlag.SILENT), entry(3, roles=Role.WITNESS))
    assert membership.sets_at_open(entries, 7, PARAMS).eligible == 0b101
    assert not eligibility.can_be_audited(0b101, 0)
