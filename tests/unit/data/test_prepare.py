"""Preparation: deterministic, split, resumable, and never half there."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from troth_client.data import prepare as prepare_module
from troth_client.data.errors import DataError, ManifestError, PrepareError, SourceError
from troth_client.data.manifest import MAX_BYTES, MAX_TOKENIZER_BYTES, load_manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import (
    PIECE_BYTES,
    Piece,
    cut_bytes,
    stdlib_source,
    text_source,
)
from troth_client.data.tokens import ByteTokenizer, FileTokenizer, kept_tokenizer
from troth_client.runtime.files import FolderInUseError, FolderLock

OPTIONS = PrepareOptions(sequence_tokens=31, shard_tokens=2048, validation_ppm=100_000)


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    (folder / "sub").mkdir(parents=True)
    for number in range(60):
        name = f"sub/{number:03d}.txt" if number % 3 else f"{number:03d}.txt"
        (folder / name).write_text(f"text {number}: " + "lorem ipsum " * (20 + number))
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_source_gives_the_same_bytes(texts, tmp_path):
    first = prepare(tmp_path / "a", text_source([texts]), ByteTokenizer(), OPTIONS)
    second = prepare(tmp_path / "b", text_source([texts]), ByteTokenizer(), OPTIONS)
    assert first.hash == second.hash
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert first == load_manifest(tmp_path / "a")
    assert not list(tmp_path.glob("*.partial"))


def test_bytes_become_tokens_and_documents_end_in_nul(texts, tmp_path):
    manifest = prepare(tmp_path / "out", text_source([texts]), ByteTokenizer(), OPTIONS)
    assert manifest.vocab_size == 256
    assert manifest.token_bytes == 2
    assert manifest.tokenizer.end_token == 0
    rows = {}
    for split in ("train", "validation"):
        data = TokenData(tmp_path / "out", manifest, split)
        rows[split] = data.sequences(range(len(data))).astype(np.uint8).tobytes()
    documents = sorted(texts.rglob("*.txt"), key=lambda path: path.parts)
    titles = {d: d.read_bytes().partition(b":")[0] + b":" for d in documents}
    held_out = [d for d in documents if titles[d] in rows["validation"]]
    assert 3 <= len(held_out) <= 12
    for split, chosen in (
        ("train", [d for d in documents if d not in held_out]),
        ("validation", held_out),
    ):
        stream = b"".join(d.read_bytes() + b"\0" for d in chosen)
        # Only the tokens at the end that make no whole sequence are lost.
        assert stream.startswith(rows[split])
        assert len(stream) - len(rows[split]) < 32


def test_the_held_out_share_is_kept(texts, tmp_path):
    manifest = prepare(tmp_path / "out", text_source([texts]), ByteTokenizer(), OPTIONS)
    share = manifest.num_validation_sequences / (
        manifest.num_sequences + manifest.num_validation_sequences
    )
    assert 0.08 < share < 0.14


def test_the_standard_library_is_enough_text(tmp_path):
    reports = []
    options = PrepareOptions(limit_bytes=6_000_000)
    source = stdlib_source()
    assert source.num_bytes >= 5_000_000
    manifest = prepare(tmp_path / "out", source, ByteTokenizer(), options, reports.append)
    assert manifest.num_sequences * 129 > 5_000_000
    assert [r.done_bytes for r in reports] == sorted(r.done_bytes for r in reports)
    assert len(reports) >= 6
    assert reports[0].total_bytes == 6_000_000
    assert reports[-1].done_bytes == reports[-1].total_bytes >= 6_000_000
    files = [path for path in source.files if "test" in path.parts]
    assert not files


def test_preparing_again_changes_nothing_and_other_data_is_refused(texts, tmp_path):
    out = tmp_path / "out"
    first = prepare(out, text_source([texts]), ByteTokenizer(), OPTIONS)
    stamps = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert prepare(out, text_source([texts]), ByteTokenizer(), OPTIONS) == first
    assert stamps == {path: path.stat().st_mtime_ns for path in out.iterdir()}
    other = PrepareOptions(sequence_tokens=63)
    with pytest.raises(PrepareError, match="something else in it"):
        prepare(out, text_source([texts]), ByteTokenizer(), other)
    assert stamps == {path: path.stat().st_mtime_ns for path in out.iterdir()}


def test_an_empty_folder_is_taken_and_a_strange_one_is_not(texts, tmp_path):
    (tmp_path / "empty").mkdir()
    prepare(tmp_path / "empty", text_source([texts]), ByteTokenizer(), OPTIONS)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(PrepareError):
        prepare(tmp_path / "mine", text_source([texts]), ByteTokenizer(), OPTIONS)
    assert contents(tmp_path / "mine") == {"precious": b"x"}


def test_two_preparations_of_one_folder_exclude_each_other(texts, tmp_path):
    with (
        FolderLock(tmp_path / "out.partial"),
        pytest.raises(FolderInUseError, match=str(os.getpid())),
    ):
        prepare(tmp_path / "out", text_source([texts]), ByteTokenizer(), OPTIONS)


KILLED = """
import os, signal, sys
from pathlib import Path
from troth_client.data import prepare as module
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer

