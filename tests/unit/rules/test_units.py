"""Quantities as people write them become the integers that are hashed, exactly or not at all."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_coordinator.config_files import load_config, override, read_toml
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.errors import ConfigError, ContradictionError, InvalidValueError
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.settings import section_keys
from troth_coordinator.rules.units import in_integers, in_units, short_name, unit_of

SECTIONS = (*RunConfig.model_fields, "chain")
WITH_UNIT = [(name, key) for name in SECTIONS for key in section_keys(name) if unit_of(key)]
INTEGERS = """
[model]
init_std_nano = 20_000_000
rms_norm_eps_nano = 1_000
[demo]
beta_micro = 950_000
[schedule]
lr_nano = 3_000_000
[train]
clip_micro = 1_000_000
[chain]
p_new_ppm = 400_000
min_stake_lamports = 100_000_000
reward_per_payload = 500_000
case_slots = 1_500
"""
UNITS = """
[model]
init_std = 0.02
rms_norm_eps = 1e-6
[demo]
beta = 0.95
[schedule]
lr = 0.003
[train]
clip = 1
[chain]
p_new = "40%"
min_stake = "0.1 SOL"
reward_per_payload = "0.0005 SOL"
case = "10 min"
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_both_spellings_give_the_same_hash(write):
    one, two = load_config([write(INTEGERS)]), load_config([write(UNITS, "b.toml")])
    assert one == two
    assert one.config.with_manifest(bytes(32)).config_hash() == (
        two.config.with_manifest(bytes(32)).config_hash()
    )


@pytest.mark.parametrize(
    ("key", "value", "steps"),
    [
        ("appeal", "24 h", 216_000),
        ("appeal", "1 min", 150),
        ("appeal", "0.8 s", 2),
        ("appeal", "1.5d", 324_000),
        ("p_new", Decimal("0.1"), 100_000),
        ("p_new", "12.5 %", 125_000),
        ("bond", "0.000000001 SOL", 1),
        ("witness_fee", "1 SOL", 10**9),
        ("witness_fee", 850_000, 850_000),
    ],
)
def test_a_quantity_of_the_chain_is_counted_in_steps(key, value, steps):
    found = in_integers({key: value}, section_keys("chain"), "chain")
    assert list(found.values()) == [steps]


@pytest.mark.parametrize(
    ("section", "text", "found"),
    [
        ("schedule", 'lr = "fast"', "'fast'"),
        ("schedule", "lr = true", "True"),
        ("schedule", "lr = nan", "NaN"),
        ("schedule", 'lr = "0.003"', "'0.003'"),
        ("schedule", "lr = 1e999999999", "1E+999999999"),
        ("schedule", "lr = 1e99999999999999999999", "NaN"),
        ("schedule", f"lr = 0.{'1' * 31}", f"0.{'1' * 31}"),
        ("chain", f'min_stake = "0.{"1" * 31} SOL"', f"'0.{'1' * 31} SOL'"),
        ("chain", "min_stake = 0.1", "0.1"),
        ("chain", 'min_stake = "0.1 lamports"', "'0.1 lamports'"),
        ("chain", 'min_stake = "-1 SOL"', "'-1 SOL'"),
        ("chain", "witness_fee = 0.001", "0.001"),
        ("chain", 'case = "10 SOL"', "'10 SOL'"),
        ("chain", "case = 600", "600"),
        ("chain", 'p_new = "1 s"', "'1 s'"),
    ],
)
def test_another_unit_is_refused_with_both_ways_to_write_it(write, section, text, found):
    name = text.partition(" ")[0]
    with pytest.raises(InvalidValueError) as caught:
        read_toml(write(f"[{section}]\n{text}\n"))
    assert caught.value.subject == f"{section}.{name}"
    assert caught.value.found == found
    assert f"write {name} = " in caught.value.next_step
    assert "as an integer in" in caught.value.next_step


@pytest.mark.parametrize("text", ["9" * 5_000, "[" * 50_000], ids=["digits", "brackets"])
def test_digits_and_brackets_without_end_are_refused(write, text):
    with pytest.raises(InvalidValueError) as caught:
        read_toml(write(f"[schedule]\nrounds = {text}\n"))
    assert caught.value.expected == "valid TOML"
    with pytest.raises(InvalidValueError) as caught:
        load_config([], {"schedule.rounds": text})
    assert caught.value.subject == "schedule.rounds"


@pytest.mark.parametrize(
    ("key", "text", "step"),
    [
        ("schedule.lr", "0.0000000001", "10^-9"),
        ("demo.beta", "0.9999999", "10^-6"),
        ("chain.appeal", "1 s", "slots of 400 ms"),
        ("chain.min_stake", "0.0000000001 SOL", "lamports"),
    ],
)
def test_what_no_integer_holds_is_refused_and_not_rounded(key, text, step):
    with pytest.raises(InvalidValueError) as caught:
        override(key, text)
    assert caught.value.subject == key
    assert step in caught.value.expected


def test_two_spellings_in_one_file_are_refused(write):
    with pytest.raises(ContradictionError) as caught:
        read_toml(write("[schedule]\nlr = 0.003\nlr_nano = 3_000_000\n"))
    assert caught.value.subject == "schedule.lr"
    assert "lr_nano" in caught.value.next_step


def test_a_later_file_wins_over_another_spelling(write):
    one = write("[schedule]\nlr_nano = 3_000_000\n")
    two = write("[schedule]\nlr = 0.001\n", "b.toml")
    assert load_config([one, two]).config.schedule.lr_nano == 1_000_000
    assert load_config([two, one]).config.schedule.lr_nano == 3_000_000
    assert load_config([one], {"schedule.lr": "0.002"}).config.schedule.lr_nano == 2_000_000


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("lr_nano = 0.003", "schedule.lr_nano"),
        ("lr_nano = 0", "schedule.lr_nano"),
        ("lrr = 0.003", "schedule.lrr"),
        ("lr_micro = 3000", "schedule.lr_micro"),
    ],
)
def test_a_wrong_learning_rate_says_the_key_with_its_unit(write, text, subject):
    with pytest.raises(ConfigError) as caught:
        load_config([write(f"[schedule]\n{text}\n")])
    assert caught.value.subject == subject
    assert "lr = 0.003, or lr_nano as an integer in 10^-9" in caught.value.next_step


def test_short_names_of_a_section_are_its_own():
    for name in SECTIONS:
        keys = section_keys(name)
        assert len({short_name(key) for key in keys}) == len(keys)


@given(st.sampled_from(WITH_UNIT), st.integers(0, 2**56))
def test_every_integer_is_shown_in_units_that_give_it_back(place, steps):
    section, key = place
    shown = in_units({key: steps})
    assert in_integers(shown, section_keys(section), section) == {key: steps}


def test_defaults_are_shown_as_people_write_them():
    shown = in_units(ChainParams.localnet().model_dump())
    assert shown["min_stake"] == "0.1 SOL"
    assert shown["case"] == "4 min"
    assert shown["seed_delay"] == "0.8 s"
    assert shown["p_base"] == Decimal("0.1")
    assert shown["ring"] == 16
