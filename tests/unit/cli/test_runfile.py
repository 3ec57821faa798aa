"""A run's file says all that the creator's settings said, and a stranger's file says no more."""

from pathlib import Path

import pytest
from support.moved_program import ELSEWHERE, OURS

from troth_cli.errors import OutputFileError
from troth_cli.run_file import (
    Place,
    beside,
    check_run_file,
    is_public_url,
    read_run_file,
    run_file_text,
    write_run_file,
)
from troth_cli.settings import run_settings

CONFIGS = sorted((Path(__file__).parents[3] / "configs").glob("*.toml"))
RUN = "1" * 32
DEAD, OTHER = "http://127.0.0.1:2", "http://127.0.0.1:3"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The folder that commands may write into, like the state of a participant."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def key(cli, tmp_path):
    cli.ok("keys", "new", tmp_path / "key.json")
    return tmp_path / "key.json"


@pytest.fixture
def write(tmp_path):
    """Writes a file with these lines under [run], or with a text after them."""

    def write(*lines, rest=""):
        path = tmp_path / "given" / "run.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["[run]", *lines, rest]))
        return path

    return write


def test_a_folder_with_an_accent_may_hold_the_data(tmp_path):
    """The file was written after the run was paid, and its folder's name was no ASCII."""
    file, settings = tmp_path / "run.toml", run_settings(CONFIGS[:1])
    (tmp_path / "données").mkdir()
    text = run_file_text(Place(RUN, str(OURS), (), "données"), settings)
    check_run_file(file, text)
    write_run_file(file, text)
    write_run_file(file, text)  # an equal one is left
    assert read_run_file(file).data == tmp_path / "données"
    with pytest.raises(OutputFileError, match="UTF-8"):
        check_run_file(file, run_file_text(Place(RUN, str(OURS), (), "\udcff"), settings))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_reading_it_gives_the_same_settings_and_place(tmp_path, config):
    settings = run_settings([config], ["hints.device=cpu", "chain.admission=allowlist"])
    bound = settings.model_copy(update={"config": settings.config.with_manifest(bytes(range(32)))})
    file = tmp_path / "run.toml"
    place = Place(RUN, str(OURS), (DEAD, OTHER), "sets/data")
    write_run_file(file, run_file_text(place, bound))
    assert run_settings([file]) == bound
    assert run_settings([file]).config.config_hash() == bound.config.config_hash()
    found = read_run_file(file)
    assert found.address == RUN
    assert found.program_id == str(OURS)
    assert found.rpc == place.rpc
    assert found.data is None, "no such folder here"
    (tmp_path / "sets" / "data").mkdir(parents=True)
    assert read_run_file(file).data == tmp_path / "sets" / "data"


def test_the_file_is_written_in_units(tmp_path):
    text = run_file_text(Place(RUN, str(OURS)), run_settings([]))
    assert "\nlr = 0.001\n" in text
    assert '\nmin_stake = "0.1 SOL"\n' in text
    assert "lamports" not in text


@pytest.mark.parametrize("words", [("status",), ("status", "--config")])
def test_it_stands_for_the_run(cli, write, words):
    error = cli.refused(*words, write('address = "no run"'))
    assert error["subject"] == "RUN"
    assert error["found"] == repr("no run")


def test_the_node_comes_from_it_unless_the_user_names_one(cli, write, tmp_path, monkeypatch):
    file = write(f'address = "{RUN}"', f'rpc = ["{DEAD}"]')
    assert "127.0.0.1:2" in cli.refused("status", file)["subject"]
    assert "127.0.0.1:3" in cli.refused("status", file, "--rpc", OTHER)["subject"]
    mine = tmp_path / "mine.toml"
    mine.write_text(f'[cli]\nrpc = "{OTHER}"\n')
    assert "127.0.0.1:3" in cli.refused("status", file, "--config", mine)["subject"]
    monkeypatch.setenv("TROTH_RPC", OTHER)
    assert "127.0.0.1:3" in cli.refused("status", file)["subject"]


@pytest.mark.parametrize("words", [("status",), ("leave", "--key", "key.json")])
def test_the_users_own_config_of_solana_comes_before_the_file(
    cli, write, key, tmp_path, monkeypatch, words
):
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / ".config/solana/cli/config.yml"
    config.parent.mkdir(parents=True)
    config.write_text(f"json_rpc_url: {OTHER}\n")
    file = write(f'address = "{RUN}"', f'rpc = ["{DEAD}"]')
    done = cli(*words, file)
    line = f"Taken from {config}: RPC node {OTHER}. {file} names {DEAD}: give --rpc for that one."
    assert done.err.splitlines()[0] == line
    assert "127.0.0.1:3" in cli.refused(*words, file)["subject"]
    assert "127.0.0.1:2" in cli.refused(*words, file, "--rpc", DEAD)["subject"]