left = int(sys.argv[3])
write = module.atomic_write

def counting(path, chunks, durable=True):
    global left
    left -= 1
    if left < 0:
        path.with_name(path.name + ".tmp").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, chunks, durable)

module.atomic_write = counting
options = PrepareOptions(sequence_tokens=31, shard_tokens=2048, validation_ppm=100_000)
prepare(Path(sys.argv[2]), text_source([Path(sys.argv[1])]), ByteTokenizer(), options)
"""


@pytest.mark.parametrize("writes", [0, 3, 11, 1000])
def test_a_killed_preparation_goes_on_and_ends_the_same(texts, tmp_path, writes, monkeypatch):
    expected = prepare(tmp_path / "whole", text_source([texts]), ByteTokenizer(), OPTIONS)
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(texts), str(out), str(writes)]
    done = subprocess.run(command, check=False)
    assert done.returncode == (0 if writes == 1000 else -signal.SIGKILL)
    assert out.exists() == (writes == 1000)
    again = []
    write = prepare_module.atomic_write
    monkeypatch.setattr(
        prepare_module,
        "atomic_write",
        lambda path, *rest: (again.append(path.name), write(path, *rest)),
    )
    assert prepare(out, text_source([texts]), ByteTokenizer(), OPTIONS) == expected
    assert contents(out) == contents(tmp_path / "whole")
    # Shards that were on disk are not written a second time.
    shards = [name for name in again if name.startswith("train-")]
    assert len(shards) <= len(expected.train) - max(0, min(writes, len(expected.train)) - 2)


def test_a_changed_source_starts_anew(texts, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(texts), str(out), "6"]
    subprocess.run(command, check=False)
    assert (tmp_path / "out.partial" / "train-00000.bin").exists()
    (texts / "000.txt").write_text("changed " * 100)
    found = prepare(out, text_source([texts]), ByteTokenizer(), OPTIONS)
    fresh = prepare(tmp_path / "fresh", text_source([texts]), ByteTokenizer(), OPTIONS)
    assert found == fresh


@pytest.mark.parametrize("text", [b"", b"short", b"x" * 40])
def test_too_little_text_is_named(tmp_path, text):
    (tmp_path / "a.txt").write_bytes(text)
    with pytest.raises(SourceError, match=r"at least one (train|validation) sequence"):
        prepare(tmp_path / "out", text_source([tmp_path / "a.txt"]), ByteTokenizer(), OPTIONS)
    assert not (tmp_path / "out").exists()


class NoText:
    """A source that nobody may read."""

    fingerprint, num_bytes = "none", None

    def pieces(self):
        pytest.fail("text was read")


@pytest.mark.parametrize(
    "options",
    [
        PrepareOptions(sequence_tokens=0),
        PrepareOptions(shard_tokens=0),
        PrepareOptions(validation_ppm=0),
        PrepareOptions(validation_ppm=10**6),
        PrepareOptions(sequence_tokens=2**24),
        PrepareOptions(limit_bytes=0),
        PrepareOptions(limit_bytes=-5),
    ],
)
def test_options_without_sense_are_refused_before_any_text_is_read(tmp_path, options):
    with pytest.raises(PrepareError) as caught:
        prepare(tmp_path / "out", NoText(), ByteTokenizer(), options)
    assert type(caught.value) is PrepareError
    assert not (tmp_path / "out.partial").exists()


def test_sources_that_are_not_there(tmp_path):
    with pytest.raises(SourceError, match="nothing there"):
        text_source([tmp_path / "absent"])
    with pytest.raises(SourceError, match="empty folders"):
        text_source([tmp_path])


def test_binary_and_hidden_files_are_passed_over(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.bin").write_bytes(b"ELF\0\0\0")
    (tmp_path / ".c").write_text("hidden")
    assert list(text_source([tmp_path]).pieces()) == [Piece(b"text", ends_document=True)]


@pytest.mark.parametrize("unit", ["line\n", "é", "x", "𝄞 "])
@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 7])
def test_cutting_loses_nothing_and_splits_no_character(tmp_path, unit, size):
    document = (unit * (size // len(unit.encode()) + 1)).encode()[:size]
    document = document.decode("utf-8", "ignore").encode()
    (tmp_path / "a.txt").write_bytes(document)
    for pieces in (list(text_source([tmp_path]).pieces()), list(cut_bytes(document))):
        assert b"".join(piece.text for piece in pieces) == document
        assert all(len(piece.text) <= PIECE_BYTES for piece in pieces)
        for piece in pieces:
            piece.text.decode()
        assert [p.ends_document for p in pieces] == [False] * (len(pieces) - 1) + [True] * bool(
            pieces
        )


@pytest.fixture
def tokenizer_file(tmp_path):
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "lorem", "ipsum", "</s>"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path / "my-tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_file_is_used_hashed_and_kept(texts, tmp_path, tokenizer_file):
    out = tmp_path / "out"
    manifest = prepare(out, text_source([texts]), FileTokenizer(tokenizer_file), OPTIONS)
    assert manifest.vocab_size == 4
    assert manifest.tokenizer.kind == "tokenizers"
    assert manifest.tokenizer.sha256 == hashlib.sha256(tokenizer_file.read_bytes()).hexdigest()
    assert (out / "tokenizer.json").read_bytes() == tokenizer_file.read_bytes()
    data = TokenData(out, manifest)
    assert set(data.sequences(range(len(data))).flat) == {0, 1, 2, 3}
    assert manifest.tokenizer.end_token == 3


@pytest.mark.parametrize("change", [lambda path: path.write_text("{}"), lambda path: path.unlink()])
def test_a_tokenizer_file_that_changes_meanwhile_is_kept_as_it_was(
    texts, tmp_path, tokenizer_file, change
):
    before, ours = tokenizer_file.read_bytes(), FileTokenizer(tokenizer_file)
    change(tokenizer_file)
    manifest = prepare(tmp_path / "out", text_source([texts]), ours, OPTIONS)
    assert kept_tokenizer(tmp_path / "out", manifest) == before


def test_a_tokenizer_file_that_no_member_would_pass_on_is_refused(tmp_path, tokenizer_file):
    raw = tokenizer_file.read_bytes()
    tokenizer_file.write_bytes(raw + b" " * (MAX_TOKENIZER_BYTES + 1 - len(raw)))
    with pytest.raises(SourceError, match=f"more than {MAX_TOKENIZER_BYTES} bytes"):
        FileTokenizer(tokenizer_file)
    tokenizer_file.write_bytes(raw + b" " * (MAX_TOKENIZER_BYTES - len(raw)))
    assert len(FileTokenizer(tokenizer_file).raw) == MAX_TOKENIZER_BYTES


def test_a_manifest_that_no_member_would_pass_on_ends_a_preparation(texts, tmp_path, monkeypatch):
    whole = prepare(tmp_path / "whole", text_source([texts]), ByteTokenizer(), OPTIONS)
    length = len(whole.canonical)
    monkeypatch.setattr(prepare_module, "MAX_BYTES", length - 100)
    with pytest.raises(PrepareError, match=f"shards that a manifest of {length - 100} bytes"):
        prepare(tmp_path / "out", text_source([texts]), ByteTokenizer(), OPTIONS)


def test_a_longer_manifest_than_members_take_is_none(tmp_path):
    (tmp_path / "manifest.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ManifestError, match=f"more than {MAX_BYTES} bytes"):
        load_manifest(tmp_path)


@pytest.mark.parametrize("kind", ["tokenizer", "manifest"])
def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path, kind):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(DataError, match="not a regular file"):
        if kind == "tokenizer":
            FileTokenizer(tmp_path / "manifest.json")
        else:
            load_manifest(tmp_path)


def test_a_bad_tokenizer_file_or_end_token_is_named(tmp_path, tokenizer_file):
    with pytest.raises(SourceError, match="no such token"):
        FileTokenizer(tokenizer_file, "<absent>")
    (tmp_path / "bad.json").write_text("{}")
    for path in (tmp_path / "bad.json", Path("/nonexistent")):
        with pytest.raises(SourceError, match=r"tokenizer file"):
            FileTokenizer(path)


def test_large_vocabularies_take_four_bytes(tmp_path, texts):
    class Large(ByteTokenizer):
        vocab_size = 70_000

        def encode(self, piece):
            return super().encode(piece) + np.uint32(69_000)

    manifest = prepare(tmp_path / "out", text_source([texts]), Large(), OPTIONS)
    assert manifest.token_bytes == 4
    data = TokenData(tmp_path / "out", manifest)
    assert data.sequences([0]).min() >= 69_000
