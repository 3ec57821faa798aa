"""Configs on disk: layers, flags, the shipped files, and every way to get them wrong."""

from pathlib import Path

import pytest

from troth_coordinator.config_files import load_config
from troth_coordinator.rules.errors import (
    ContradictionError,
    InvalidValueError,
    UnknownKeyError,
)
from troth_coordinator.rules.params import ChainParams

CONFIGS = Path(__file__).parents[3] / "configs"
# Trainable parameters by hand: embedding (twice unless tied), layers, final norm.
NUM_PARAMETERS = {
    "localnet": 656_256,
    "smoke": 57_536,
    "25m": 25_172_352,
    "124m": 123_587_328,
    "350m": 355_124_224,
    "1b": 1_076_168_704,
}


def num_parameters(model):
    """Count from the shapes of a Llama decoder."""
    width, head = model.hidden_size, model.hidden_size // model.num_attention_heads
    attention = 2 * width * width + 2 * width * head * model.num_key_value_heads
    layer = attention + 3 * width * model.intermediate_size + 2 * width
    tables = (1 if model.tie_word_embeddings else 2) * model.vocab_size * width
    return tables + model.num_hidden_layers * layer + width


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_shipped_file_is_named_here():
    assert {path.stem for path in CONFIGS.glob("*.toml")} == set(NUM_PARAMETERS)


@pytest.mark.parametrize("name", sorted(NUM_PARAMETERS))
def test_shipped_files_load(name):
    settings = load_config([CONFIGS / f"{name}.toml"])
    assert num_parameters(settings.config.model) == NUM_PARAMETERS[name]
    assert settings.chain.max_rounds == settings.config.schedule.rounds
    assert settings.chain.sequences_per_payload == settings.config.train.sequences_per_payload


JUDGED = (
    *("openings_slots", "verdict_commit_slots", "verdict_reveal_slots"),
    *("jury_commit_slots", "jury_reveal_slots", "appeal_slots"),
)
"""Windows in which a stake is lost by whoever is away; in `case_slots` nobody owes anything."""


@pytest.mark.parametrize("field", JUDGED)
@pytest.mark.parametrize("name", [*sorted(NUM_PARAMETERS), "public", "localnet preset"])
def test_every_window_of_an_audit_or_a_jury_survives_a_restart(name, field):
    """A minute at the 400 ms of a public cluster, which are also those of `troth localnet up`."""
    presets = {"public": ChainParams.public, "localnet preset": ChainParams.localnet}
    chain = presets[name]() if name in presets else load_config([CONFIGS / f"{name}.toml"]).chain
    assert getattr(chain, field) * 400 >= 60_000


def test_the_demo_has_the_size_and_length_that_it_promises():
    config = load_config([CONFIGS / "localnet.toml"]).config
    assert 500_000 <= num_parameters(config.model) <= 1_000_000
    assert config.schedule.rounds >= 40


def test_later_layers_win(tmp_path):
    first = write(tmp_path, "a.toml", "[schedule]\nrounds = 40\nlr_nano = 5\n[chain]\nring = 8\n")
    second = write(tmp_path, "b.toml", "[schedule]\nlr_nano = 6\n")
    settings = load_config([first, str(second)], {"schedule.lr_nano": "7", "demo.k": 8})
    assert settings.config.schedule.rounds == 40
    assert settings.config.schedule.lr_nano == 7
    assert settings.config.demo.k == 8
    assert settings.chain.ring == 8
    assert settings.chain.max_rounds == 40


def test_defaults_alone_are_a_localnet():
    settings = load_config()
    assert settings.chain.admission == "open"
    assert settings.hints.precision == "auto"


def test_flags_are_read_as_toml_where_they_are_toml():
    settings = load_config(
        overrides={
            "hints.precision": "bf16",
            "data.manifest_hash": "ab" * 32,
            "model.tie_word_embeddings": "false",
            "chain.preset": "public",
            "model.vocab_size": "32_768",
        }
    )
    assert settings.hints.precision == "bf16"
    assert settings.config.data.manifest_hash == "ab" * 32
    assert not settings.config.model.tie_word_embeddings
    assert settings.config.model.vocab_size == 32_768
    assert settings.chain.capacity == 64


def test_hints_are_not_hashed():
    bound = {"data.manifest_hash": "ab" * 32}
    first, second = (
        load_config(overrides=bound),
        load_config(overrides=bound | {"hints.precision": "bf16", "hints.device": "mps"}),
    )
    assert first.hints != second.hints
    assert first.config.config_hash() == second.config.config_hash()


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ({"modle.vocab_size": 5}, UnknownKeyError, "modle: .*Did you mean 'model'"),
        ({"chain.rings": 5}, UnknownKeyError, "chain.rings: .*Did you mean 'ring'"),
        ({"hints.gpu": 1}, UnknownKeyError, "hints.gpu"),
        ({"chain.preset": "mainnet"}, InvalidValueError, "expected localnet or public"),
        ({"chain": 5}, InvalidValueError, "chain: expected a section, found 5"),
        ({"chain.max_rounds": 5}, ContradictionError, "Set schedule.rounds only"),
        (
            {"chain.sequences_per_payload": 5},
            ContradictionError,
            "train.sequences_per_payload = 8, which the config hash covers",
        ),
        ({"chain.vesting_slots": 100}, ContradictionError, "longest path of audit"),
        ({"schedule.rounds": "many"}, InvalidValueError, "schedule.rounds: .*found 'many'"),
    ],
)
def test_wrong_settings_say_what_to_do(overrides, error, message):
    with pytest.raises(error, match=message):
        load_config(overrides=overrides)


@pytest.mark.parametrize(
    "text",
    [f"[model]\nvocab_size = 0x{'f' * 100_000}", f"[model]\nvocab_size{'.a' * 2_000} = 1"],
    ids=["number", "nesting"],
)
def test_a_strangers_value_that_no_message_can_show_is_no_toml(tmp_path, text):
    with pytest.raises(InvalidValueError, match="valid TOML"):
        load_config([write(tmp_path, "endless.toml", text)])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidValueError, match="no such file"):
        load_config([tmp_path / "absent.toml"])
    with pytest.raises(InvalidValueError, match="expected a TOML file, found a folder"):
        load_config([tmp_path])
    with pytest.raises(InvalidValueError, match="valid TOML"):
        load_config([write(tmp_path, "bad.toml", "rounds = = 3")])
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidValueError, match="valid TOML"):
        load_config([binary])
