"""The file that `run create` writes stands for the run in every command, wherever it lies."""

import pytest
from support.cli import Cli
from support.moved_program import ELSEWHERE, IMAGE_ELSEWHERE
from support.network import PROGRAM, SOL, Bench, prepare_text, processes, start

from troth_cli.run_file import read_run_file

pytestmark = pytest.mark.processes


@pytest.fixture
def begin(bench):
    with processes(bench) as begin:
        yield begin


@pytest.fixture
def here(bench, monkeypatch):
    """Commands run in the folder of the keys, and no network is named to them."""
    monkeypatch.chdir(bench.folder)
    return bench


def create(bench, *arguments):
    """Create a run as a user does who is in the folder of the run."""
    bench.key("authority")
    found = bench.cli.json(
        *("run", "create", "--config", "smoke.toml", "--data", "set", "--key", "authority.json"),
        *("--rpc", bench.rpc, *arguments),
    )
    assert found["config_file"] == "run.toml"
    return found["run"]


def test_after_its_creation_nothing_has_to_be_named_but_a_key(here, begin):
    here.cli.ok("run", "init", "--preset", "smoke")
    prepare_text(here.folder)
    run = create(here)
    assert read_run_file(here.folder / "run.toml").program_id == str(PROGRAM)
    assert here.cli.json("status", "run.toml")["run"] == run
    shown = here.cli.ok("run", "fund", "run.toml", "--sol", "0.5", "--key", "authority.json")
    assert f"Taken from run.toml: RPC node {here.rpc}." in shown.err
    assert here.cli.json("run", "show", "run.toml")["reward_pool_lamports"] == SOL // 2
    rows = here.cli.json("doctor", "run.toml", "--device", "cpu")["checks"]
    assert {row["check"]: row["level"] for row in rows}["config"] == "ok"
    here.key("ada")
    there = ("--device", "cpu", "--state", here.folder / "state-ada", "--anyway")
    file = here.folder / "run.toml"
    member = begin(("join", file, "--key", here.folder / "ada.json", *there), "ada")
    member.wait_for("phase=WAITING_FOR_MEMBERS")
    assert not (here.folder / "state-ada" / "data").exists(), "the data beside the file were used"
    (one,) = here.cli.json("status", "run.toml")["participants"]
    assert one["owner"] == str(here.address("ada"))


def test_without_the_folder_beside_it_the_data_are_fetched(here, tmp_path):
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    create(here)
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    (here.folder / "run.toml").rename(lonely / "run.toml")
    here.key("ada")
    error = here.cli.refused(
        *("join", lonely / "run.toml", "--key", "ada.json", "--device", "cpu", "--check"),
        *("--state", lonely / "state", "--anyway"),
    )
    assert error["kind"] == "RunFilesGoneError", "nobody serves them yet"


def test_push_and_serve_take_the_data_that_lie_beside_the_file(here, begin, tmp_path):
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    create(here)
    (pushed,) = here.cli.json("data", "push", "run.toml", "--to", f"file://{tmp_path}/store")[
        "holders"
    ]
    assert pushed["refused"] == 0
    assert {path.name for path in (tmp_path / "store").iterdir()} >= {"config", "manifest", "piece"}
    server = begin(("data", "serve", here.folder / "run.toml"), "server")
    server.wait_for("serving at")
    url = server.notes().partition("serving at ")[2].split()[0]
    there = tmp_path / "there"
    here.cli.ok("data", "fetch", "run.toml", "--out", there, "--from", url)
    shards = list((here.folder / "set").glob("*.bin"))
    assert len(shards) == 2
    for shard in shards:
        assert (there / shard.name).read_bytes() == shard.read_bytes()


def test_a_new_run_offers_its_files_to_each_holder_and_names_one_that_is_away(here, tmp_path):
    """The shards stay here: `troth data push` offers them."""
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    here.key("authority")
    done = here.cli.ok(
        *("run", "create", "--config", "smoke.toml", "--data", "set", "--key", "authority.json"),
        *("--rpc", here.rpc, "--push-to", f"file://{tmp_path}/store"),
        *("--push-to", "http://127.0.0.1:2"),
    )
    assert {path.name for path in (tmp_path / "store").iterdir()} == {"config", "manifest"}
    (manifest,) = (tmp_path / "store" / "manifest").iterdir()
    assert manifest.read_bytes() == (here.folder / "set" / "manifest.json").read_bytes()
    assert "http://127.0.0.1:2 has not taken the run's files" in done.err


@pytest.mark.parametrize("command", [("push", "--to", "http://127.0.0.1:2"), ("serve",)])
def test_push_and_serve_ask_for_the_data_that_nobody_names(here, command):
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    run = create(here)
    (here.folder / "set").rename(here.folder / "moved")
    for named in ("run.toml", run):
        done = here.cli("data", command[0], named, *command[1:], "--rpc", here.rpc)
        assert done.code == 2
        assert "Missing option '--data'" in done.err
        assert "the run's file" in done.err.replace("\n", " ")


def test_a_second_run_does_not_take_the_place_of_the_first(here):
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    run = create(here)
    before = here.balance("authority")
    error = here.cli.refused(
        *("run", "create", "--config", "smoke.toml", "--data", "set", "--key", "authority.json"),
        *("--rpc", here.rpc, "--name", "second"),
    )
    assert error["kind"] == "OutputFileError"
    assert here.balance("authority") == before
    assert create(here) == run, "repeating the first command completes it"


def test_a_node_with_an_access_key_stays_out_of_the_file(here):
    prepare_text(here.folder)
    here.cli.ok("run", "init", "--preset", "smoke")
    here.key("authority")
    done = here.cli.ok(
        *("run", "create", "--config", "smoke.toml", "--data", "set", "--key", "authority.json"),
        *("--rpc", f"{here.rpc}/?api-key=secret"),
    )
    assert "run.toml names no RPC node" in done.err
    assert "Join with: troth join run.toml --key FILE" in done.out
    assert "secret" not in (here.folder / "run.toml").read_text()


def test_the_run_of_a_program_elsewhere_is_joined_after_a_word_of_the_user(
    capsys, tmp_path, text_data, monkeypatch
):
    launcher = start({ELSEWHERE: IMAGE_ELSEWHERE})
    try:
        bench = Bench(Cli(capsys), launcher, tmp_path, text_data)
        bench.cli.json(*bench.create_arguments(), "--program-id", ELSEWHERE)
        file = tmp_path / "run.toml"
        assert bench.cli.json("status", file)["phase"] == "waiting_for_members"
        other = bench.cli.refused("status", file, "--program-id", PROGRAM)
        assert other["kind"] == "ProgramMissingError", "the user's word counts, not the file's"
        fund = ("run", "fund", file, "--sol", "1", "--key", bench.key("authority"))
        assert bench.cli.refused(*fund)["subject"] == str(file)
        monkeypatch.setenv("TROTH_PROGRAM", str(ELSEWHERE))
        assert bench.cli.json(*fund)["reward_pool_lamports"] == 11 * SOL // 10
    finally:
        launcher.stop()
