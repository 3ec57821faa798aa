"""Weights of others as the start of a run: exact for each dtype, and each defect is named."""

import importlib
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from support.starts import (
    NORM,
    UNTIED,
    tensors_of,
    write_config,
    write_index,
    write_shards,
    write_start,
)
from support.states import TINY

from troth_client.checkpoint.errors import CheckpointFileError, StartError
from troth_client.checkpoint.start import INDEX_FILE, read_start
from troth_client.checkpoint.weights_file import WeightsFile
from troth_client.model.errors import ModelConfigError
from troth_client.model.export import CONFIG_FILE, WEIGHTS_FILE
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes

LAYER = "model.layers.0.mlp.up_proj.weight"


def refused(folder, model=UNTIED, kind=StartError):
    with pytest.raises(kind) as caught:
        read_start(folder, model)
    assert caught.value.next_step
    return f"{caught.value.expected}, found {caught.value.found}; {caught.value.next_step}"


def same(found, expected):
    """Whether two sets of tensors are equal to the bit; `expected` has names of transformers."""
    assert found.keys() == expected.keys()
    return all(
        found[name].dtype == np.float32 and found[name].tobytes() == value.float().numpy().tobytes()
        for name, value in expected.items()
    )


@pytest.mark.parametrize("write", [write_start, write_shards])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_each_float_becomes_fp32_exactly_and_that_is_said(tmp_path, write, dtype):
    tensors = tensors_of(dtype=dtype)
    tensors[NORM][:3] = torch.tensor([6e-8, -65504.0, -0.0], dtype=dtype)  # also subnormal
    write(tmp_path, tensors=tensors)
    start = read_start(tmp_path, UNTIED)
    assert same(start.weights, tensors)
    assert {name: value.shape for name, value in start.weights.items()} == trainable_shapes(UNTIED)
    name = {torch.bfloat16: "BF16", torch.float16: "F16"}.get(dtype)
    assert start.notes == ((f"{name} became F32, exactly",) if name else ())


@pytest.mark.parametrize("dtype", [torch.int8, torch.float64, torch.float8_e4m3fn])
def test_another_dtype_is_refused_by_name(tmp_path, dtype):
    write_start(tmp_path, tensors=tensors_of() | {LAYER: torch.ones(12, 8).to(dtype)})
    text = refused(tmp_path, kind=CheckpointFileError)
    assert f"{LAYER} in F32 or F16 or BF16" in text
    assert "save the weights in one of these" in text


def test_tied_weights_stay_tied_where_the_run_ties(tmp_path):
    tensors = tensors_of(TINY)
    start = read_start(write_start(tmp_path, TINY), TINY)
    assert start.weights[HEAD].tobytes() == tensors[EMBEDDING].numpy().tobytes()
    assert EMBEDDING not in start.weights
    assert "tied weights stay tied" in start.notes[0]


def test_tied_weights_are_untied_where_the_run_does_not_tie_and_that_is_said(tmp_path):
    start = read_start(write_start(tmp_path, TINY), UNTIED)
    assert start.weights[HEAD].tobytes() == start.weights[EMBEDDING].tobytes()
    assert not np.shares_memory(start.weights[HEAD], start.weights[EMBEDDING])
    assert f"{HEAD} begins as a copy of {EMBEDDING}" in start.notes[0]


@pytest.mark.parametrize("model", [TINY, UNTIED])
def test_a_tied_matrix_may_be_given_twice_if_it_is_the_same(tmp_path, model):
    twice = tensors_of(TINY)
    twice[HEAD] = twice[EMBEDDING].clone()
    start = read_start(write_start(tmp_path, TINY, twice), model)
    assert start.weights[HEAD].tobytes() == twice[HEAD].numpy().tobytes()
    twice[HEAD][0, 0] += 1
    assert "two that differ" in refused(write_start(tmp_path, TINY, twice), model)


def test_a_matrix_of_its_own_does_not_fit_a_run_that_ties(tmp_path):
    text = refused(write_start(tmp_path), TINY)
    assert "an output matrix of its own" in text
    assert "Set model.tie_word_embeddings = false" in text


@pytest.mark.parametrize("name", [HEAD, EMBEDDING, LAYER])
@pytest.mark.parametrize("write", [write_start, write_shards])
def test_a_missing_tensor_is_named(tmp_path, write, name):
    tensors = tensors_of()
    del tensors[name]
    write(tmp_path, tensors=tensors)
    assert f"1 missing: {name}" in refused(tmp_path)


