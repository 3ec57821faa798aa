"""The authority's commands over HTTP against an embedded chain, and what they refuse."""

import json
import re
from pathlib import Path

import pytest
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from support.cli import imported_by
from support.network import CONFIG, PROGRAM, SOL, Bench, start

from troth_cli.settings import run_settings
from troth_client.data.manifest import load_manifest
from troth_coordinator.chain.errors import ProgramRefusedError

pytestmark = pytest.mark.processes
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")


def test_a_run_is_created_shown_funded_paused_and_resumed(bench):
    created = bench.cli.json(*bench.create_arguments(fund="0.25"))
    run = created["run"]
    assert created["is_new"]
    assert created["manifest_hash"] == load_manifest(bench.data).hash.hex()
    assert created["settings"]["config"]["schedule"]["rounds"] == 10
    shown = bench.cli.json(*bench.of_run("run", "show", run=run))
    assert shown["phase"] == "waiting_for_members"
    assert shown["round"] == 0
    assert shown["reward_pool_lamports"] == SOL // 4
    assert shown["authority"] == str(bench.address("authority"))
    assert shown["root"] == shown["genesis_root"] == created["genesis_root"]
    assert shown["params"]["admission"] == "open"
    fund = bench.of_run("run", "fund", run=run, key="authority")
    assert bench.cli.json(*fund, "--sol", "0.5")["reward_pool_lamports"] == 3 * SOL // 4
    assert bench.cli.json(*bench.of_run("run", "pause", run=run, key="authority"))["phase"] == (
        "paused"
    )
    resumed = bench.cli.json(*bench.of_run("run", "resume", run=run, key="authority"))
    assert resumed["phase"] == "waiting_for_members"
    assert resumed["fee_lamports"] == 5_000


def test_the_file_for_joiners_has_the_hash_that_the_program_holds(bench):
    run = bench.create()
    shown = bench.cli.json(*bench.of_run("run", "show", run=run))
    settings = run_settings([bench.folder / "run.toml"])
    assert settings.config.config_hash().hex() == shown["config_hash"]
    found = bench.cli.json("status", "--config", bench.folder / "run.toml", "--rpc", bench.rpc)
    assert found["run"] == run


def test_creating_again_creates_nothing_twice_and_fills_up_the_pool(bench):
    first = bench.cli.json(*bench.create_arguments(fund="0.1"))
    again = bench.cli.json(*bench.create_arguments(fund="0.1"))
    assert again["run"] == first["run"]
    assert again["is_new"] is False
    assert again["num_transactions"] == 0
    more = bench.cli.json(*bench.create_arguments(fund="0.3"))
    assert more["reward_pool_lamports"] == 3 * SOL // 10
    assert bench.create(name="other") != first["run"]


