"""Sequences come out right, and never out of a file that the manifest does not vouch for."""

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest
from support.data_sets import with_token

from troth_client.data.errors import (
    SequenceIdError,
    ShardContentError,
    ShardMissingError,
    ShardSizeError,
    ShardTokenError,
)
from troth_client.data.pieces import PieceData
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import text_source
from troth_client.data.tokens import ByteTokenizer

OPTIONS = PrepareOptions(sequence_tokens=15, shard_tokens=1000, validation_ppm=200_000)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A data set of several shards, and its split texts as the tokens should read."""
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(4)
    for number in range(40):
        text = "".join(chr(draw.randrange(32, 127)) for _ in range(draw.randrange(50, 400)))
        (folder / f"text-{number:02d}.txt").write_text(text)
    source = text_source([folder])
    return prepare(folder / "out", source, ByteTokenizer(), OPTIONS), folder / "out"


@pytest.fixture
def copy(original, tmp_path):
    manifest, folder = original
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return manifest, tmp_path


def raw(folder, manifest, split="train"):
    shards = [np.fromfile(folder / s.file, "<u2") for s in manifest.shards(split)]
    return np.concatenate(shards).reshape(-1, manifest.row_tokens)


def test_ids_follow_the_shards_in_any_order(copy):
    manifest, folder = copy
    assert len(manifest.train) > 3
    for split in ("train", "validation"):
        data = TokenData(folder, manifest, split)
        rows = raw(folder, manifest, split)
        assert len(data) == len(rows) == manifest.count(split)
        ids = random.Random(1).sample(range(len(rows)), len(rows))
        found = data.sequences(ids)
        assert found.dtype == np.int64
        assert np.array_equal(found, rows[ids])


def test_the_same_id_twice_and_none_at_all(copy):
    manifest, folder = copy
    data = TokenData(folder, manifest)
    assert data.sequences([]).shape == (0, 16)
    twice = data.sequences((3, 3))
    assert np.array_equal(twice[0], twice[1])


@pytest.mark.parametrize("sequence", [-1, 10**9])
def test_ids_outside_are_refused(copy, sequence):
    manifest, folder = copy
    with pytest.raises(SequenceIdError, match=str(sequence)):
        TokenData(folder, manifest).sequences([0, sequence])


def test_only_the_shard_in_use_is_checked(copy):
    manifest, folder = copy
    (folder / manifest.train[-1].file).unlink()
    data = TokenData(folder, manifest)
    data.sequences([0])
    with pytest.raises(ShardMissingError, match=manifest.train[-1].file):
        data.sequences([len(data) - 1])
    (fault,) = data.faults(lambda *_: None)
    assert type(fault) is ShardMissingError


def change_byte(path):
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "missing": (lambda path: path.unlink(), ShardMissingError, "no such file"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), ShardSizeError, "bytes"),
    "truncated": (lambda path: os.truncate(path, 100), ShardSizeError, "found 100 bytes"),
    "extended": (lambda path: path.open("ab").write(b"x"), ShardSizeError, "bytes"),
    "altered": (change_byte, ShardContentError, "the hash .* of piece 0"),
}


@pytest.mark.parametrize("kind", list(DAMAGE))
@pytest.mark.parametrize("when", ["before", "between"])
def test_damage_is_named_and_nothing_of_it_returned(copy, kind, when):
    manifest, folder = copy
    data = TokenData(folder, manifest)
    if when == "between":
        data.sequences([0, 1])
    damage, error, message = DAMAGE[kind]
    path = folder / manifest.train[0].file
    damage(path)
    with pytest.raises(error, match=message) as caught:
        data.sequences([len(data) - 1, 0])
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert "prepare" in str(caught.value)


def test_a_repaired_shard_is_used_again(copy, original):
    manifest, folder = copy
    data = TokenData(folder, manifest)
    path = folder / manifest.train[0].file
    good = path.read_bytes()
    change_byte(path)
    with pytest.raises(ShardContentError):
        data.sequences([0])
    path.write_bytes(good)
    assert np.array_equal(data.sequences([0]), raw(original[1], manifest)[[0]])


def test_a_token_too_large_costs_its_own_sequence_only_even_if_hashed(copy):
    """The creator hid it in one sequence: no other copy of the shard is better."""
    manifest, folder = copy
    bad, _ = with_token(folder, manifest, place=3 * manifest.row_tokens + 5, token=300)
    data = TokenData(folder, bad)
    assert data.sequences([2, 4]).max() < 127
    for ids in ([3], [2, 3, 4]):
        with pytest.raises(ShardTokenError, match="found token 300") as caught:
            data.sequences(ids)
        assert caught.value.path == folder / manifest.train[0].file
        assert "nobody can train" in caught.value.next_step
    assert data.sequences([4]).shape == (1, 16)


def test_a_check_of_all_shards_finds_a_token_too_large(copy):
    manifest, folder = copy
    bad, _ = with_token(folder, manifest, place=5, token=300)
    (fault,) = TokenData(folder, bad).faults(lambda *_: None)
    assert type(fault) is ShardTokenError


def test_who_fetches_pieces_finds_a_token_too_large(copy):
    manifest, folder = copy
    bad, shard = with_token(folder, manifest, place=5, token=300)
    pieces = PieceData(bad, SimpleNamespace(get=lambda *_: shard))
    with pytest.raises(ShardTokenError, match="token 300"):
        pieces.sequences([0])
    assert np.array_equal(pieces.sequences([1]), TokenData(folder, bad).sequences([1]))