def test_an_extra_tensor_is_named_but_tables_that_follow_from_the_config_are_not(tmp_path):
    table = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    tensors = tensors_of()
    assert same(read_start(write_start(tmp_path, tensors=tensors | table), UNTIED).weights, tensors)
    extra = tensors | {"model.layers.0.self_attn.q_proj.bias": torch.ones(8)}
    text = refused(write_start(tmp_path, tensors=extra))
    assert "1 that the model does not have: model.layers.0.self_attn.q_proj.bias" in text


def test_a_tensor_of_another_shape_than_its_own_config_is_named(tmp_path):
    write_start(tmp_path, tensors=tensors_of() | {LAYER: torch.ones(13, 8)})
    text = refused(tmp_path)
    assert f"{LAYER} of shape [12, 8]" in text
    assert "found shape [13, 8]" in text


@pytest.mark.parametrize(
    "key", ["hidden_size", "vocab_size", "num_hidden_layers", "rope_theta", "rms_norm_eps_nano"]
)
def test_a_model_of_other_numbers_than_the_runs_is_named_with_the_way_out(tmp_path, key):
    found = getattr(UNTIED, key)
    text = refused(write_start(tmp_path), UNTIED.model_copy(update={key: 2 * found}))
    assert f"model.{key} = {2 * found}" in text
    assert f"found {found}; troth run init --from {tmp_path}" in text


def test_the_context_of_the_run_may_be_another_one(tmp_path):
    shorter = UNTIED.model_copy(update={"max_position_embeddings": 4})
    assert same(read_start(write_start(tmp_path), shorter).weights, tensors_of())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_counted(tmp_path, value):
    tensors = tensors_of()
    tensors[LAYER][2, :3] = value
    write_start(tmp_path, tensors=tensors)
    assert "3 of 96 that are NaN or infinite" in refused(tmp_path)


@pytest.mark.parametrize("num_bytes", [0, 7, 100, -1])
def test_a_file_that_is_cut_short_is_refused(tmp_path, num_bytes):
    file = write_start(tmp_path) / WEIGHTS_FILE
    file.write_bytes(file.read_bytes()[:num_bytes])
    assert str(file) in refused(tmp_path, kind=CheckpointFileError)


def test_a_folder_without_weights_says_which_file_is_missing(tmp_path):
    write_config(tmp_path)
    text = refused(tmp_path, kind=CheckpointFileError)
    assert f"a file in {tmp_path / WEIGHTS_FILE}, found none by that name" in text


@pytest.mark.parametrize(
    "place", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "x", ""]
)
def test_an_index_that_names_a_file_elsewhere_is_refused(tmp_path, place):
    """Before any file is opened: the one that it names may be a person's own."""
    places = write_shards(tmp_path / "in")
    write_index(tmp_path / "in", places | {NORM: place})
    text = refused(tmp_path / "in")
    assert f"only names of safetensors files beside it in {tmp_path / 'in' / INDEX_FILE}" in text


def test_an_index_may_name_a_file_that_no_folder_can_hold(tmp_path):
    places = write_shards(tmp_path)
    write_index(tmp_path, places | {NORM: "a" * 300 + ".safetensors"})
    assert "File name too long" in refused(tmp_path, kind=CheckpointFileError)


def test_an_index_and_its_files_must_agree(tmp_path):
    places = write_shards(tmp_path)
    write_index(tmp_path, places | {"ghost.weight": places[NORM]})
    assert "1 missing: ghost.weight" in refused(tmp_path)
    moved = next(file for file in places.values() if file != places[NORM])
    write_index(tmp_path, places | {NORM: moved})
    assert f"{moved} for {NORM}" in refused(tmp_path)
    write_index(tmp_path, places)
    (tmp_path / places[NORM]).unlink()
    assert "none by that name" in refused(tmp_path, kind=CheckpointFileError)


@pytest.mark.parametrize("text", ["", "[]", '{"weight_map": {"a": 7}}', "{" * 10_000, "\xff"])
def test_an_index_that_is_none_is_refused(tmp_path, text):
    write_config(tmp_path)
    (tmp_path / INDEX_FILE).write_text(text, "latin-1")
    assert str(tmp_path / INDEX_FILE) in refused(tmp_path, kind=CheckpointFileError)


