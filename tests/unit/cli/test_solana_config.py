"""Names of clusters, and what is taken from the config of Solana's own command line."""

from pathlib import Path

import pytest
from support.cli import process

from troth_cli.solana_config import MONIKERS, rpc_url

CONFIG = Path(".config/solana/cli/config.yml")
WHOLE = 'json_rpc_url: "http://127.0.0.1:2"\nwebsocket_url: ""\nkeypair_path: {}\n'
RUN = "1" * 32


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes the config of the user's home; returns the file."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def write(text):
        path = tmp_path / CONFIG
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return path

    return write


def airdrop(cli, *arguments):
    """A command that only fails to connect, and says with which address it tried."""
    return cli.refused("localnet", "airdrop", RUN, "1", *arguments)


def test_tests_see_no_config_of_the_user(cli):
    assert not (Path.home() / CONFIG).exists()
    assert "127.0.0.1:8899" in airdrop(cli)["subject"]


def test_a_child_process_sees_none_either():
    done = process("localnet", "airdrop", RUN, "1")
    assert "Taken from" not in done.stderr
    assert "127.0.0.1:8899" in done.stderr


@pytest.mark.parametrize("name", [*MONIKERS, *(name[0] for name in MONIKERS)])
def test_a_name_or_its_first_letter_stands_for_an_address(name):
    (wanted,) = [url for known, url in MONIKERS.items() if known[0] == name[0]]
    assert rpc_url(name) == wanted


def test_other_texts_stay_as_they_are():
    assert rpc_url("http://devnet") == "http://devnet"
    assert rpc_url("main") == "main"


def test_a_name_is_taken_from_flag_environment_and_file(cli, tmp_path, monkeypatch):
    file = tmp_path / "a.toml"
    file.write_text('[cli]\nrpc = "l"\n')
    monkeypatch.setenv("TROTH_RPC", "http://127.0.0.1:3")
    assert "127.0.0.1:8899" in airdrop(cli, "--rpc", "localhost")["subject"]
    assert "127.0.0.1:3" in airdrop(cli, "--config", file)["subject"]
    monkeypatch.setenv("TROTH_RPC", "localhost")
    assert "127.0.0.1:8899" in airdrop(cli)["subject"]
    monkeypatch.delenv("TROTH_RPC")
    assert "127.0.0.1:8899" in airdrop(cli, "--config", file)["subject"]


def test_the_node_comes_from_the_config_where_nobody_named_one(cli, write):
    path = write(WHOLE.format("/nowhere"))
    done = cli("localnet", "airdrop", RUN, "1")
    assert f"Taken from {path}: RPC node http://127.0.0.1:2." in done.err
    assert "127.0.0.1:2" in done.err.splitlines()[-4]
    named = cli("localnet", "airdrop", RUN, "1", "--rpc", "http://127.0.0.1:3")
    assert "Taken from" not in named.err


def test_the_key_comes_from_the_config_where_nobody_named_one(cli, write, tmp_path):
    cli.ok("keys", "new", tmp_path / "id.json")
    path = write(WHOLE.format(tmp_path / "id.json"))
    done = cli("leave", RUN)
    line = f"RPC node http://127.0.0.1:2, key file {tmp_path / 'id.json'}."
    assert done.err.splitlines()[0] == f"Taken from {path}: {line}"
    assert cli.refused("leave", RUN)["kind"].startswith("Rpc")
    missing = cli.refused("leave", RUN, "--key", tmp_path / "other.json")
    assert missing["subject"] == str(tmp_path / "other.json")


def test_a_config_file_of_ours_comes_first(cli, write, tmp_path):
    write(WHOLE.format("/nowhere"))
    ours = tmp_path / "a.toml"
    ours.write_text(f'[cli]\nrpc = "http://127.0.0.1:3"\nkey = "{tmp_path / "mine"}"\n')
    assert "127.0.0.1:3" in airdrop(cli, "--config", ours)["subject"]
    assert cli.refused("leave", RUN, "--config", ours)["subject"] == str(tmp_path / "mine")


def test_without_any_key_the_command_says_how_to_name_one(cli):
    refused = cli.refused("leave", RUN, code=2)
    assert "--key" in refused["found"]
    assert "solana config set --keypair" in refused["found"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("json_rpc_url: [", "expected"),
        ("- 1\n- 2\n", "a list"),
        ("json_rpc_url: [7]\n", "json_rpc_url that is a list"),
        ("keypair_path: {}\n", "keypair_path that is a dict"),
        ('keypair_path: "\\0id.json"\n', "keypair_path with characters"),
        ('json_rpc_url: "http://a\\e[2J"\n', "json_rpc_url with characters"),
        ("\0", "unacceptable character"),
    ],
)
def test_a_damaged_config_is_named(cli, write, text, found):
    path = write(text)
    error = cli.refused("leave", RUN)
    assert error["subject"] == str(path)
    assert found in error["found"]
    assert "solana config set" in error["next_step"]
    named = cli.refused("leave", RUN, "--key", "no-key", "--rpc", "http://127.0.0.1:3")
    assert named["kind"] == "KeyFileMissingError", "a file that is not needed is not read"


@pytest.mark.parametrize(
    "text", ["2001-13-45", "!!int abc", "!!bool x", "!!timestamp x", "!!int ''", "1" * 5_000]
)
def test_a_value_that_yaml_cannot_convert_is_text_like_any_other(cli, write, text):
    write(f'other: {text}\njson_rpc_url: "http://127.0.0.1:2"\n')
    assert "127.0.0.1:2" in airdrop(cli)["subject"]


def test_the_key_in_the_address_of_a_node_is_not_printed(cli, write):
    path = write('json_rpc_url: "http://me:hush@127.0.0.1:2/hush?api-key=hush"\n')
    done = cli("localnet", "airdrop", RUN, "1")
    assert f"Taken from {path}: RPC node http://127.0.0.1:2." in done.err
    assert "hush" not in done.err + done.out


def test_a_key_on_a_hardware_wallet_is_no_file(cli, write):
    path = write(WHOLE.format("usb://ledger?key=0"))
    error = cli.refused("leave", RUN)
    assert error["subject"] == str(path)
    assert error["found"] == "usb://ledger?key=0"
    assert "--key" in error["next_step"]
