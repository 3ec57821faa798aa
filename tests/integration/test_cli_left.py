"""`troth join` after `troth leave`: duties are served, and no stake moves without a yes."""

import signal

import pytest
from support.network import SOL, processes, refused_check
from support.waiting import wait_for

pytestmark = pytest.mark.processes
OPENINGS = 3_000
PATIENT = (
    *("chain.commit_slots=600", "chain.attest_slots=600", "chain.warmup_slots=1200"),
    *("chain.vesting_slots=60000", "chain.unbond_slots=60000", "chain.min_members=2"),
    *(f"chain.openings_slots={OPENINGS}", "chain.case_slots=6000", "chain.ring=32"),
    *("chain.p_new_ppm=1000000", "chain.p_base_ppm=1000000", "chain.audit_cap=5"),
    *("chain.capacity=5", "chain.max_witness_only=1", "schedule.rounds=60"),
    *("chain.verdict_commit_slots=3000", "chain.verdict_reveal_slots=5000"),
    *("chain.jury_commit_slots=1500", "chain.jury_reveal_slots=1500"),
)
"""Everybody is audited each round, and nobody is late."""
SECONDS = 500


@pytest.fixture
def joined(bench):
    with processes(bench) as begin:
        yield begin


def shown(bench, run, name):
    """Return the answer of `troth stake show` about an owner."""
    return bench.cli.json(*bench.of_run("stake", "show", run=run, key=name))


@pytest.mark.long(reason="four processes, and the time in which a case may be opened")
def test_one_that_has_left_comes_back_for_its_duties_and_deposits_nothing(bench, joined):
    run = bench.create(*PATIENT)
    parts = {name: joined(bench.join_arguments(run, name), name) for name in "abcd"}
    parts["c"].wait_for("round_closed round=2")
    parts["c"].signal(signal.SIGINT)
    assert parts["c"].code() == 0, parts["c"].notes()
    bench.cli.json(*bench.of_run("leave", run=run, key="c"))
    wait_for(lambda: shown(bench, run, "c")["status"] == "left", SECONDS, parts["a"].notes)
    before = bench.balance("c")
    last = joined(bench.join_arguments(run, "c"), "last")
    wait_for(lambda: not last.is_running(), SECONDS, last.notes)
    code, _values = last.end()
    assert code == 0, last.notes()
    assert "this key has left the run" in last.notes()
    assert "staying" in last.notes()
    assert bench.balance("c") == before, "no second stake"
    after = shown(bench, run, "c")
    assert after["status"] == "left"
    assert after["losses"] == []


def test_one_that_has_left_and_owes_nothing_is_not_joined_again_without_a_yes(bench, joined):
    run = bench.create(*PATIENT)
    arguments = bench.join_arguments(run, "a")
    first = joined(arguments, "first")
    first.wait_for("phase=WAITING_FOR_MEMBERS")
    first.signal(signal.SIGINT)
    assert first.code() == 0, first.notes()
    bench.cli.json(*bench.of_run("leave", run=run, key="a"))
    before = bench.balance("a")
    refused = refused_check(bench.cli.refused(*arguments), "membership")
    assert "has left" in refused["found"]
    assert "--yes" in refused["advice"]
    assert bench.balance("a") == before
    second = joined((*arguments, "--yes"), "second")
    second.wait_for("phase=WAITING_FOR_MEMBERS")
    assert bench.balance("a") <= before - SOL // 10
    assert shown(bench, run, "a")["status"] == "pending"
