"""The layout of shards: follows from names and shapes alone, and is plain safetensors."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file
from support import states

from troth_attestation.shards import SHARD_BYTES, shards_of
from troth_client.checkpoint.folder import MANIFEST_FILE, write_weights

STATE = states.state()
MIB = 2**20


def written(folder):
    write_weights(folder, STATE.manifest, STATE.pieces, STATE.views)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shards_load_with_the_safetensors_library(tmp_path):
    files = written(tmp_path / "20")
    (shard,) = shards_of(STATE.shapes)
    assert sorted(files) == [MANIFEST_FILE, shard.file]
    found = load_file(tmp_path / "20" / shard.file)
    assert found.keys() == STATE.weights.keys()
    for name, value in STATE.weights.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)
    with safe_open(tmp_path / "20" / shard.file, "np") as opened:
        assert opened.metadata() == {"format": "pt"}


def test_two_writers_write_the_same_bytes(tmp_path):
    assert written(tmp_path / "a") == written(tmp_path / "b")


def test_order_of_the_mapping_does_not_count():
    assert shards_of(dict(reversed(STATE.shapes.items()))) == shards_of(STATE.shapes)


@given(
    st.dictionaries(
        st.text(max_size=6).filter(lambda name: name != "__metadata__"),
        st.lists(st.integers(1, 50), max_size=4).map(tuple),
        min_size=1,
        max_size=6,
    )
)
def test_tensors_lie_end_to_end_behind_an_aligned_header(shapes):
    (shard,) = shards_of(shapes)
    length = int.from_bytes(shard.header[:8], "little")
    fields = json.loads(shard.header[8:])
    assert len(shard.header) == 8 + length
    assert length % 8 == 0
    del fields["__metadata__"]
    assert list(fields) == sorted(shapes, key=str.encode)
    at = 0
    for name, field in fields.items():
        size = 4 * int(np.prod(shapes[name]))
        assert field == {
            "dtype": "F32",
            "shape": list(shapes[name]),
            "data_offsets": [at, at + size],
        }
        assert shard.offsets[name] == len(shard.header) + at
        at += size
    assert shard.num_bytes == len(shard.header) + at


@pytest.mark.parametrize(
    ("mibs", "groups"),
    [
        ([256], [["a"]]),
        ([128, 128], [["a", "b"]]),
        ([128, 129], [["a"], ["b"]]),
        ([300, 1], [["a"], ["b"]]),
        ([1, 300, 1, 1], [["a"], ["b"], ["c", "d"]]),
        ([100, 100, 100, 100], [["a", "b"], ["c", "d"]]),
    ],
)
def test_a_shard_holds_whole_tensors_up_to_its_size(mibs, groups):
    shapes = {name: (mib, MIB // 4) for name, mib in zip("abcd", mibs, strict=False)}
    made = shards_of(shapes)
    assert [list(shard.offsets) for shard in made] == groups
    count = len(groups)
    assert [shard.file for shard in made] == [
        f"model-{at + 1:05d}-of-{count:05d}.safetensors" for at in range(count)
    ]
    for shard in made:
        alone = len(shard.offsets) == 1
        assert alone or shard.num_bytes - len(shard.header) <= SHARD_BYTES
