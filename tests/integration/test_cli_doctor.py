"""`troth doctor` in a good world and in broken ones."""

import time

import pytest
from solders.pubkey import Pubkey
from support.limited_node import limited_node
from support.network import SOL
from support.portions import portions

from troth_cli.state_folders import state_folder
from troth_cli.workflows import doctor
from troth_cli.workflows.doctor_rpc import NUM_TRIES
from troth_coordinator.chain import unhurried

pytestmark = pytest.mark.processes
WIDE = ("chain.commit_slots=4000", "chain.attest_slots=4000", "chain.verdict_commit_slots=4000")
WIDE += ("chain.jury_commit_slots=4000", "chain.vesting_slots=90000", "chain.unbond_slots=90000")
DEAD = "http://127.0.0.1:9"


def examined(bench, *arguments, code=0):
    """Each check by name."""
    done = bench.cli("doctor", *arguments, "--state", bench.folder / "state", "--json")
    assert done.code == code, done
    assert done.json["is_fine"] is (code == 0)
    return {one["check"]: one for one in done.json["checks"]}


def problems(checks):
    return [name for name, one in checks.items() if one["level"] == "problem"]


def test_a_good_world_without_a_run(bench):
    checks = examined(bench, "--key", bench.key("a"), "--rpc", bench.rpc, "--device", "cpu")
    assert problems(checks) == []
    assert checks["rpc"]["values"]["seconds"] < 10
    assert checks["rpc version"]["level"] == "ok"
    assert checks["slots"]["level"] == "warning", "20 ms are not the stated 400 ms"
    assert checks["balance"]["values"]["lamports"] == 10 * SOL
    assert checks["disk"]["values"]["bytes_per_second"] > 0
    assert "known-answer" in checks["device"]["found"]
    assert checks["config"]["level"] == "not tested"


def test_the_file_of_a_run_names_everything(bench):
    run = bench.create(*WIDE)
    file = bench.folder / "run.toml"
    checks = examined(bench, file, "--key", bench.key("a"), "--rpc", bench.rpc, "--device", "cpu")
    assert problems(checks) == []
    assert checks["config"]["level"] == "ok"
    assert checks["bounds"]["values"]["verdict"] == "ok"
    assert checks["commit"]["values"]["seconds"] > 0
    assert checks["holders"]["level"] == "not tested", "genesis comes from nobody"
    bench.take_a_seat(run, "a")
    arguments = [file, "--key", bench.key("a"), "--rpc", bench.rpc, "--device", "cpu"]
    with portions() as sizes:
        checks = examined(bench, *arguments, "--micro-batch", "1")
    assert set(sizes) == {1, 2}, "only a juror's gradient takes the two of the config"
    assert checks["fees"]["values"]["rounds"] > 1_000
    assert not (bench.folder / ".troth-doctor").exists()


def test_a_node_that_is_dead_is_one_problem_and_hides_no_other(bench):
    key = bench.key("open", 0)
    key.chmod(0o644)
    checks = examined(bench, "--key", key, "--rpc", DEAD, "--device", "cpu", code=1)
    assert problems(checks) == ["rpc", "key"]
    assert "chmod 600" in checks["key"]["advice"]
    assert checks["slots"]["level"] == checks["balance"]["level"] == "not tested"
    assert checks["device"]["level"] == "ok"


def test_a_dead_node_beside_a_living_one_is_named_and_passed_over(bench):
    arguments = ["--key", bench.key("a"), "--rpc", DEAD, "--rpc", bench.rpc, "--device", "cpu"]
    checks = examined(bench, *arguments)
    assert checks["rpc"]["level"] == "warning"
    assert f"; {DEAD}: " in checks["rpc"]["found"]
    assert checks["balance"]["values"]["lamports"] == 10 * SOL
    assert checks["program"]["level"] == "ok"
    assert checks["slots"]["values"]["slot_seconds"] > 0


