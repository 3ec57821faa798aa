"""Commands under a limit on the size of files: a clear error, no damaged file, nothing lost."""

import json

import pytest
from support.cli import process
from support.disks import process_beyond_room

LIMIT = 20_000


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("some words of a text\n" * 5_000)
    return path


def test_a_preparation_that_meets_the_limit_goes_on_without_it(tmp_path, text):
    words = ("data", "prepare", "--text", text, "--out", tmp_path / "set", "--json")
    done = process_beyond_room(LIMIT, *words)
    assert done.returncode == 1, done
    assert done.stdout == ""
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert error["kind"] == "DiskFullError"
    assert error["found"] == "file too large"
    assert "lift the limit on the size of files (ulimit -f)" in error["next_step"]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "set" / "manifest.json").exists()

    again = process(*words)
    assert again.returncode == 0, again
    fresh = process(*words[:-3], "--out", tmp_path / "fresh", "--json")
    named = json.loads(fresh.stdout)["manifest_hash"]
    assert json.loads(again.stdout)["manifest_hash"] == named
