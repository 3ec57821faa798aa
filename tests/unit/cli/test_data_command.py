"""`troth data prepare` from small texts."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

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


def tokenizer(path, *special):
    """A tokenizer.json of a few words and these special tokens."""
    words = {"[UNK]": 0, "some": 1, "words": 2, "of": 3}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens([AddedToken(name, special=True) for name in special])
    made.save(str(path))
    return path


def test_a_forgotten_end_token_is_said_with_the_tokens_that_there_are(cli, tmp_path, texts):
    words = ("data", "prepare", "--text", *texts, "--sequence-tokens", 32, "--tokenizer")
    file = tokenizer(tmp_path / "t.json", "<pad>", "<stop>")
    done = cli.ok(*words, file, "--out", tmp_path / "data", "--json")
    assert "documents run into each other" in done.err
    assert "--end-token names none. It has <pad>, <stop>." in done.err
    assert done.json["end_token"] is None
    named = cli.ok(*words, file, "--out", tmp_path / "b", "--end-token", "<stop>", "--json")
    assert named.json["end_token"] == 5
    assert "document" not in named.err
    wrong = cli.refused(*words, file, "--out", tmp_path / "c", "--end-token", "<end>")
    assert wrong["found"] == "no such token; it has <pad>, <stop>"


def test_a_usual_end_token_is_taken_and_said(cli, tmp_path, texts):
    file = tokenizer(tmp_path / "t.json", "<|endoftext|>")
    words = ("data", "prepare", "--text", *texts, "--sequence-tokens", 32, "--tokenizer", file)
    done = cli.ok(*words, "--out", tmp_path / "data", "--json")
    assert "A document ends with <|endoftext|>, token 4" in done.err
    assert done.json["end_token"] == 4


def test_an_end_token_or_a_tokenizer_alone_is_named(cli, tmp_path, texts):
    words = ("data", "prepare", "--text", *texts, "--out", tmp_path / "data")
    alone = cli.refused(*words, "--end-token", "</s>", code=2)
    assert "--end-token names a token of --tokenizer" in alone["found"]
    gone = cli.refused(*words, "--tokenizer", tmp_path / "none.json")
    assert gone["found"] == "no such file or directory"
    assert "--tokenizer" in gone["next_step"]


def test_a_subset_of_a_hugging_face_set_with_its_split_and_column(cli, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [json.dumps({"satz": f"Satz Nummer {number} " * 9}) for number in range(60)]
    (folder / "a.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "b.jsonl").write_text('{"text": "not this one"}\n')
    german = "{config_name: de, data_files: [{split: test, path: a.jsonl}]}"
    subsets = f"- {german}\n- {{config_name: en, data_files: b.jsonl}}"
    (folder / "README.md").write_text(f"---\nconfigs:\n{subsets}\n---\n")
    words = ("data", "prepare", "--hf", folder, "--sequence-tokens", 32, "--out", tmp_path / "out")
    chosen = ("--hf-config", "de", "--hf-split", "test", "--hf-column", "satz")
    assert cli.json(*words, *chosen)["num_sequences"] > 200
    error = cli.refused(*words[:-1], tmp_path / "other", *chosen[:-1], "text")
    assert error["kind"] == "SourceError"
    assert "columns ['satz']" in error["found"]


def test_every_choice_of_a_hugging_face_set_reaches_the_library(cli, tmp_path, monkeypatch):
    rows = [{"satz": f"Satz Nummer {number} " * 9} for number in range(60)]
    load = Mock(return_value=rows)
    monkeypatch.setattr("datasets.load_dataset", load)
    (tmp_path / "set").mkdir()
    chosen = ("--hf-config", "de", "--hf-split", "test", "--hf-column", "satz")
    words = ("data", "prepare", "--hf", tmp_path / "set", *chosen, "--hf-revision", "v1.2")
    cli.ok(*words, "--sequence-tokens", 32, "--out", tmp_path / "out")
    load.assert_called_once_with(
        str(tmp_path / "set"), "de", split="test", revision="v1.2", streaming=True
    )
