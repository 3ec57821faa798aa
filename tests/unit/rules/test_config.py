"""The hashed configuration: every field counts, nothing contradicts, nothing is coerced."""

import json

import pytest
from pydantic import ValidationError

from troth_coordinator.rules import base
from troth_coordinator.rules.config import NANO, RunConfig, ScheduleSection
from troth_coordinator.rules.errors import (
    ConfigError,
    ContradictionError,
    InvalidValueError,
    RangeError,
    UnboundConfigError,
    UnknownKeyError,
)
from troth_coordinator.rules.hashing import H, var

MANIFEST = b"\xab" * 32
BOUND = RunConfig().with_manifest(MANIFEST)

# One other valid value for each hashed field.
OTHER = {
    "model.vocab_size": 257,
    "model.hidden_size": 64,
    "model.intermediate_size": 353,
    "model.num_hidden_layers": 5,
    "model.num_attention_heads": 8,
    "model.num_key_value_heads": 2,
    "model.max_position_embeddings": 129,
    "model.rms_norm_eps_nano": 1_001,
    "model.rope_theta": 10_001,
    "model.init_std_nano": 20_000_001,
    "model.tie_word_embeddings": False,
    "start.weights": "given",
    "data.manifest_hash": "cd" * 32,
    "data.sequence_tokens": 127,
    "demo.k": 64,
    "demo.beta_micro": 950_001,
    "demo.alpha_micro": 999_999,
    "schedule.rounds": 1_001,
    "schedule.lr_nano": 1_000_001,
    "schedule.warmup_rounds": 1,
    "schedule.decay_from_round": 999,
    "schedule.wd_nano": 1,
    "train.sequences_per_payload": 16,
    "train.microbatch_sequences": 4,
    "train.clip_micro": 1_000_001,
    "judge.openings_tiles": 63,
    "judge.ok_bound_micro": 30_001,
    "judge.mismatch_bound_micro": 100_001,
    "judge.tile_bound_micro": 119_999,
    "judge.tile_mismatch_bound_micro": 180_001,
    "judge.ok_tiles": 1,
    "judge.mismatch_tiles": 7,
    "judge.tile_mismatch_micro": 500_001,
    "judge.tile_forged_micro": 3_000_001,
    "judge.residual_bound_micro": 20_000_001,
    "judge.residual_mismatch_micro": 200_000_001,
    "judge.residual_tile_ok_micro": 60_000_001,
    "judge.gradient_floor_micro": 10_001,
    "judge.sent_floor_log2": 41,
    "judge.agreement_bound_micro": 200_000,
    "judge.agreement_audits": 2_995,
    "judge.calibrated": True,
    "network.hubs": ["https://hub.example:9000"],
    "network.stores": ["s3://bucket/run-1"],
}


# Another value that must stand beside it.
BESIDE = {"judge.agreement_bound_micro": ("agreement_audits", 2_995)}


def with_value(key, value, beside=None):
    values = BOUND.model_dump()
    section, field = key.split(".")
    for name, number in filter(None, [(field, value), beside]):
        values[section][name] = number
    return base.validated(RunConfig, values)


def fields():
    for section, info in RunConfig.model_fields.items():
        if section != "version":
            for field in info.annotation.model_fields:
                yield f"{section}.{field}"


def test_the_list_of_other_values_names_every_field():
    assert set(OTHER) == set(fields())


@pytest.mark.parametrize("key", sorted(OTHER))
def test_the_hash_covers_every_field(key):
    changed = with_value(key, OTHER[key], BESIDE.get(key))
    assert changed != BOUND
    assert changed.config_hash() != BOUND.config_hash()


def test_the_canonical_json_is_sorted_dense_ascii_without_floats():
    text = BOUND.canonical_json()
    values = json.loads(text, parse_float=pytest.fail)
    assert text == json.dumps(values, sort_keys=True, separators=(",", ":")).encode("ascii")
    assert BOUND.config_hash() == H("troth:config", var(text))
    # Pinned: a changed default or field order silently makes every older run another run.
    assert BOUND.config_hash().hex() == PINNED


PINNED = "fd29b1e17976f7f3020eeac14b0dd1df6c375c9a68a1ea659aad6b1e0e19484f"


