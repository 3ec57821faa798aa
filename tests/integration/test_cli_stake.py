"""`troth stake` and the stake options of `join`, against the program on a local network."""

import pytest
from solders.keypair import Keypair
from support.network import SOL, refused_check

pytestmark = pytest.mark.processes
LEAST, KEEP = SOL // 10, 60_000_000


def test_an_owner_sees_its_stake_and_adds_to_it(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    shown = bench.cli.json(*bench.of_run("stake", "show", run=run, key="a"))
    found = {name: shown[f"{name}_lamports"] for name in ("stake", "needed", "join", "withheld")}
    assert found == {"stake": LEAST, "needed": KEEP, "join": LEAST, "withheld": 0}
    assert shown["vesting"] == [] and shown["losses"] == [] and not shown["is_frozen"]
    words = bench.of_run("stake", "top-up", run=run, key="a")
    added = bench.cli.json(*words, "0.25")
    assert added["stake_lamports"] == LEAST + SOL // 4
    assert added["received_lamports"] == -SOL // 4
    text = bench.cli.ok(*bench.of_run("stake", "show", run=run, key="a")).out
    assert "0.35 SOL" in text and "0.06 SOL" in text


@pytest.mark.parametrize("amount", ["0", "0.0000000001", "all", "nan", "18446744073.709551615"])
def test_a_top_up_of_nothing_or_of_no_amount_is_refused(bench, amount):
    run = bench.create()
    bench.take_a_seat(run, "a")
    words = (*bench.of_run("stake", "top-up", run=run, key="a"), amount)
    assert bench.cli.refused(*words)["kind"] == "InputError"


def test_a_negative_amount_is_no_option(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    words = (*bench.of_run("stake", "top-up", run=run, key="a"), "-1")
    assert bench.cli.refused(*words, code=2)["kind"] == "UsageError"


def test_more_than_the_owner_has_is_refused_and_costs_nothing(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    before = bench.balance("a")
    words = (*bench.of_run("stake", "top-up", run=run, key="a"), "1000")
    assert bench.cli.refused(*words)["name"] == "InsufficientFunds"
    assert bench.balance("a") == before


def test_who_has_left_sees_what_unbonds_and_can_add_nothing(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    bench.cli.json(*bench.of_run("leave", run=run, key="a"))
    words = (*bench.of_run("stake", "top-up", run=run, key="a"), "0.1")
    assert bench.cli.refused(*words)["name"] == "NotJoined"
    shown = bench.cli.ok(*bench.of_run("stake", "show", run=run, key="a")).out
    assert "0.1 SOL, due in" in shown
    assert "top-up" not in shown


def test_a_run_that_is_none_is_named(bench):
    bench.key("a")
    run = str(Keypair().pubkey())
    for words in (("stake", "show"), ("stake", "top-up")):
        amount = ("1",) if words[1] == "top-up" else ()
        error = bench.cli.refused(*bench.of_run(*words, run=run, key="a"), *amount)
        assert error["kind"] == "AccountMissingError"
        assert run in error["subject"]


def test_a_stranger_has_nothing_to_see_and_nothing_to_add_to(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    bench.key("b")
    show, top_up = ("stake", "show"), ("stake", "top-up")
    assert bench.cli.refused(*bench.of_run(*show, run=run, key="b"))["kind"] == "NotJoinedError"
    words = (*bench.of_run(*top_up, run=run, key="b"), "1")
    assert bench.cli.refused(*words)["kind"] == "NotJoinedError"
    assert bench.balance("b") == 10 * SOL


@pytest.mark.parametrize("stake", ["0", "0.099999999", "much"])
def test_joining_with_less_than_the_least_stake_costs_nothing(bench, stake):
    run = bench.create()
    error = bench.cli.refused(*bench.join_arguments(run, "a"), "--stake-sol", stake)
    assert error["kind"] == "InputError" and error["subject"] == "--stake-sol"
    assert bench.balance("a") == 10 * SOL


def test_a_stake_that_the_owner_cannot_pay_is_named_before_anything_is_sent(bench):
    run = bench.create()
    error = bench.cli.refused(*bench.join_arguments(run, "a"), "--stake-sol", "10")
    assert refused_check(error, "balance")["kind"] == "FundsError"
    assert bench.balance("a") == 10 * SOL
