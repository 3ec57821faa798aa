"""Audits that are over: how many are kept, and which of them an update names."""

from dataclasses import replace

from support.observations import observation

from troth_audit.cases import CaseFile
from troth_cli.observe.reads import MOST_CLOSED, newest_first


def closed(round_):
    return CaseFile((round_, 0, 0), "CLOSED", outcome=1)


def test_those_of_the_newest_rounds_are_kept_and_come_first():
    kept, is_more = newest_first([closed(round_) for round_ in range(MOST_CLOSED + 5)])
    assert [one.key[0] for one in kept] == list(range(MOST_CLOSED + 4, 4, -1))
    assert is_more


def test_as_many_as_are_kept_are_no_cut():
    kept, is_more = newest_first([closed(round_) for round_ in range(MOST_CLOSED)])
    assert len(kept) == MOST_CLOSED
    assert not is_more


def test_an_update_names_only_those_that_are_new_or_differ():
    before = observation(closed=(closed(2), closed(1)))
    changed = replace(closed(1), outcome=3)
    after = replace(before, closed=(closed(3), closed(2), changed))
    assert [one["round"] for one in before.to_json()["closed_audits"]] == [2, 1]
    assert [one["round"] for one in after.to_json(since=before)["closed_audits"]] == [3, 1]
    assert after.to_json(since=after)["closed_audits"] == []
