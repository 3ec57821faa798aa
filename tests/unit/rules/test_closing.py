"""The debts of a run, and what it gives back when it is closed. Next: rules/closing.py."""

from dataclasses import fields, replace

import pytest
from support.views import entry, participant, roster, run_view

from troth_coordinator.rules.closing import entries_of, is_settled, is_spent, leftovers, liabilities
from troth_coordinator.rules.view import RunView, Status, TicketView

GONE = entry(1, status=Status.LEFT, stake=0)
DEBTS = [
    {"stake": 1},
    {"claimable": 1},
    {"bucket_amount": (0, 0, 1)},
    {"withheld": 1},
]


def test_the_vault_owes_its_rent_the_pool_and_every_total():
    names = [one.name for one in fields(RunView) if one.name.startswith("total_")]
    names += ["vault_rent", "reward_pool"]
    assert len(names) == 9
    owed = {name: 10**digit for digit, name in enumerate(names)}
    assert liabilities(run_view(**owed)) == 111_111_111


def test_the_funder_gets_the_pool_and_donations_but_nothing_of_others():
    run = run_view(vault_rent=7, total_stake=100, reward_pool=20)
    assert leftovers(run, 127) == 20
    assert leftovers(run, 130) == 23, "a donation of three"
    assert leftovers(run, 0) == 0, "a vault that is not there"


@pytest.mark.parametrize("status", list(Status))
def test_only_an_index_that_was_left_is_spent(status):
    assert is_spent(replace(GONE, status=status)) is (status in (Status.LEFT, Status.BARRED))


@pytest.mark.parametrize("debt", DEBTS)
def test_an_index_with_a_debt_is_not_spent(debt):
    assert not is_spent(replace(GONE, **debt))
    assert not is_settled(participant(), roster(replace(GONE, **debt)))


def test_an_account_is_settled_once_its_owner_has_left_and_is_owed_nothing():
    assert is_settled(participant(), roster(GONE))
    assert is_settled(participant(), roster(entry(2))), "the index went to somebody else"
    assert not is_settled(participant(claimable=1), roster(GONE))
    assert not is_settled(participant(tickets=(TicketView(0, 0), TicketView(1, 9))), roster(GONE))
    assert not is_settled(participant(), roster(entry(1))), "it has not left"


def test_an_owner_that_joined_again_is_asked_about_both_entries():
    again = entry(1, stake=3)
    assert entries_of(participant(), roster(GONE, entry(2), again)) == [GONE, again]
    assert not is_settled(participant(), roster(GONE, entry(2), again))
