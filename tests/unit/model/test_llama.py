"""The decoder equals transformers' LlamaForCausalLM, and its names are the canonical ones."""

import importlib
import json

import numpy as np
import pytest
import torch
from safetensors import safe_open

from troth_client.compression.host import HostArrays
from troth_client.model.errors import ExportError, WeightNamesError, WeightShapeError
from troth_client.model.export import WEIGHTS_FILE, export, load_export
from troth_client.model.init import initial_weights
from troth_client.model.llama import Llama
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes
from troth_client.model.weights import (
    build,
    load_weights,
    trainable_parameters,
    weight_views,
)
from troth_coordinator.rules.config import ModelSection

RUN = bytes(range(32))
UNTIED = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 40,
    "rms_norm_eps_nano": 12_345,
    "rope_theta": 54_321,
    "init_std_nano": 150_000_000,
    "tie_word_embeddings": False,
}
CONFIGS = {
    "untied": UNTIED,
    "tied": UNTIED | {"tie_word_embeddings": True},
    "one_group": UNTIED | {"num_key_value_heads": 1},
    "no_groups": UNTIED | {"num_key_value_heads": 4},
    "one_head": UNTIED | {"num_attention_heads": 1, "num_key_value_heads": 1},
}


@pytest.fixture(scope="module")
def transformers():
    """Importing it takes seconds, so that only a test that needs it pays for it."""
    return importlib.import_module("transformers")


@pytest.fixture(params=list(CONFIGS))
def config(request):
    return ModelSection(**CONFIGS[request.param])


def random_weights(config, seed=3):
    """First weights with norms that are not all one, so that a forgotten norm weight shows."""
    random = np.random.default_rng(seed)
    weights = initial_weights(RUN, config)
    return {
        name: (w + random.normal(0, 0.2, w.shape)).astype(np.float32) if w.ndim == 1 else w
        for name, w in weights.items()
    }


def tokens(config, sequences=3, length=40, seed=5):
    return torch.from_numpy(
        np.random.default_rng(seed).integers(0, config.vocab_size, (sequences, length))
    )


def test_logits_equal_those_of_transformers(transformers, config, tmp_path):
    weights = random_weights(config)
    export(tmp_path, config, weights)
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path).float().eval()
    ours = build(config, weights)
    with torch.no_grad():
        batch = tokens(config)
        expected, found = theirs(batch).logits, ours(batch)
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-5)


def test_transformers_finds_every_tensor_and_no_other(transformers, config, tmp_path):
    export(tmp_path, config, random_weights(config))
    _, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]


def test_epsilon_and_theta_come_from_the_config(config, tmp_path):
    weights = random_weights(config)
    batch = tokens(config)
    base = build(config, weights)(batch)
    for field, value in (("rms_norm_eps_nano", 900_000_000), ("rope_theta", 10)):
        other = config.model_copy(update={field: value})
        assert not torch.allclose(build(other, weights)(batch), base, atol=1e-3), field


def test_no_position_sees_a_later_one(config):
    model = build(config, random_weights(config))
    first = tokens(config, sequences=1)
    second = first.clone()
    second[0, 20:] = (second[0, 20:] + 1) % config.vocab_size
    with torch.no_grad():
        a, b = model(first), model(second)
    assert torch.equal(a[0, :20], b[0, :20])
    assert not torch.allclose(a[0, 20:], b[0, 20:])


def test_names_and_shapes_are_those_of_the_network(config):
    shapes = trainable_shapes(config)
    parameters = trainable_parameters(Llama(config))
    assert {name: tuple(p.shape) for name, p in parameters.items()} == shapes
    assert list(parameters) == list(shapes) == sorted(shapes, key=str.encode)
    assert (EMBEDDING in shapes) == (not config.tie_word_embeddings)


