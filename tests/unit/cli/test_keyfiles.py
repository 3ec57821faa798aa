"""Key files: shared with Solana's tools, private, whole, never overwritten."""

import json
import os
import stat

import pytest
from solders.keypair import Keypair

from troth_cli.errors import KeyFileContentError, KeyFileExistsError, KeyFileMissingError
from troth_cli.keyfiles import read_key, write_key


def silent(text):
    raise AssertionError(text)


def test_a_key_survives_the_file_and_solders_reads_it(tmp_path):
    key, path = Keypair(), tmp_path / "deep" / "key.json"
    write_key(path, key)
    assert read_key(path, silent) == key
    assert Keypair.from_json(path.read_text()) == key
    assert list(path.parent.iterdir()) == [path]


def test_a_new_key_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        write_key(tmp_path / "key", Keypair())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_key_is_never_overwritten(tmp_path):
    path = tmp_path / "key"
    write_key(path, Keypair())
    before = path.read_bytes()
    with pytest.raises(KeyFileExistsError):
        write_key(path, Keypair())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_open_permissions_are_warned_of(tmp_path, mode):
    path = tmp_path / "key"
    write_key(path, Keypair())
    path.chmod(mode)
    said = []
    read_key(path, said.append)
    assert len(said) == 1
    assert f"chmod 600 {path}" in said[0]


def test_the_warning_goes_to_stderr_and_the_result_stays_clean(cli, tmp_path):
    address = cli.json("keys", "new", tmp_path / "key")["address"]
    (tmp_path / "key").chmod(0o644)
    done = cli.ok("keys", "show", tmp_path / "key", "--json")
    assert done.json["address"] == address
    assert done.err.startswith("warning: ")


GOOD = list(bytes(Keypair.from_seed(bytes(32))))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "not JSON"),
        ("hello", "not JSON"),
        ('{"key": 1}', "JSON dict"),
        (json.dumps(GOOD[:63]), "list of 63"),
        (json.dumps([*GOOD, 0]), "list of 65"),
        (json.dumps([*GOOD[:63], 256]), "0 to 255"),
        (json.dumps([*GOOD[:63], -1]), "0 to 255"),
        (json.dumps([*GOOD[:63], True]), "0 to 255"),
        (json.dumps([*GOOD[:63], 1.0]), "0 to 255"),
        (json.dumps([GOOD[0] + 1, *GOOD[1:]]), "does not belong"),
        (json.dumps([*GOOD[:63], GOOD[63] ^ 1]), "does not belong"),
        ("\xff\xfe", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_wrong_content_is_named_and_never_quoted(tmp_path, content, found):
    path = tmp_path / "key"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(KeyFileContentError) as raised:
        read_key(path, silent)
    assert found in raised.value.found
    assert content[:20] not in raised.value.found or not content
    assert raised.value.subject == str(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(KeyFileMissingError) as raised:
            read_key(path, silent)
        assert raised.value.subject == str(path)