def test_a_node_that_limits_requests_has_a_table_all_the_same(bench, monkeypatch):
    """And all questions together wait for it no longer than the doctor's patience."""
    assert doctor.PATIENCE_SECONDS < unhurried.PATIENCE_SECONDS
    monkeypatch.setattr(doctor, "PATIENCE_SECONDS", 2.0)
    begun = time.monotonic()
    with limited_node(bench.rpc, NUM_TRIES) as limited:
        checks = examined(bench, "--rpc", limited, "--device", "cpu", code=1)
    assert time.monotonic() - begun < unhurried.PATIENCE_SECONDS, "one question takes so long alone"
    assert checks["rpc"]["level"] == "ok"
    assert checks["rpc rate"]["level"] == "warning"
    assert checks["rpc rate"]["found"].startswith("0 of 10 ")
    assert checks["slots"]["level"] == "problem"
    assert "rpc rate" in checks["slots"]["advice"]
    assert "429" in checks["program"]["found"]


def test_a_node_that_limits_requests_is_helped_out_by_another(bench):
    with limited_node(bench.rpc, NUM_TRIES) as limited:
        checks = examined(bench, "--rpc", limited, "--rpc", bench.rpc, "--device", "cpu")
    assert checks["rpc version"]["level"] == "warning"
    assert f"{limited}: HTTP status 429" in checks["rpc version"]["found"]
    assert checks["slots"]["values"]["slot_seconds"] > 0
    assert checks["program"]["level"] == "ok"


def test_a_newcomer_needs_what_join_asks_for(bench):
    run = bench.create("chain.min_stake='1 SOL'", fund="0.1")
    named = [run, "--rpc", bench.rpc, "--device", "cpu"]
    checks = examined(bench, *named, "--key", bench.key("poor", 1.1), code=1)
    assert problems(checks) == ["fees"]
    assert checks["fees"]["needed"].startswith("1.26 SOL")
    error = bench.cli.refused(*bench.join_arguments(run, "poor"), "--check")
    assert error["subject"] == "balance"
    assert error["expected"].startswith("1.26 SOL")
    checks = examined(bench, *named, "--key", bench.key("rich", 1.26))
    assert checks["fees"]["level"] == "ok"


def test_the_state_folder_is_the_one_that_join_takes(bench, monkeypatch):
    run = bench.create(*WIDE)
    monkeypatch.chdir(bench.folder)
    named = ["--key", bench.key("a"), "--rpc", bench.rpc, "--device", "cpu", "--json"]
    checks = {one["check"]: one for one in bench.cli("doctor", "run.toml", *named).json["checks"]}
    folder = state_folder(Pubkey.from_string(run), bench.address("a"))
    assert checks["room"]["found"] == f"room for the whole run in {folder}"
    assert not folder.parent.exists()


def test_an_empty_balance_and_the_config_of_another_run_are_problems(bench):
    run = bench.create()
    bench.create("schedule.lr_nano=1", name="other")
    checks = examined(
        bench,
        run,
        *("--config", bench.folder / "other.toml", "--key", bench.key("empty", 0)),
        *("--rpc", bench.rpc, "--device", "cpu"),
        code=1,
    )
    assert {"balance", "config", "fees"} <= set(problems(checks))
    assert checks["config"]["needed"] != checks["config"]["found"]


def test_a_state_folder_that_cannot_be_written_is_a_problem(bench):
    (bench.folder / "state").write_text("a file in its place")
    checks = examined(bench, "--rpc", bench.rpc, "--device", "cpu", code=1)
    assert problems(checks) == ["disk"]
    assert "--state" in checks["disk"]["advice"]


@pytest.mark.parametrize("arguments", [("no-run",), ("--device", "abacus"), ("--nothing",)])
def test_what_cannot_be_understood_is_exit_code_2(bench, arguments):
    done = bench.cli("doctor", *arguments, "--rpc", DEAD)
    assert done.code == 2
    assert done.out == ""
