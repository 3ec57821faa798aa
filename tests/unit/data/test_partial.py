"""The folder of an unfinished preparation: a user's own is left alone, and shards are looked at."""

import random

import pytest
from support.data_sets import kill_preparation

from troth_client.data.errors import PrepareError, SourceError
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import Piece, text_source
from troth_client.data.tokens import ByteTokenizer

OPTIONS = PrepareOptions(sequence_tokens=31, shard_tokens=2048, validation_ppm=100_000)


@pytest.fixture
def source(tmp_path):
    """Text for many shards."""
    (tmp_path / "texts").mkdir()
    draw = random.Random(3)
    for number in range(40):
        words = " ".join(str(draw.randrange(10**6)) for _ in range(60))
        (tmp_path / "texts" / f"{number:02d}.txt").write_text(words)
    return text_source([tmp_path / "texts"])


def made(out, source):
    return prepare(out, source, ByteTokenizer(), OPTIONS)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def locked(folder):
    """A folder in which a preparation has been."""
    folder.mkdir()
    (folder / "lock").touch()
    return folder


def refused(out, source, found):
    with pytest.raises(PrepareError, match=found) as caught:
        made(out, source)
    assert "left as it is" in caught.value.next_step
    assert not out.exists()


def test_a_folder_of_the_users_own_is_left_alone(tmp_path, source):
    """Its name is that of an unfinished preparation by chance."""
    own = tmp_path / "set.partial"
    own.mkdir()
    (own / "thesis.txt").write_text("thesis")
    refused(tmp_path / "set", source, "thesis.txt in it")
    assert contents(own) == {"thesis.txt": b"thesis"}


@pytest.mark.parametrize("name", ["notes.tmp", "train-1.bin", "lock.bin", "manifest.json.bak"])
def test_a_name_that_is_like_ours_is_left_alone(tmp_path, source, name):
    own = locked(tmp_path / "set.partial")
    (own / name).write_text("mine")
    refused(tmp_path / "set", source, f"{name} in it")
    assert contents(own) == {"lock": b"", name: b"mine"}


@pytest.mark.parametrize("name", ["tokenizer.json", "origin.json", "train-00000.bin"])
def test_a_file_of_our_name_in_a_folder_of_the_users_own_is_left_alone(tmp_path, source, name):
    """No preparation has been there: it would have left its lock."""
    own = tmp_path / "set.partial"
    own.mkdir()
    (own / name).write_text("mine")
    refused(tmp_path / "set", source, f"{name} in it")
    assert contents(own) == {name: b"mine"}


@pytest.mark.parametrize("name", ["sub", "train-00000.bin"])
def test_a_folder_inside_is_left_alone(tmp_path, source, name):
    (locked(tmp_path / "set.partial") / name).mkdir()
    refused(tmp_path / "set", source, f"{name} in it")


def test_nothing_is_removed_behind_a_link(tmp_path, source):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "manifest.json").write_text("mine")
    (tmp_path / "set.partial").symlink_to(precious)
    refused(tmp_path / "set", source, "found a link")
    assert contents(precious) == {"manifest.json": b"mine"}


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path, source):
    (tmp_path / "set.partial").write_text("mine")
    refused(tmp_path / "set", source, "found a file")
    assert (tmp_path / "set.partial").read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_refusal_leaves_nothing_behind(tmp_path, source, kind):
    out = tmp_path / "mine"
    if kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "other").write_text("mine")
    with pytest.raises(PrepareError, match="something else in it"):
        made(out, source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "texts"]


def test_the_folder_of_the_shell_may_be_the_data_set(tmp_path, source, monkeypatch):
    (tmp_path / "set").mkdir()
    monkeypatch.chdir(tmp_path / "set")
    manifest = made(tmp_path.joinpath("set").relative_to(tmp_path / "set"), source)
    assert TokenData(tmp_path / "set", manifest).faults(lambda *_: None) == []


def test_the_root_of_all_folders_is_named(tmp_path, source):
    with pytest.raises(PrepareError, match="the root of all folders"):
        made(tmp_path.resolve().parents[-1], source)


def test_an_interrupted_preparation_goes_on_with_its_whole_shards(tmp_path, source):
    whole = made(tmp_path / "whole", source)
    partial = kill_preparation(tmp_path / "set", source, 30, OPTIONS)
    kept = {path.name: path.stat().st_mtime_ns for path in partial.glob("train-*.bin")}
    assert len(kept) >= 3
    assert made(tmp_path / "set", source) == whole
    after = {name: (tmp_path / "set" / name).stat().st_mtime_ns for name in kept}
    assert after == kept


class Shrinking:
    """A data set of the hub without --hf-revision: its name stays, its rows become fewer."""

    fingerprint, num_bytes = "name", None

    def __init__(self, rows):
        self.rows = rows

    def pieces(self):
        return (Piece(b"row %05d " % row * 50, ends_document=True) for row in range(self.rows))


@pytest.mark.parametrize("rows", [0, 24])
def test_a_source_with_fewer_pieces_than_were_read_before_is_refused(tmp_path, rows):
    """All of its new text would be passed over, and the folder declared complete."""
    partial = kill_preparation(tmp_path / "set", Shrinking(50), 30, OPTIONS)
    before = contents(partial)
    with pytest.raises(SourceError, match=f"one of {rows} pieces: it has changed") as caught:
        made(tmp_path / "set", Shrinking(rows))
    assert f"Remove {partial}" in caught.value.next_step
    assert "--hf-revision" in caught.value.next_step
    assert contents(partial) == before
    assert not (tmp_path / "set").exists()


def cut(path):
    path.write_bytes(path.read_bytes()[:-2])


def change(path):
    path.write_bytes(path.read_bytes()[:-2] + b"?\0")


DAMAGE = {"missing": lambda path: path.unlink(), "cut": cut, "changed": change}


@pytest.mark.parametrize("kind", list(DAMAGE))
def test_a_shard_that_is_not_as_it_was_written_makes_it_start_anew(tmp_path, source, kind):
    """A cleaner or a disk took it between the two commands."""
    whole = made(tmp_path / "whole", source)
    partial = kill_preparation(tmp_path / "set", source, 30, OPTIONS)
    DAMAGE[kind](partial / "train-00000.bin")
    assert made(tmp_path / "set", source) == whole
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")
