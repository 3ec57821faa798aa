"""Config files: defaults < files left to right < flags; unknown keys are refused."""

import pytest

from troth_cli.settings import run_settings
from troth_coordinator.rules.errors import ContradictionError, UnknownKeyError


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def airdrop(cli, *arguments):
    """A command that only fails to connect, and says with which address it tried."""
    return cli.refused("localnet", "airdrop", "1" * 32, "1", *arguments)


def test_a_shared_table_fills_in_options_and_a_flag_wins(cli, write):
    file = write('[cli]\nrpc = "http://127.0.0.1:2"\n')
    assert "127.0.0.1:2" in airdrop(cli, "--config", file)["subject"]
    flag = airdrop(cli, "--config", file, "--rpc", "http://127.0.0.1:3")
    assert "127.0.0.1:3" in flag["subject"]


def test_later_files_and_the_commands_own_table_win(cli, write):
    first = write('[cli]\nrpc = "http://127.0.0.1:2"\n')
    second = write('[cli]\nrpc = "http://127.0.0.1:3"\n', "b.toml")
    own = write('[command.localnet.airdrop]\nrpc = "http://127.0.0.1:4"\n', "c.toml")
    both = airdrop(cli, "--config", first, "--config", second)
    assert "127.0.0.1:3" in both["subject"]
    assert "127.0.0.1:4" in airdrop(cli, "--config", own, "--config", second)["subject"]


def test_an_argument_and_a_required_option_may_come_from_a_file(cli, write, tmp_path):
    cli.ok("keys", "new", tmp_path / "key")
    file = write(f'[cli]\nfile = "{tmp_path / "key"}"\n')
    assert cli.json("keys", "show", "--config", file)["file"] == str(tmp_path / "key")


def test_json_may_come_from_a_file(cli, write, tmp_path):
    done = cli.ok("keys", "new", tmp_path / "key", "--config", write("[cli]\njson = true\n"))
    assert done.json["file"] == str(tmp_path / "key")


def test_one_value_or_a_list_fills_an_option_that_repeats(cli, write, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("words and words\n" * 9_000)
    for spelling in (f'"{text}"', f'["{text}"]'):
        file = write(f"[command.data.prepare]\ntext = {spelling}\nsequence_tokens = 16\n")
        done = cli.json("data", "prepare", "--config", file, "--out", tmp_path / "data")
        assert done["sequence_tokens"] == 16


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ("[cli]\nrpcc = 'x'", "cli.rpcc", "rpc"),
        ("[command.localnet.airdrop]\namont = '1'", "command.localnet.airdrop.amont", "amount"),
        ("[command.localnet]\nupp = {}", "command.localnet.upp", "up"),
        ("[command.keys.new]\nfil = 'x'", "command.keys.new.fil", "file"),
        ("[schedul]\nrounds = 1", "schedul", "schedule"),
        ("[schedule]\nround = 1", "schedule.round", "rounds"),
        ("[chain]\nrng = 1", "chain.rng", "ring"),
        ("[hints]\ndevise = 'cpu'", "hints.devise", "device"),
        ("[cli]\nconfig = 'x'", "cli.config", ""),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest(cli, write, text, key, near):
    error = airdrop(cli, "--config", write(text))
    assert error["kind"] == "UnknownKeyError"
    assert error["subject"] == key
    assert f"{near!r}" in error["next_step"] or not near


def test_of_many_keys_only_the_like_are_named(cli, write):
    error = airdrop(cli, "--config", write("[cli]\nrpcc = 'x'"))
    assert " keys, like rpc" in error["expected"]
    assert len(error["expected"]) < 80
    few = airdrop(cli, "--config", write("[schedule]\nround = 1"))
    assert few["expected"].startswith("one of decay_from_round, lr, lr_nano, rounds")


@pytest.mark.parametrize(
    "text", ["cli = 3", "[command]\nkeys = 3", "[command.keys]\nnew = 'x'", "chain = 'public'"]
)
def test_a_value_where_a_table_belongs_is_refused(cli, write, text):
    error = airdrop(cli, "--config", write(text))
    assert error["kind"] in ("SettingsError", "InvalidValueError")
    assert "Write [" in error["next_step"]


def test_a_file_that_is_missing_or_no_toml_is_named(cli, write, tmp_path):
    assert airdrop(cli, "--config", tmp_path / "none")["subject"] == str(tmp_path / "none")
    assert airdrop(cli, "--config", tmp_path)["found"] == "a folder"
    assert airdrop(cli, "--config", write("[cli"))["expected"] == "valid TOML"


def test_a_value_of_the_wrong_type_names_the_option(cli, write):
    file = write("[cli]\nport = 'many'\n")
    error = cli.refused("localnet", "up", "--config", file, code=2)
    assert "integer" in error["found"]


def test_overrides_lie_over_files(write):
    file = write("[schedule]\nrounds = 7\n[cli]\nrpc = 'x'\n")
    settings = run_settings([file], ["schedule.rounds=9", "hints.device=cpu"])
    assert settings.config.schedule.rounds == 9
    assert settings.hints.device == "cpu"
    assert run_settings([file]).config.schedule.rounds == 7


@pytest.mark.parametrize("text", ["schedule.rounds", "=3", ""])
def test_an_override_without_key_or_value_is_refused(cli, tmp_path, text):
    cli.ok("keys", "new", tmp_path / "key")
    creating = ("run", "create", "--data", tmp_path, "--key", tmp_path / "key")
    assert cli.refused(*creating, "--set", text)["kind"] == "SettingsError"


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("chain.unbond_slots=5", ContradictionError),
        ("chain.min_stake_lamports=1", ContradictionError),
        ("chain.commit_slot=1", UnknownKeyError),
    ],
)
def test_bad_settings_are_refused_before_anything_else(override, error):
    with pytest.raises(error):
        run_settings([], [override])
