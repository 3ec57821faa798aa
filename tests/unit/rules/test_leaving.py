"""An owner that has left: its place, which it serves until the program lets it join again."""

from dataclasses import replace

from support.views import PARAMS, entry, network, participant, roster

from troth_coordinator.rules import membership
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.view import Status, TicketView

LEFT = entry(1, status=Status.LEFT, left_round=6, stake=0)
VIEW = network(entries=roster(entry(3), LEFT))
TICKET = TicketView(5, VIEW.slot + PARAMS.unbond_slots)
ACCOUNT = participant(index=1, tickets=(TICKET, TicketView(0, 0)))
LONGEST = longest_settlement_slots(PARAMS)


def seen(**changes):
    """The view in which the entry that has left differs."""
    return replace(VIEW, entries=roster(entry(3), replace(LEFT, **changes)))


def later(slots):
    return replace(VIEW, slot=VIEW.slot + slots)


def test_one_that_has_left_serves_until_no_case_may_follow():
    assert membership.index_to_serve(VIEW, ACCOUNT) == 1
    assert membership.index_to_serve(later(LONGEST), ACCOUNT) == 1
    assert membership.index_to_serve(later(LONGEST + 1), ACCOUNT) is None
    assert membership.index_left(later(LONGEST + 1), ACCOUNT) == 1


def test_an_open_audit_keeps_it_and_a_ring_that_has_passed_frees_it():
    named = replace(seen(audits=1), slot=VIEW.slot + LONGEST + 1)
    assert membership.index_to_serve(named, ACCOUNT) == 1
    past = seen(left_round=VIEW.run.round - PARAMS.ring)
    assert membership.index_to_serve(past, ACCOUNT) is None


def test_nobody_else_serves():
    assert membership.index_to_serve(VIEW, None) is None
    assert membership.index_to_serve(VIEW, participant()) is None, "it never had a place"
    assert membership.index_to_serve(seen(status=Status.ACTIVE), ACCOUNT) is None
    assert membership.index_to_serve(seen(owner=b"z" * 32), ACCOUNT) is None, "somebody else's now"