def test_a_command_that_signs_says_that_the_node_is_of_the_file(cli, write, key):
    file = write(f'address = "{RUN}"', f'rpc = "{DEAD}"')
    line = f"Taken from {file}: RPC node {DEAD}."
    assert line in cli("leave", file, "--key", key).err
    assert "Taken from" not in cli("leave", file, "--key", key, "--rpc", OTHER).err
    assert "Taken from" not in cli("status", file).err


@pytest.mark.parametrize("words", ["leave", "claim", "join", "witness", "stake top-up", "run fund"])
def test_no_command_signs_for_a_program_that_only_the_file_names(cli, write, key, words):
    """Threat T126: the file of a run names a program that keeps every stake."""
    file = write(f'address = "{RUN}"', f'program_id = "{ELSEWHERE}"', f'rpc = "{DEAD}"')
    amount = {"stake top-up": ["1"], "run fund": ["--sol", "1"]}.get(words, [])
    command = (*words.split(), file, *amount, "--key", key)
    error = cli.refused(*command)
    assert error["subject"] == str(file)
    assert str(ELSEWHERE) in error["found"]
    assert f"troth program verify {ELSEWHERE}" in error["next_step"]
    other = cli.refused(*command, "--program-id", OURS)
    assert other["subject"] == str(file), "another id is no consent"
    named = cli.refused(*command, "--program-id", ELSEWHERE)
    assert named["subject"] != str(file)
    assert "127.0.0.1:2" in named["subject"]


def test_the_packaged_program_needs_no_consent_and_a_look_none_either(cli, write, key):
    file = write(f'address = "{RUN}"', f'program_id = "{OURS}"', f'rpc = "{DEAD}"')
    assert "127.0.0.1:2" in cli.refused("leave", file, "--key", key)["subject"]
    file = write(f'address = "{RUN}"', f'program_id = "{ELSEWHERE}"', f'rpc = "{DEAD}"')
    assert "127.0.0.1:2" in cli.refused("status", file)["subject"]


@pytest.mark.parametrize(
    ("lines", "rest", "where"),
    [
        (['key = "id.json"'], "", "run.key"),
        (['state = "elsewhere"'], "", "run.state"),
        (["rpc = [1]"], "", "run.rpc"),
        (["data = 7"], "", "run.data"),
        (["start = 7"], "", "run.start"),
        ([], '[cli]\nkey = "id.json"', "cli"),
        ([], "[command.join]\nyes = true", "command"),
    ],
)
@pytest.mark.parametrize("words", [("status",), ("status", RUN, "--config")])
def test_the_file_may_say_nothing_else(cli, write, words, lines, rest, where):
    """Threat T126: the file of a run names a key, or options of commands."""
    file = write(f'address = "{RUN}"', *lines, rest=rest)
    error = cli.refused(*words, file)
    assert error["kind"] == "SettingsError"
    assert error["subject"] == f"{file}: {where}"


@pytest.mark.parametrize("key", ["data", "start"])
@pytest.mark.parametrize("folder", ["/etc", "../elsewhere", "set/../data", "link"])
def test_the_file_names_no_folder_but_one_beside_it(cli, write, folder, key):
    """Threat T126: the file of a run names a folder of the user's."""
    file = write(f'address = "{RUN}"', f'{key} = "{folder}"')
    (file.parent / "link").symlink_to("/")
    assert cli.refused("status", file)["subject"] == f"{file}: run.{key}"


@pytest.mark.parametrize("text", ["", "run = 7\n", "[run]\nrpc = 'l'\n", "[schedule]\nlr = 0.1\n"])
def test_a_file_without_a_run_is_refused(cli, tmp_path, text):
    file = tmp_path / "run.toml"
    file.write_text(text)
    error = cli.refused("status", file)
    assert error["kind"] == "SettingsError"
    assert error["subject"].startswith(f"{file}: run")


def test_a_file_that_is_not_there_is_named(cli):
    assert cli.refused("status", "none.toml")["subject"] == "none.toml"


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        (DEAD, True),
        ("https://rpc.example/", True),
        ("https://rpc.example/?api-key=secret", False),
        ("https://rpc.example/v2/secret", False),
        ("https://me:secret@rpc.example", False),
    ],
)
def test_an_address_with_an_access_key_is_not_handed_out(url, is_shown):
    assert is_public_url(url) is is_shown


def test_only_beside_the_file_are_named(tmp_path):
    assert beside(tmp_path / "run.toml", tmp_path / "sets" / "data") == "sets/data"
    assert beside(tmp_path / "here" / "run.toml", tmp_path / "data") == ""


def test_another_file_is_not_overwritten(tmp_path):
    file = tmp_path / "run.toml"
    write_run_file(file, "a = 1\n")
    write_run_file(file, "a = 1\n")
    with pytest.raises(OutputFileError):
        write_run_file(file, "a = 2\n")
    assert file.read_text() == "a = 1\n"
