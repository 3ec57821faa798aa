"""Manifests of checkpoints: a stranger's file that must not cost us more than its own bytes."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import states

from troth_attestation.errors import CheckpointManifestError
from troth_attestation.manifest import MAX_MANIFEST_BYTES, CheckpointManifest
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.hashing import H

STATE = states.state()
MANIFEST = STATE.manifest
DATA = MANIFEST.encode()


def judged(data):
    """Check a manifest as a reader does before it opens any other file."""
    return CheckpointManifest.read(data).pieces(trainable_shapes)


def changed(change):
    """The bytes of the manifest after a change of its values."""
    values = json.loads(DATA)
    change(values)
    return json.dumps(values).encode()


def test_a_manifest_comes_back_and_gives_the_pieces_of_its_state():
    found = CheckpointManifest.read(DATA)
    assert found == MANIFEST
    assert found.encode() == DATA
    assert found.pieces(trainable_shapes) == STATE.pieces
    assert found.root == STATE.root.hex()
    assert found.state == STATE.pieces.state


def test_equal_states_give_equal_bytes_and_one_digest():
    assert states.state().manifest.encode() == DATA
    assert MANIFEST.digest() == H("troth:manifest", DATA)
    assert states.state(seed=1).manifest.digest() != MANIFEST.digest()


NO_MANIFESTS = {
    "nothing": b"",
    "no JSON": b"weights",
    "cut short": DATA[: len(DATA) // 2],
    "not UTF-8": DATA.replace(b"troth checkpoint 1", b"troth checkpoint \xff"),
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "NaN": b"NaN",
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("what", NO_MANIFESTS)
def test_what_is_no_manifest_is_refused(what):
    with pytest.raises(CheckpointManifestError, match="nothing of it was used"):
        judged(NO_MANIFESTS[what])


def test_a_manifest_that_is_too_long_is_not_parsed(monkeypatch):
    assert MAX_MANIFEST_BYTES == 2**28
    monkeypatch.setattr("troth_attestation.manifest.MAX_MANIFEST_BYTES", len(DATA))
    assert judged(DATA) == STATE.pieces
    with pytest.raises(CheckpointManifestError, match=f"at most {len(DATA)} bytes"):
        judged(DATA + b" ")


def first(**fields):
    """A change of the first tensor."""
    return lambda values: values["tensors"][0].update(fields)


def model(**fields):
    return lambda values: values["config"]["model"].update(fields)


def top(**fields):
    return lambda values: values.update(fields)


HASH = "ab" * 32
REFUSED = {
    "unknown key": top(more=1),
    "unknown key of a tensor": first(offset=0),
    "unknown key of the config": model(bias=True),
    "a later format": top(format="troth checkpoint 2"),
    "no tensors": top(tensors=[]),
    "round as text": top(round="20"),
    "a negative round": top(round=-1),
    "a round beyond u64": top(round=2**64),
    "a program that is no address": top(program="../program"),
    "a run that is no address": top(run="0" * 43),
    "root in capitals": top(root=STATE.root.hex().upper()),
    "a short root": top(root=STATE.root.hex()[2:]),
    "another root": top(root=HASH),
    "another cursor": top(cursor=1),
    "another round": top(round=21),
    "another config": model(rope_theta=10_001),
    "no data set": lambda values: values["config"]["data"].update(manifest_hash=""),
    "another data set": lambda values: values["config"]["data"].update(manifest_hash=HASH),
    "a config that contradicts itself": model(num_attention_heads=3),
    "more layers than tensors": model(num_hidden_layers=4_096),
    "layers beyond any number": model(num_hidden_layers=2**60),
    "a layer more": model(num_hidden_layers=2),
    "absurd width": model(hidden_size=2**62),
    "absurd vocabulary": model(vocab_size=2**63),
    "tied": model(tie_word_embeddings=True),
    "absurd shape": first(shape=[2**60, 2**3]),
    "a shape beyond u64": first(shape=[2**64, 1]),
    "a negative shape": first(shape=[-5000, -64]),
    "a zero in a shape": first(shape=[0, 64]),
    "a fraction in a shape": first(shape=[5000.5, 64]),
    "rank 0": first(shape=[]),
    "rank 20": first(shape=[5000, 64, *[1] * 18]),
    "a turned shape": first(shape=[64, 5000]),
    "a shape as text": first(shape="5000x64"),
    "a shard outside": first(shard="../../weights"),
    "an absolute shard": first(shard="/etc/passwd"),
    "a shard elsewhere": first(shard="sub/model-00001-of-00001.safetensors"),
    "the manifest as a shard": first(shard="manifest.json"),
    "another shard": first(shard="model-00002-of-00002.safetensors"),
    "no shard": first(shard=""),
    "no pieces": first(pieces=[]),
    "a piece too few": first(pieces=[HASH]),
    "a piece too many": first(pieces=[HASH] * 3),
    "wrong pieces": first(pieces=[HASH] * 2),
    "a hash that is not hex": first(pieces=["g" * 64] * 2),
    "a short hash": first(pieces=["ab"] * 2),
    "a hash as a number": first(pieces=[1, 2]),
    "another name": first(name="lm_head.bias"),
    "a tensor missing": lambda values: values["tensors"].pop(),
    "a tensor given twice": lambda values: values["tensors"].append(values["tensors"][-1]),
    "a tied tensor under both names": lambda values: values["tensors"].insert(
        0, values["tensors"][0] | {"name": "lm_head.weigh"}
    ),
    "unsorted": lambda values: values["tensors"].reverse(),
    "swapped pieces": lambda values: values["tensors"][0]["pieces"].reverse(),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_manifest_of_anything_else_is_refused_without_memory_for_it(what):
    data = changed(REFUSED[what])
    tracemalloc.start()
    with pytest.raises(CheckpointManifestError):
        judged(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


def test_a_refusal_names_the_field_and_quotes_little():
    with pytest.raises(CheckpointManifestError, match=r"tensors\.0\.pieces\.1") as found:
        judged(changed(first(pieces=[HASH, "z" * 100_000])))
    assert len(str(found.value)) < 500
    with pytest.raises(CheckpointManifestError, match="same ones, not once or unsorted"):
        judged(changed(REFUSED["unsorted"]))


@settings(max_examples=150)
@given(st.data())
def test_one_changed_byte_gives_the_same_pieces_or_a_refusal(data):
    """Fields outside the root, such as the address of the program, may differ."""
    at = data.draw(st.integers(0, len(DATA) - 1))
    other = bytearray(DATA)
    other[at] ^= data.draw(st.integers(1, 255))
    try:
        found = judged(bytes(other))
    except CheckpointManifestError:
        return
    assert found == STATE.pieces
