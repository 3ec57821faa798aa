"""Safetensors files from strangers: what is wrong with each is named, and nothing is loaded."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.states import TINY

from troth_client.checkpoint.errors import CheckpointFileError
from troth_client.checkpoint.weights_file import MAX_HEADER_BYTES, WeightsFile
from troth_client.model.export import WEIGHTS_FILE, export
from troth_client.model.init import initial_weights
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes

UNTIED = TINY.model_copy(update={"tie_word_embeddings": False})
NORM = "model.norm.weight"
ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def raw(header, data=bytes(8), length=None):
    """A file with this header (JSON text, or what becomes it) and these bytes behind."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


@pytest.fixture
def file(tmp_path):
    return tmp_path / WEIGHTS_FILE


def refused(file, content):
    file.write_bytes(content)
    with pytest.raises(CheckpointFileError) as caught:
        WeightsFile.open(file)
    assert str(file) in caught.value.expected
    return f"{caught.value.expected}, found {caught.value.found}"


@pytest.mark.parametrize("config", [TINY, UNTIED], ids=["tied", "untied"])
def test_an_export_comes_back_bit_for_bit_with_its_facts(file, config):
    weights = initial_weights(bytes(32), config)
    export(file.parent, config, weights, {"round": "3"})
    found = WeightsFile.open(file)
    assert found.facts["round"] == "3"
    read = found.weights(config)
    assert {name: value.tobytes() for name, value in read.items()} == {
        name: value.tobytes() for name, value in weights.items()
    }
    assert {name: value.shape for name, value in read.items()} == trainable_shapes(config)


def test_an_empty_file_has_no_header(file):
    assert "a safetensors header" in refused(file, b"")


def test_a_file_that_is_not_there_is_named(file):
    with pytest.raises(CheckpointFileError, match="none by that name"):
        WeightsFile.open(file)


def test_a_pipe_is_no_file_and_is_not_waited_for(file):
    os.mkfifo(file)
    with pytest.raises(CheckpointFileError, match="no file"):
        WeightsFile.open(file)


def test_a_header_that_claims_gigabytes_is_refused_unread(file):
    text = refused(file, raw({}, length=2**40))
    assert f"header of at most {MAX_HEADER_BYTES} bytes" in text
    assert str(2**40) in text


def test_a_header_longer_than_the_file_is_refused(file):
    assert "a file of 18 bytes" in refused(file, raw({}, length=1_000))


@pytest.mark.parametrize("text", [b"not JSON", b"\xff\xfe{}", b"[" * 50_000, b'{"a": 1'])
def test_a_header_that_is_no_json_is_refused(file, text):
    assert "a header in JSON" in refused(file, raw(text))


def test_a_header_that_is_a_list_is_refused(file):
    assert "a JSON object as header" in refused(file, raw([ONE]))


def test_a_name_given_twice_is_refused(file):
    one = json.dumps(ONE)
    text = refused(file, raw(f'{{"x": {one}, "x": {one}}}'.encode()))
    assert text.endswith("found x twice")


def test_facts_that_are_no_texts_are_refused(file):
    assert "texts in __metadata__" in refused(file, raw({"__metadata__": {"round": 3}, "x": ONE}))


@pytest.mark.parametrize(
    "value", [3, {}, ONE | {"shape": [2.0]}, ONE | {"more": 1}, ONE | {"shape": [10**4000] * 2}]
)
def test_a_tensor_that_is_not_described_is_refused(file, value):
    assert "dtype, shape and data_offsets of x" in refused(file, raw({"x": value}))


def test_a_negative_size_is_refused(file):
    assert "x of a shape with elements" in refused(file, raw({"x": ONE | {"shape": [-2]}}))


def test_another_number_format_is_refused(file):
    save_file({"x": np.zeros(4, np.float16)}, file)
    assert "x in F32" in refused(file, file.read_bytes())


def test_a_name_cannot_write_to_the_terminal(file):
    text = refused(file, raw({"\x1b[2Jmodel": ONE | {"dtype": "I8"}}))
    assert "'\\x1b[2Jmodel' in F32" in text
    assert text.isprintable()