def test_a_dry_run_shows_costs_windows_and_losses_and_sends_nothing(bench):
    words = (*bench.create_arguments(fund="0.25", name="dry"), "--dry-run")
    before = bench.balance("authority")
    planned = bench.cli.json(*words)
    assert planned["is_created"] is False
    assert planned["fund_lamports"] == SOL // 4
    assert planned["losses_lamports"]["no_openings"] == [18_000_000, 36_000_000, 50_000_000]
    assert planned["losses_lamports"]["work"] == [SOL // 20, SOL // 10]
    shown = bench.cli.ok(*words).out
    assert "120 slots, about 2.4 seconds" in shown, "the Commit window, in slots of 20 ms"
    assert "0.018 SOL, then 0.036 SOL, then 0.05 SOL" in shown
    assert bench.balance("authority") == before
    assert not (bench.folder / "dry.toml").exists()
    created = bench.cli.json(*bench.create_arguments(fund="0.25", name="dry"))
    assert created["run"] == planned["run"]
    paid = before - bench.balance("authority")
    told = planned["rent_and_fees_lamports"] + planned["fund_lamports"]
    assert abs(paid - told) < SOL // 10_000
    assert created["losses_lamports"] == planned["losses_lamports"]


def test_an_interrupted_creation_is_completed(bench):
    """The account is funded for the first transactions only, then topped up."""
    rent_of_half = 0.6
    bench.key("authority", 0)
    bench.launcher.airdrop(bench.address("authority"), int(rent_of_half * SOL))
    assert bench.cli.refused(*bench.create_arguments())["kind"] == "FundsError"
    bench.launcher.airdrop(bench.address("authority"), 9 * SOL)
    assert bench.cli.json(*bench.create_arguments())["is_new"]


def test_the_text_for_people_names_run_money_and_file(bench):
    done = bench.cli.ok(*bench.create_arguments(fund="0.25"))
    assert "0.25 SOL" in done.out
    assert str(bench.folder / "run.toml") in done.out
    run = done.out.split()[1]
    shown = bench.cli.ok(*bench.of_run("run", "show", run=run))
    assert "waiting_for_members" in shown.out
    assert "120 slots, about 2.4 seconds" in shown.out, "slots of 20 ms"
    assert re.search(r"min stake +0\.1 SOL\n", shown.out)
    assert run in bench.cli.ok(*bench.of_run("status", run=run)).out


def test_status_has_the_shape_that_scripts_rely_on(bench):
    run = bench.create()
    bench.take_a_seat(run, "a", "b")
    status = bench.cli.json(*bench.of_run("status", run=run))
    assert status["phase"] == "waiting_for_members"
    assert status["round"] == 0
    assert status["capacity"] == 16
    assert status["is_transition_due"]
    assert status["phase_end_slot"] is None
    one, two = status["participants"]
    assert one["index"] == 0
    assert one["owner"] == str(bench.address("a"))
    assert two["status"] == "pending"
    assert two["role"] == "both"
    assert two["strikes"] == 0
    assert two["stake_lamports"] == 100_000_000
    assert two["endpoint"] == "http://x:1"
    assert two["last_included_round"] is None
    text = bench.cli.ok(*bench.of_run("status", run=run)).out
    assert str(bench.address("a")) in text
    assert "0.1 SOL" in text


@pytest.mark.parametrize("modules", [["torch", "transformers"], ["anchorpy", "pytest"]])
def test_status_imports_nothing_heavy(bench, modules):
    run = bench.create()
    bench.take_a_seat(run, "ada")
    done, imported = imported_by(modules, *bench.of_run("status", run=run))
    assert done.code == 0, done.err
    assert str(bench.address("ada")) in done.out
    assert imported == set()


def test_parameters_are_updated_and_fixed_ones_refused(bench):
    run = bench.create()
    update = bench.of_run("run", "update-params", run=run, key="authority")
    bench.cli.json(*update, "--set", "chain.commit_slots=150")
    assert bench.cli.json(*bench.of_run("run", "show", run=run))["are_params_pending"]
    error = bench.cli.refused(*update, "--set", "chain.ring=20")
    assert error["kind"] == "ContradictionError"
    assert error["subject"] == "chain.ring"
    assert bench.cli.refused(*update, "--set", "chain.rng=20")["kind"] == "UnknownKeyError"
    assert bench.cli.refused(*update)["kind"] == "SettingsError"


def test_an_unused_run_is_closed_and_its_rent_comes_back(bench):
    run = bench.create(fund="1")
    before = bench.cli.json(
        "localnet", "airdrop", bench.address("authority"), "1", "--rpc", bench.rpc
    )
    words = bench.of_run("run", "close", run=run, key="authority")
    planned = bench.cli.json(*words, "--dry-run")
    assert not planned["is_closed"] and not planned["transactions"] and not planned["owed"]
    closed = bench.cli.json(*words)
    assert len(closed["transactions"]) >= 2
    assert closed["is_closed"]
    assert closed["returned"] == planned["returned"]
    back = {one["why"]: one["lamports"] for one in closed["returned"]}
    assert back["reward pool and leftovers"] == SOL
    error = bench.cli.refused(*bench.of_run("run", "show", run=run))
    assert error["kind"] == "AccountMissingError"
    after = bench.cli.json(
        "localnet", "airdrop", bench.address("authority"), "1", "--rpc", bench.rpc
    )
    fees = sum(one["fee_lamports"] for one in closed["transactions"])
    assert after["balance_lamports"] - before["balance_lamports"] == SOL + sum(back.values()) - fees


def test_a_run_that_is_not_over_is_not_closed(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    error = bench.cli.refused(*bench.of_run("run", "close", run=run, key="authority"))
    assert error["kind"] == "OtherRunError"
    assert error["found"] == "waiting for members, round 0 of 10, 1 members"
    assert "troth run cancel" in error["next_step"]


def test_a_run_that_waited_in_vain_is_cancelled_and_closed(bench):
    run = bench.create(fund="1")
    bench.take_a_seat(run, "early")
    cancel = bench.of_run("run", "cancel", run=run, key="authority")
    error = bench.cli.refused(*cancel)
    assert error["kind"] == "NotInVainError"
    assert "5400 slots" in error["expected"]
    bench.launcher.advance(5_401)
    strange = bench.cli.refused(*bench.of_run("run", "cancel", run=run, key="stranger"))
    assert strange["kind"] == "NotInVainError"
    assert strange["expected"] == "the key of its authority"
    done = bench.cli.json(*cancel)
    assert done["run"] == run
    assert done["phase"] == "finished"
    assert done["fee_lamports"] == 5_000
    assert bench.cli.refused(*cancel)["found"] == "finished"

    bench.cli.json(*bench.of_run("leave", run=run, key="early"))
    bench.launcher.advance(20_000)
    paid = bench.cli.json(*bench.of_run("withdraw", run=run, key="early"))
    assert paid["received_lamports"] > SOL // 10, "the stake and the rent"
    bench.cli.json(*bench.of_run("run", "close", run=run, key="stranger"))


def test_a_run_that_can_begin_is_not_cancelled(bench):
    run = bench.create()
    bench.take_a_seat(run, "a", "b")
    bench.launcher.advance(6_000)
    error = bench.cli.refused(*bench.of_run("run", "cancel", run=run, key="authority"))
    assert error["found"] == "2 members, enough to begin"
    shown = bench.cli.json(*bench.of_run("run", "show", run=run))
    assert shown["phase"] == "waiting_for_members", (
        "the `advance_phase` that would begin it was not sent"
    )


def test_an_allowlisted_run_admits(bench):
    run = bench.create("chain.admission=allowlist")
    bench.key("a")
    admit = bench.of_run("run", "admit", run=run, key="authority")
    bench.cli.json(*admit, "--owner", bench.address("a"))
    bench.take_a_seat(run, "a")
    with pytest.raises(ProgramRefusedError) as raised:
        bench.take_a_seat(run, "b")
    assert raised.value.name == "NotAdmitted"


def test_leaving_withdrawing_and_claiming_say_what_is_left(bench):
    run = bench.create()
    bench.take_a_seat(run, "a")
    left = bench.cli.json(*bench.of_run("leave", run=run, key="a"))
    assert left["status"] == "left"
    assert left["stake_lamports"] == 0
    (ticket,) = left["unbonding"]
    assert ticket["lamports"] == 100_000_000
    assert ticket["matures_slot"] > left["at_slot"] + 3_000
    # Under the same blockhash a second `leave` would be the same transaction, which has landed.
    bench.launcher.advance(1)
    for word, kind, name in (
        ("leave", "ProgramRefusedError", "AlreadyLeaving"),
        ("claim", "NotDueError", "NothingToClaim"),
        ("withdraw", "NotDueError", "NothingToWithdraw"),
    ):
        error = bench.cli.refused(*bench.of_run(word, run=run, key="a"))
        assert error["kind"] == kind
        assert error["name"] == name
    assert f"0.1 SOL at slot {ticket['matures_slot']}, in " in error["found"]
    assert "slots, about " in error["found"]
    bench.key("stranger")
    for words in (("leave",), ("claim",), ("withdraw",)):
        error = bench.cli.refused(*bench.of_run(*words, run=run, key="stranger"))
        assert error["kind"] == "NotJoinedError"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("pause", "WrongAuthority"),
        ("resume", "PauseBudgetRemaining"),
        ("fund", "WrongFunder"),
        ("close", "WrongAuthority"),
    ],
)
def test_another_key_than_the_authoritys_is_refused(bench, word, name):
    run = bench.create()
    more = ("--sol", "1") if word == "fund" else ()
    if word == "resume":
        bench.cli.json(*bench.of_run("run", "pause", run=run, key="authority"))
    error = bench.cli.refused(*bench.of_run("run", word, run=run, key="stranger"), *more)
    assert error["name"] == name
    if word == "resume":  # anybody may, once the budget of pauses is spent
        assert error["kind"] == "ProgramRefusedError"
        return
    assert error["kind"] == "OtherKeyError"
    assert str(bench.address("authority")) in error["expected"]
    assert str(bench.address("stranger")) in error["found"]