def test_tied_matrix_goes_by_its_smallest_name():
    config = ModelSection(**CONFIGS["tied"])
    model = build(config, random_weights(config))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert HEAD < EMBEDDING
    assert HEAD in trainable_shapes(config)


def test_a_new_model_draws_nothing(config):
    before = torch.random.get_rng_state()
    model = Llama(config)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(not parameter.any() for parameter in model.parameters())


def test_views_share_memory_and_loading_copies(config):
    weights = random_weights(config)
    model = build(config, weights)
    batch = tokens(config)
    before = model(batch).detach().clone()
    for view in weight_views(model).values():
        view.mul_(0.5)
    assert not torch.equal(model(batch), before)
    load_weights(model, weights)
    assert torch.equal(model(batch), before)
    for name, array in HostArrays(weight_views(model)).items():
        assert array.tobytes() == weights[name].tobytes()


def test_loading_wrong_weights_changes_nothing(config):
    model = build(config, random_weights(config))
    before = {name: array.copy() for name, array in HostArrays(weight_views(model)).items()}
    other = random_weights(config, seed=8)
    name = "model.layers.1.self_attn.k_proj.weight"
    missing = {n: w for n, w in other.items() if n != name}
    with pytest.raises(WeightNamesError, match=r"1 missing.*k_proj"):
        load_weights(model, missing)
    with pytest.raises(WeightNamesError, match=r"1 unknown \['x'\]"):
        load_weights(model, other | {"x": other[name]})
    with pytest.raises(WeightShapeError, match="k_proj"):
        load_weights(model, other | {name: other[name].T.copy().reshape(-1)})
    with pytest.raises(WeightShapeError, match="float32"):
        load_weights(model, other | {name: other[name].astype(np.float64)})
    for n, array in HostArrays(weight_views(model)).items():
        assert array.tobytes() == before[n].tobytes()


def test_export_comes_back_bit_for_bit_with_its_facts(config, tmp_path):
    weights = random_weights(config)
    export(tmp_path, config, weights, {"round": "17", "state_root": "ab" * 32})
    found_config, found, facts = load_export(tmp_path)
    assert found_config == config
    assert facts == {"round": "17", "state_root": "ab" * 32}
    assert list(found) == list(weights)
    assert all(found[name].tobytes() == weights[name].tobytes() for name in weights)
    with safe_open(tmp_path / WEIGHTS_FILE, "np") as stored:
        assert EMBEDDING in stored.keys()  # noqa: SIM118  not a mapping


@pytest.mark.parametrize("content", [b"", b"junk", b"\xff" * 200, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_folder_that_is_no_export_is_refused(content, tmp_path):
    with pytest.raises(ExportError, match="safetensors"):
        load_export(tmp_path)
    (tmp_path / WEIGHTS_FILE).write_bytes(content)
    with pytest.raises(ExportError, match="safetensors"):
        load_export(tmp_path)


HEADERS = {
    "no text": b'{"__metadata__": null}',
    "no object": b"[]",
    "a number": b'{"__metadata__": {"troth_model": 5}}',
    "no model": b'{"__metadata__": {}}',
    "nested": b"[" * 50_000,
}


@pytest.mark.parametrize("header", list(HEADERS))
def test_a_header_that_no_export_has_is_refused(header, tmp_path):
    data = HEADERS[header]
    (tmp_path / WEIGHTS_FILE).write_bytes(len(data).to_bytes(8, "little") + data)
    with pytest.raises(ExportError, match="weights exported by troth"):
        load_export(tmp_path)


def test_a_truncated_export_is_refused(config, tmp_path):
    export(tmp_path, config, random_weights(config))
    path = tmp_path / WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ExportError):
        load_export(tmp_path)


def test_config_json_holds_what_transformers_reads(config, tmp_path):
    export(tmp_path, config, random_weights(config))
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["rms_norm_eps"] == 1.2345e-05
    assert written["rope_theta"] == written["rope_parameters"]["rope_theta"] == config.rope_theta
