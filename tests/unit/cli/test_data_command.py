"""`troth data prepare` from small texts."""

from pathlib import Path

import pytest

from troth_client.data.manifest import load_manifest

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.fixture
def texts(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"some words of {name}\n" * 1_000)
    return tmp_path / "a.txt", tmp_path / "b.txt"


def test_files_after_text_belong_to_it_and_the_hash_is_the_manifests(cli, tmp_path, texts):
    out = tmp_path / "data"
    found = cli.json("data", "prepare", "--text", *texts, "--out", out, "--sequence-tokens", 32)
    manifest = load_manifest(out)
    assert found["manifest_hash"] == manifest.hash.hex()
    assert found["num_sequences"] == manifest.num_sequences > 500
    assert found["vocab_size"] == 256
    assert found["sequence_tokens"] == 32
    again = cli.json(
        *("data", "prepare", "--text", texts[0], "--text", texts[1]),
        *("--out", tmp_path / "again", "--sequence-tokens", 32),
    )
    assert again["manifest_hash"] == found["manifest_hash"]


def test_the_text_for_people_holds_the_hash_and_the_bar_goes_to_stderr(cli, tmp_path, texts):
    done = cli.ok("data", "prepare", "--text", *texts, "--out", tmp_path / "data")
    assert load_manifest(tmp_path / "data").hash.hex() in done.out
    assert "preparing data" not in done.out
    assert "preparing data" in done.err


def test_the_length_of_sequences_follows_the_runs_settings(cli, tmp_path, texts):
    command = ("data", "prepare", "--text", *texts, "--config", CONFIGS / "smoke.toml")
    assert cli.json(*command, "--out", tmp_path / "data")["sequence_tokens"] == 64


def test_the_standard_library_stops_at_the_limit(cli, tmp_path):
    out = tmp_path / "data"
    found = cli.json("data", "prepare", "--stdlib", "--limit-bytes", 200_000, "--out", out)
    assert found["num_sequences"] * 129 < 400_000


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--text", "none.txt"], "SourceError"),
        (["--text", "tiny.txt"], "SourceError"),
        (["--text", "a.txt", "--tokenizer", "a.txt"], "SourceError"),
        (["--text", "a.txt", "--sequence-tokens", "-1"], "PrepareError"),
        (["--text", "a.txt", "--validation-ppm", "0"], "PrepareError"),
        (["--text", "a.txt", "--out", "full"], "PrepareError"),
    ],
)
def test_bad_input_is_named_and_leaves_no_finished_folder(
    cli, tmp_path, texts, monkeypatch, arguments, kind
):
    monkeypatch.chdir(tmp_path)
    Path("tiny.txt").write_text("x")
    Path("full").mkdir()
    Path("full/other").write_text("mine")
    error = cli.refused("data", "prepare", "--out", "data", *arguments)
    assert error["kind"] == kind
    assert not Path("data").exists()
    assert Path("full/other").read_text() == "mine"