def test_a_vocabulary_beyond_the_datas_is_said_before_it_costs_anything(bench):
    words = bench.create_arguments("model.vocab_size=320", name="wide")
    done = bench.cli.ok(*words, "--dry-run")
    assert "the model has 320 tokens and the data set 256: 64 rows" in done.err
    bench.cli.json(*words)
    run = bench.cli.json(*words)["run"]
    told = bench.cli.json(*bench.join_arguments(run, "a", "wide"), "--check")
    assert "64 rows of the embedding are never trained" in json.dumps(told)


@pytest.mark.parametrize(
    ("setting", "kind", "subject"),
    [
        ("chain.vesting_slots=100", "ContradictionError", "chain.vesting_slots"),
        ("chain.min_stake_lamports=100", "ContradictionError", "chain.keep_stake_lamports"),
        ("chain.max_rounds=11", "ContradictionError", "chain.max_rounds"),
        ("schedule.round=3", "UnknownKeyError", "schedule.round"),
        ("model.hidden_size=63", "ContradictionError", "model.hidden_size"),
        ("data.sequence_tokens=32", "ContradictionError", "data.sequence_tokens"),
        ("model.vocab_size=200", "ContradictionError", "model.vocab_size"),
        (f"data.manifest_hash={'ab' * 32}", "ContradictionError", "data.manifest_hash"),
    ],
)
def test_settings_that_contradict_are_refused_before_anything_is_sent(
    bench, setting, kind, subject
):
    bench.key("authority", 0)
    error = bench.cli.refused(*bench.create_arguments(setting, name="bad"))
    assert error["kind"] == kind
    assert error["subject"] == subject
    assert not (bench.folder / "bad.toml").exists()