def test_a_config_of_another_architecture_is_refused_before_any_weights(tmp_path):
    write_config(tmp_path, model_type="gpt2", architectures=["GPT2LMHeadModel"])
    text = refused(tmp_path, kind=ModelConfigError)
    assert f"model_type = 'llama' in {tmp_path / CONFIG_FILE}, found 'gpt2'" in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_transformers_saves_in_shards_computes_the_same(tmp_path, dtype):
    transformers = importlib.import_module("transformers")
    write_config(tmp_path / "config")
    config = transformers.LlamaConfig.from_pretrained(tmp_path / "config")
    theirs = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype))
    theirs.save_pretrained(tmp_path / "saved", max_shard_size="1KB")
    assert (tmp_path / "saved" / INDEX_FILE).exists()
    start = read_start(tmp_path / "saved", UNTIED)
    assert same(start.weights, theirs.state_dict())


def test_where_a_single_file_and_an_index_lie_the_single_file_counts_as_in_transformers(tmp_path):
    """Saved in shards first, and trained further: `save_pretrained` leaves the older index."""
    transformers = importlib.import_module("transformers")
    write_config(tmp_path / "config")
    config = transformers.LlamaConfig.from_pretrained(tmp_path / "config")
    folder = tmp_path / "saved"
    write_shards(folder, tensors={name: value + 1 for name, value in tensors_of().items()})
    newer = transformers.LlamaForCausalLM(config)
    newer.save_pretrained(tmp_path / "newer")
    (folder / WEIGHTS_FILE).write_bytes((tmp_path / "newer" / WEIGHTS_FILE).read_bytes())
    start = read_start(folder, UNTIED)
    loaded = transformers.LlamaForCausalLM.from_pretrained(folder).state_dict()
    assert same(start.weights, newer.state_dict())
    assert same(start.weights, loaded)
    assert start.notes == (
        f"{WEIGHTS_FILE} is taken and {INDEX_FILE} passed over, as transformers does",
    )


def test_an_index_whose_files_are_gone_does_not_matter_beside_a_single_file(tmp_path):
    for name in set(write_shards(tmp_path).values()):
        (tmp_path / name).unlink()
    tensors = tensors_of()
    assert same(read_start(write_start(tmp_path, tensors=tensors), UNTIED).weights, tensors)


def replaced(folder):
    """Save the folder anew as `transformers` does: into a new file, with one rename."""
    write_start(folder / "new", tensors={name: value + 1 for name, value in tensors_of().items()})
    (folder / "new" / WEIGHTS_FILE).replace(folder / WEIGHTS_FILE)


def written_over(folder):
    """Save it anew into the same file, with a longer header: all offsets move."""
    save_file(tensors_of(), folder / WEIGHTS_FILE, metadata={"step": "1" * 64})


def removed(folder):
    (folder / WEIGHTS_FILE).unlink()


def configured(folder):
    write_config(folder, rms_norm_eps=0.001)


@pytest.mark.parametrize("change", [replaced, written_over, removed, configured])
def test_a_folder_that_changes_meanwhile_is_refused(tmp_path, monkeypatch, change):
    """Its tensors would be a mix of both, of bytes that were never meant, or missing."""
    write_start(tmp_path)
    tensor, left = WeightsFile.tensor, [3]

    def reading(file, name):
        left[0] -= 1
        if not left[0]:
            change(tmp_path)
        return tensor(file, name)

    monkeypatch.setattr(WeightsFile, "tensor", reading)
    text = refused(tmp_path, kind=CheckpointFileError)
    assert "found a change during the reading" in text
    assert "repeat the command when nothing writes" in text


def test_a_file_that_is_gone_after_the_reading_is_refused(tmp_path):
    file = WeightsFile.open(write_start(tmp_path) / WEIGHTS_FILE)
    file.check_unchanged()
    file.path.unlink()
    with pytest.raises(CheckpointFileError, match="a change during the reading"):
        file.check_unchanged()


@pytest.mark.parametrize("name", [CONFIG_FILE, INDEX_FILE])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, name):
    write_shards(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    kind = ModelConfigError if name == CONFIG_FILE else CheckpointFileError
    assert "not a regular file" in refused(tmp_path, kind=kind)
