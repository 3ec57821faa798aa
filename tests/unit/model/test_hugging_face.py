"""The config.json of a Llama as a model section: what fits, and what is refused by its key."""

import importlib
import json

import pytest
from support.starts import UNTIED, write_config

from troth_client.model.errors import ModelConfigError
from troth_client.model.export import CONFIG_FILE
from troth_client.model.hugging_face import read_model


def refused(folder):
    with pytest.raises(ModelConfigError) as caught:
        read_model(folder)
    assert str(folder / CONFIG_FILE) in caught.value.expected
    assert caught.value.next_step
    return f"{caught.value.expected}, found {caught.value.found}"


@pytest.mark.parametrize("is_tied", [True, False])
def test_what_an_export_writes_comes_back(tmp_path, is_tied):
    model = UNTIED.model_copy(
        update={"tie_word_embeddings": is_tied, "rope_theta": 500_000, "rms_norm_eps_nano": 10_000}
    )
    write_config(tmp_path, model)
    assert read_model(tmp_path) == model


def test_keys_that_older_files_lack_have_the_defaults_of_transformers(tmp_path):
    absent = ("num_key_value_heads", "head_dim", "rope_theta", "rope_parameters", "mlp_bias")
    write_config(tmp_path, **dict.fromkeys((*absent, "tie_word_embeddings", "architectures")))
    found = read_model(tmp_path)
    assert found.num_key_value_heads == UNTIED.num_attention_heads
    assert found.rope_theta == 10_000
    assert found.tie_word_embeddings is False


def test_a_spread_that_no_integer_holds_is_rounded_because_nobody_draws(tmp_path):
    write_config(tmp_path, initializer_range=0.041666666666666664)
    assert read_model(tmp_path).init_std_nano == 41_666_667


def test_the_nested_spelling_of_rotary_embeddings_counts(tmp_path):
    write_config(
        tmp_path, rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 77.0}
    )
    assert read_model(tmp_path).rope_theta == 77


SCALED = {"rope_type": "llama3", "factor": 8.0, "rope_theta": 77.0}


@pytest.mark.parametrize("empty", [{}, None])
def test_an_empty_spelling_hides_no_other_one(tmp_path, empty):
    """`transformers` takes the other one, and computes scaled rotary embeddings."""
    write_config(tmp_path)
    file = tmp_path / CONFIG_FILE
    values = json.loads(file.read_text()) | {"rope_scaling": empty, "rope_parameters": SCALED}
    file.write_text(json.dumps(values))
    assert refused(tmp_path).startswith("rope_scaling = None")


def test_the_base_is_that_of_the_spelling_that_counts(tmp_path):
    scaling = {"rope_type": "default", "rope_theta": 50.0}
    write_config(tmp_path, rope_scaling=scaling, rope_parameters={"rope_theta": 77.0})
    assert read_model(tmp_path).rope_theta == 50
    transformers = importlib.import_module("transformers")
    theirs = transformers.LlamaConfig.from_pretrained(tmp_path)
    assert theirs.rope_parameters["rope_theta"] == 50


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "mistral"),
        ("architectures", ["LlamaForSequenceClassification"]),
        ("hidden_act", "gelu"),
        ("attention_bias", True),
        ("mlp_bias", True),
        ("head_dim", 8),
        ("rope_scaling", {"rope_type": "llama3", "factor": 8.0}),
        ("rope_scaling", {"type": "linear", "factor": 2.0}),
        ("is_causal", False),
        ("quantization_config", {"quant_method": "gptq"}),
    ],
)
def test_what_a_run_cannot_train_is_refused_by_its_key(tmp_path, key, value):
    write_config(tmp_path, **{key: value})
    assert refused(tmp_path).startswith(f"{key} = ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "many"),
        ("hidden_size", -8),
        ("hidden_size", 9),
        ("hidden_size", None),
        ("num_hidden_layers", 4_097),
        ("num_attention_heads", 0),
        ("num_key_value_heads", 3),
        ("rms_norm_eps", 1e-10),
        ("rope_theta", 10_000.5),
        ("rope_theta", 1e300),
        ("rope_theta", float("nan")),
        ("initializer_range", -1),
    ],
)
def test_a_number_that_cannot_be_is_refused(tmp_path, key, value):
    changes = {"rope_parameters": None} if key == "rope_theta" else {}
    write_config(tmp_path, **changes | {key: value})
    refused(tmp_path)


@pytest.mark.parametrize("key", ["vocab_size", "head_dim", "rope_theta", "rms_norm_eps"])
@pytest.mark.parametrize(
    "number", ["1e999999", "1e99999999999999999999", '"1e9999999"', "9" * 4_000, "9" * 5_000]
)
def test_a_number_without_end_is_refused_in_a_short_message(tmp_path, key, number):
    write_config(tmp_path, **{"rope_parameters": None, key: "here"})
    file = tmp_path / CONFIG_FILE
    file.write_text(file.read_text().replace('"here"', number))
    assert len(refused(tmp_path)) < 500 + len(str(file))


def test_many_digits_are_read_as_the_number_that_they_are_nearest_to(tmp_path):
    write_config(tmp_path, rms_norm_eps="here")
    file = tmp_path / CONFIG_FILE
    file.write_text(file.read_text().replace('"here"', "0.000001" + "0" * 500_000 + "1"))
    assert read_model(tmp_path).rms_norm_eps_nano == 1_000


@pytest.mark.parametrize("text", [b"", b"[1]", b"\xff", b'{"model_type": ', b"[" * 100_000])
def test_a_file_that_is_no_config_is_refused(tmp_path, text):
    (tmp_path / CONFIG_FILE).write_bytes(text)
    refused(tmp_path)


def test_a_missing_file_and_one_without_end_are_refused(tmp_path):
    assert "No such file" in refused(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(json.dumps({"pad": "x" * 2**20}))
    assert "more than 1048576 bytes" in refused(tmp_path)
