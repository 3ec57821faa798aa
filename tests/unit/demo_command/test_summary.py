"""The verdict of a demo: every way to fail, one way to succeed."""

import json
from dataclasses import replace

import pytest

from troth_audit.cases import CaseFile, Money
from troth_cli.demo import report
from troth_cli.demo.outcome import Outcome, Standing
from troth_cli.demo.summary import Summary

STAKE = 100_000_000
GUILTY = CaseFile(
    (3, 5, 0),
    "CLOSED",
    outcome=3,
    case_outcome=1,
    money=Money(stake=50, jurors=5, burned=25, is_paid=True),
)
OUTCOME = Outcome(
    cheat="free-rider",
    story="computes nothing",
    fault="P3",
    index=5,
    cases=(GUILTY,),
    honest={"trainer-0": Standing(STAKE, is_untouched=True, fees=7)},
)

GOOD = Summary(
    run="Run1",
    num_rounds=40,
    num_parameters=1_000,
    loss_first_micro=5_500_000,
    loss_last_micro=3_100_000,
    margin_micro=1_500_000,
    payload_bytes=14,
    bytes_per_parameter=0.014,
    dense_bytes=2_000,
    num_included=160,
    fees_lamports=1,
    state_root="aa",
    chain_root="aa",
    roots={"trainer-0": "aa", "trainer-1": "aa"},
    missing=[],
    killed=[],
    events="events.jsonl",
    weights="weights",
    outcome=OUTCOME,
)


def test_success_is_agreement_and_the_margin():
    assert GOOD.is_success
    assert GOOD.to_json()["fell_by_micro"] == 2_400_000
    assert replace(GOOD, loss_last_micro=4_000_000).is_success


@pytest.mark.parametrize(
    "changes",
    [
        {"loss_last_micro": 4_000_001},
        {"loss_last_micro": 6_000_000},
        {"chain_root": "bb"},
        {"chain_root": "the run is not finished"},
        {"roots": {"trainer-0": "aa", "trainer-1": "bb"}},
        {"roots": {}},
        {"missing": ["trainer-1"]},
    ],
)
def test_anything_else_is_failure(changes):
    bad = replace(GOOD, **changes)
    assert not bad.is_success
    assert report.verdict(bad).startswith("FAILED")


def test_a_cheat_that_was_not_slashed_in_full_is_failure():
    waiting = replace(GUILTY, money=replace(GUILTY.money, is_paid=False))
    empty = replace(GUILTY, money=Money(is_paid=True))
    acquitted = replace(GUILTY, case_outcome=2)
    for cases in ((), (waiting,), (empty,), (acquitted,), (GUILTY, waiting)):
        bad = replace(GOOD, outcome=replace(OUTCOME, cases=cases))
        assert not bad.is_success, cases
        assert "free-rider" in report.verdict(bad)


def test_honest_stake_that_moved_is_failure_unless_its_owner_was_killed():
    moved = {"trainer-0": Standing(STAKE - 1, is_untouched=False, fees=0)}
    bad = replace(GOOD, outcome=replace(OUTCOME, honest=moved))
    assert not bad.is_success
    assert "trainer-0" in report.verdict(bad)
    assert replace(bad, killed=["trainer-0"]).is_success


@pytest.mark.parametrize(
    ("end", "is_caught"),
    [
        ({"fault": "P3", "cases": ()}, False),
        ({"fault": "P5", "cases": (), "fined": 1}, True),
        ({"fault": "P5", "cases": (), "fined": 0}, False),
        ({"fault": "P4", "cases": (), "strikes": 1}, True),
        ({"fault": "P4", "cases": (), "strikes": 0}, False),
        ({"fault": "", "cases": ()}, True),
        ({"fault": "", "cases": (GUILTY,)}, False),
        ({"cheat": "", "fault": "", "cases": ()}, True),
    ],
)
def test_each_kind_of_cheat_has_its_own_end(end, is_caught):
    assert replace(OUTCOME, **end).is_caught is is_caught


def test_the_summary_is_plain_json_and_words():
    values = json.loads(json.dumps(GOOD.to_json()))
    assert values["outcome"]["slashed_lamports"] == 50
    assert values["outcome"]["cases"][0]["is_conviction"]
    assert values["is_success"]
    words = str(report.blocks(GOOD))
    went = "0.000000005 SOL to the jurors, 0.000000025 SOL burned"
    for part in ("computes nothing", "0.00000005 SOL of its stake", went):
        assert part in words, part


def test_a_trainer_killed_on_purpose_is_no_missing_participant():
    assert replace(GOOD, roots={"trainer-0": "aa"}, killed=["trainer-1"]).is_success