def test_too_little_money_is_named_with_what_is_needed(bench):
    bench.key("authority", 0.01)
    error = bench.cli.refused(*bench.create_arguments())
    assert error["kind"] == "FundsError"
    assert error["found"] == "0.01 SOL"
    assert "airdrop" in error["next_step"]
    bench.key("poor", 0)
    run_error = bench.cli.refused(*bench.of_run("run", "show", run=str(Keypair().pubkey())))
    assert run_error["kind"] == "AccountMissingError"


def test_a_funder_without_money_is_refused_by_name(bench):
    run = bench.create()
    fund = bench.of_run("run", "fund", run=run, key="authority")
    error = bench.cli.refused(*fund, "--sol", "1000000")
    assert error["name"] == "InsufficientFunds"
    assert "lamports" in json.dumps(error)


def test_a_wrong_run_address_is_named(bench):
    bench.key("a")
    for run, kind in (
        (str(Keypair().pubkey()), "AccountMissingError"),
        (str(bench.address("a")), "AccountOwnerError"),
        (str(PROGRAM), "AccountOwnerError"),
        ("nonsense", "InputError"),
    ):
        for words in (("status",), ("run", "show")):
            error = bench.cli.refused(*bench.of_run(*words, run=run))
            assert error["kind"] == kind
            assert run in json.dumps(error)


def test_an_rpc_that_is_not_there_or_no_rpc_is_named(bench):
    run = str(Keypair().pubkey())
    error = bench.cli.refused("status", run, "--rpc", "http://127.0.0.1:9")
    assert error["kind"] == "RpcUnreachableError"
    assert "troth localnet up" in error["next_step"]
    for url in ("127.0.0.1:9", "nonsense", "ftp://127.0.0.1:9"):
        assert bench.cli.refused("status", run, "--rpc", url)["kind"].startswith("Rpc"), url
    nothing = bench.cli.refused("status", run, "--rpc", "", code=2)
    assert "name at least one address" in nothing["found"]


def test_a_chain_without_the_program_and_one_with_another(bench, tmp_path):
    bench.key("authority", 0)
    foreign = bytes(LiteSVM().get_account(MEMO).data)
    for programs, kind in (
        ({}, "ProgramMissingError"),
        ({PROGRAM: foreign}, "ForeignProgramError"),
    ):
        launcher = start(programs)
        try:
            launcher.airdrop(bench.address("authority"), 10 * SOL)
            other = Bench(bench.cli, launcher, tmp_path, bench.data)
            error = bench.cli.refused(*other.create_arguments())
            assert error["kind"] == kind
            assert str(PROGRAM) in error["subject"]
        finally:
            launcher.stop()


def test_a_data_folder_that_is_none_is_named(bench):
    arguments = [a if a != bench.data else Path("none") for a in bench.create_arguments()]
    assert bench.cli.refused(*arguments)["kind"] == "ManifestError"


def test_a_file_in_the_way_is_kept(bench):
    (bench.folder / "run.toml").write_text("mine")
    error = bench.cli.refused(*bench.create_arguments())
    assert error["kind"] == "OutputFileError"
    assert bench.cli.json(*bench.create_arguments()[:-1], bench.folder / "b.toml")["is_new"]
    assert (bench.folder / "run.toml").read_text() == "mine"


def test_the_config_of_the_tests_is_the_shipped_one():
    assert run_settings([CONFIG]).config.schedule.rounds == 10


def test_the_command_line_creates_a_run_where_lamports_lie(bench):
    """Threat T135. Its address follows from authority and settings, so anybody can know it."""
    planned = bench.cli.json(*bench.create_arguments(), "--dry-run")["run"]
    bench.cli.json("localnet", "airdrop", planned, "1", "--rpc", bench.rpc)
    assert bench.create() == planned