def test_a_name_that_comes_twice_among_many_is_found_at_once(file):
    """A header of the longest length: comparing each name with all others would take hours."""
    names = [f'"{at}":1' for at in range(300_000)]
    text = refused(file, raw(("{" + ",".join([*names, '"299999":1']) + "}").encode()))
    assert "299999 twice" in text


def test_a_config_of_a_billion_layers_is_refused_at_once(file):
    """A header may carry the config of a run whose layers alone would fill the memory."""
    export(file.parent, TINY, initial_weights(bytes(32), TINY), {})
    many = TINY.model_copy(update={"num_hidden_layers": 10**9})
    with pytest.raises(CheckpointFileError, match="1000000000 layers"):
        WeightsFile.open(file).weights(many)


def test_an_empty_tensor_is_refused(file):
    entry = {"dtype": "F32", "shape": [0, 4], "data_offsets": [0, 0]}
    assert "a shape with elements" in refused(file, raw({"x": entry}, b""))


def test_a_shape_that_its_bytes_do_not_back_is_refused_before_it_is_allocated(file):
    huge = {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 8]}
    assert f"{2**62} bytes for x" in refused(file, raw({"x": huge}))


def test_a_tensor_that_ends_behind_the_file_is_refused(file):
    long = {"dtype": "F32", "shape": [2**38], "data_offsets": [0, 2**40]}
    text = refused(file, raw({"x": long}))
    assert f"{2**40} bytes of tensors behind the header" in text
    assert text.endswith("found 8")


def test_tensors_that_overlap_are_refused(file):
    both = {"x": ONE, "y": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}
    assert "y at byte 8, where the last one ends" in refused(file, raw(both))


def test_bytes_that_belong_to_no_tensor_are_refused(file):
    gap = {"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}
    assert "x at byte 0" in refused(file, raw(gap))
    assert "8 bytes of tensors" in refused(file, raw({"x": ONE}, bytes(12)))


def of_model(file, config, **changes):
    """The weights of a config in a file, with some tensors changed; None leaves one out."""
    tensors = {**initial_weights(bytes(32), config), **changes}
    save_file({name: value for name, value in tensors.items() if value is not None}, file)
    return WeightsFile.open(file)


def test_a_missing_tensor_is_named(file):
    found = of_model(file, UNTIED, **{NORM: None})
    with pytest.raises(CheckpointFileError, match=f"1 missing: {NORM}"):
        found.weights(UNTIED)


def test_an_extra_tensor_is_named(file):
    found = of_model(file, UNTIED, spare=np.zeros(3, np.float32))
    with pytest.raises(CheckpointFileError, match="1 that the model does not have: spare"):
        found.weights(UNTIED)


def test_another_shape_is_named(file):
    found = of_model(file, UNTIED, **{NORM: np.zeros(9, np.float32)})
    with pytest.raises(CheckpointFileError, match=rf"{NORM} of shape \[8\] .* shape \[9\]"):
        found.weights(UNTIED)


def test_tied_weights_given_twice_are_refused_even_if_they_are_equal(file):
    weights = initial_weights(bytes(32), TINY)
    found = of_model(file, TINY, **{EMBEDDING: weights[HEAD]})
    with pytest.raises(CheckpointFileError, match="tied weights given twice"):
        found.weights(TINY)


def test_a_file_that_is_written_anew_while_it_is_read_is_refused(file):
    found = of_model(file, TINY)
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(whole)
    with pytest.raises(CheckpointFileError, match="unchanging content"):
        found.weights(TINY)


def test_a_file_that_gets_shorter_after_its_header_was_read_is_refused(file):
    found = of_model(file, TINY)
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(CheckpointFileError, match="a file that is cut short"):
        found.weights(TINY)


def test_a_file_that_is_gone_after_its_header_was_read_is_refused(file):
    found = of_model(file, TINY)
    file.unlink()
    with pytest.raises(CheckpointFileError, match="unchanging content") as caught:
        found.weights(TINY)
    assert "repeat the command" in caught.value.next_step


def test_a_file_that_can_no_longer_be_read_is_refused_with_the_systems_reason(file):
    found = of_model(file, TINY)
    file.unlink()
    file.mkdir()
    with pytest.raises(CheckpointFileError, match="a file that can be read") as caught:
        found.weights(TINY)
    assert caught.value.found == "Is a directory"