def test_a_config_without_data_has_no_hash():
    with pytest.raises(UnboundConfigError, match="troth data prepare"):
        RunConfig().config_hash()
    with pytest.raises(UnboundConfigError):
        RunConfig().manifest_digest()
    with pytest.raises(RangeError, match="manifest hash"):
        RunConfig().with_manifest(b"short")
    assert BOUND.manifest_digest() == MANIFEST


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.hidden_size", 130, r"model.hidden_size: expected a multiple of .* = 8"),
        ("model.num_key_value_heads", 3, "a divisor of num_attention_heads = 4"),
        ("schedule.decay_from_round", 1_001, "warmup_rounds = 0 to rounds = 1000"),
        ("schedule.warmup_rounds", 1_001, "Order the schedule"),
        ("train.microbatch_sequences", 3, "a divisor of sequences_per_payload = 8"),
        ("judge.mismatch_bound_micro", 44_999, "at least 1.5 x ok_bound_micro = 30000"),
        ("judge.tile_mismatch_bound_micro", 179_999, "at least 1.5 x tile_bound_micro = 120000"),
        ("judge.tile_bound_micro", 333_334, "at least 1.5 x tile_bound_micro = 333334"),
        ("judge.tile_mismatch_micro", 179_999, "at least 1.5 x tile_bound_micro = 120000"),
        ("judge.tile_forged_micro", 749_999, "at least 1.5 x tile_mismatch_micro = 500000"),
        ("judge.residual_mismatch_micro", 89_999_999, "1.5 x residual_tile_ok_micro = 60000000"),
        ("judge.residual_bound_micro", 133_333_334, "1.5 x residual_bound_micro = 133333334"),
        ("judge.mismatch_tiles", 65, "at most openings_tiles = 64"),
        ("judge.agreement_bound_micro", 1, "0 while agreement_audits is below 2995"),
        ("data.sequence_tokens", 129, "at most model.max_position_embeddings = 128"),
    ],
)
def test_contradictions(key, value, message):
    with pytest.raises(ContradictionError, match=message):
        with_value(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("demo.k", 3),
        ("demo.beta_micro", 1_000_000),
        ("data.manifest_hash", "AB" * 32),
        ("data.manifest_hash", "ab"),
        ("model.vocab_size", 256.0),
        ("model.vocab_size", "256"),
        ("model.tie_word_embeddings", 1),
        ("schedule.lr_nano", 0),
        ("network.hubs", ["hub.example:9000"]),
        ("network.hubs", ["http://hub example"]),
        ("network.hubs", ["http://h\u00fcb.example"]),
        ("network.hubs", ["http://" + "a" * 90]),
        ("network.hubs", ["http://a"] * 9),
        ("network.hubs", [b"http://a"]),
        ("network.stores", ["https://bucket.s3.amazonaws.com"]),
        ("network.stores", ["s3://key:secret@bucket"]),
        ("network.stores", ["s3://bucket/?endpoint=http://10.0.0.1"]),
        ("network.stores", ["file:///srv/troth"]),
        ("network.stores", ["s3://a"] * 9),
    ],
)
def test_values_are_never_coerced(key, value):
    with pytest.raises(InvalidValueError, match=key):
        with_value(key, value)


def test_a_config_of_another_version_names_the_way_out():
    values = BOUND.model_dump() | {"version": 2}
    with pytest.raises(InvalidValueError, match=r"expected 3, found 2\. Use the release of troth"):
        base.validated(RunConfig, values)


def test_unknown_keys_are_refused_at_any_depth():
    with pytest.raises(UnknownKeyError, match=r"model.hiden_size: .*Did you mean 'hidden_size'"):
        with_value("model.hiden_size", 5)
    with pytest.raises(UnknownKeyError, match="Remove it"):
        base.validated(RunConfig, {"zzz": 1})
    with pytest.raises(ValidationError):
        RunConfig(zzz=1)


def test_a_section_that_is_no_section_is_refused():
    with pytest.raises(InvalidValueError, match="model: expected"):
        base.validated(RunConfig, {"model": 5})


def test_followers_take_the_value_of_their_leader():
    config = base.validated(
        RunConfig,
        {
            "model": {"num_attention_heads": 8},
            "schedule": {"rounds": 40},
            "train": {"sequences_per_payload": 3},
        },
    )
    assert config.model.num_key_value_heads == 8
    assert config.schedule.decay_from_round == 40
    assert config.train.microbatch_sequences == 3


def test_a_config_whose_rounds_would_leave_nothing_of_the_weights_is_refused():
    """No client applies a step with a = 0: a run with this config could be created, and stand."""
    most = NANO - 1
    assert ScheduleSection(lr_nano=NANO, wd_nano=most).wd_nano == most
    with pytest.raises(ContradictionError, match="lr \\* wd below 1, with lr_nano = 1000000000"):
        ScheduleSection(lr_nano=NANO, wd_nano=NANO)


def test_a_config_cannot_change():
    with pytest.raises(ValidationError):
        BOUND.schedule.rounds = 3


def test_errors_carry_their_parts():
    with pytest.raises(ConfigError) as caught:
        with_value("schedule.lr_nano", 0)
    error = caught.value
    assert error.subject == "schedule.lr_nano"
    assert error.found == "0"
    assert error.expected == "greater than or equal to 1"
    assert error.next_step
