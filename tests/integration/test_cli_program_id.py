"""The program at another address: every command finds it by --program-id or TROTH_PROGRAM."""

import pytest
from support.cli import Cli
from support.moved_program import ELSEWHERE, IMAGE_ELSEWHERE
from support.network import PROGRAM, SOL, Bench, processes, start

pytestmark = pytest.mark.processes
THERE = ("--program-id", ELSEWHERE)


@pytest.fixture(scope="module")
def elsewhere():
    """A chain whose one program lies at another address than the shipped one's."""
    launcher = start({ELSEWHERE: IMAGE_ELSEWHERE})
    yield launcher
    launcher.stop()


@pytest.fixture
def bench(capsys, elsewhere, tmp_path, text_data):
    return Bench(Cli(capsys), elsewhere, tmp_path, text_data)


@pytest.fixture
def begin(bench):
    with processes(bench) as begin:
        yield begin


def test_a_run_of_a_program_elsewhere_is_created_paid_into_and_shown(bench, monkeypatch):
    run = bench.cli.json(*bench.create_arguments(), *THERE)["run"]
    refused = bench.cli.refused(*bench.of_run("run", "show", run=run))
    assert refused["kind"] == "ProgramMissingError"
    assert str(PROGRAM) in refused["subject"]
    monkeypatch.setenv("TROTH_PROGRAM", str(ELSEWHERE))
    fund = bench.of_run("run", "fund", run=run, key="authority")
    assert bench.cli.json(*fund, "--sol", "0.5")["reward_pool_lamports"] == 6 * SOL // 10
    assert bench.cli.json(*bench.of_run("run", "show", run=run))["program"] == str(ELSEWHERE)
    assert bench.cli.json(*bench.of_run("status", run=run))["phase"] == "waiting_for_members"


@pytest.mark.long(reason="a run of processes")
def test_a_participant_and_a_hub_of_a_program_elsewhere_follow_their_run(bench, begin):
    run = bench.cli.json(*bench.create_arguments(), *THERE)["run"]
    where = ("--listen", "127.0.0.1:0", "--dir", bench.folder / "hub", "--rpc", bench.rpc)
    hub = begin(("hub", "--run", run, *where, *THERE), "hub")
    member = begin((*bench.join_arguments(run, "ada"), *THERE), "ada")
    member.wait_for("phase=WAITING_FOR_MEMBERS")
    hub.wait_for("hub_listening")
    (one,) = bench.cli.json(*bench.of_run("status", run=run), *THERE)["participants"]
    assert one["owner"] == str(bench.address("ada"))
    rows = bench.cli("doctor", run, "--rpc", bench.rpc, *THERE, "--json").json["checks"]
    assert {row["check"]: row["found"] for row in rows}["program"] == str(ELSEWHERE)
    left = bench.cli.json(*bench.of_run("leave", run=run, key="ada"), *THERE)
    assert left["owner"] == str(bench.address("ada"))


def test_a_program_id_that_is_no_address_is_refused_by_the_option_name(bench):
    refused = bench.cli.refused("status", ELSEWHERE, "--rpc", bench.rpc, "--program-id", "nobody")
    assert refused["kind"] == "InputError"
    assert refused["subject"] == "--program-id"
