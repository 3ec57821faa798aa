"""Chain parameters: defaults, single bounds, contradictions, updates."""

from dataclasses import replace

import pytest

from troth_coordinator.rules import params as chain
from troth_coordinator.rules.errors import (
    ContradictionError,
    InvalidValueError,
    UnknownKeyError,
)
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_checks import (
    jury_duty_slots,
    longest_settlement_slots,
)
from troth_coordinator.rules.params_view import Admission, ParamsView


def test_defaults_are_those_of_the_protocol():
    local, public = ChainParams.localnet(), ChainParams.public()
    assert local.capacity == 16
    assert local.ring == 16
    assert local.case_slots == 600
    assert public.capacity == 64
    assert public.ring == 64
    assert public.case_slots == 18_000
    assert local.vesting_slots == 4_500
    assert local.unbond_slots == 5_400
    assert public.vesting_slots == 864_000
    assert public.unbond_slots == 1_512_000
    assert local.admission == "open"
    assert public.admission == "allowlist"
    assert longest_settlement_slots(local.to_view()) == 3_946
    assert jury_duty_slots(local.to_view()) == 3_646


def test_money_follows_the_reward_unless_it_is_named():
    made = ChainParams.localnet(reward_per_payload=1_000, absence_fee=7)
    assert made.absence_fee == 7
    assert made.witness_fee == 850
    assert made.recompute_cost == 1_000
    assert made.bond_lamports == 14 * 850


def test_joining_is_open_for_the_whole_run_unless_it_is_named():
    assert ChainParams.localnet(max_rounds=40).join_until_round == 40
    made = ChainParams.localnet(join_until_round=3).to_view()
    assert chain.joins_are_open(3, made)
    assert not chain.joins_are_open(4, made)


def test_epochs_count_rounds():
    assert [chain.epoch_of(r, 50) for r in (0, 49, 50, 99, 100)] == [0, 0, 1, 1, 2]


def test_view_round_trip():
    for made in (ChainParams.localnet(), ChainParams.public()):
        view = made.to_view()
        assert ChainParams.from_view(view) == made
        assert ChainParams.from_view(replace(view, admission=int(view.admission))) == made
        assert isinstance(view.admission, Admission)
    assert tuple(ChainParams.model_fields) == ParamsView.__slots__


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min_stake_lamports", -1),
        ("min_stake_lamports", 2**56 + 1),
        ("commit_slots", 0),
        ("case_slots", 2**23 + 1),
        ("commit_slots", 2**16 + 1),
        ("warmup_slots", 2**16 + 1),
        ("halt_slots", 2**16 + 1),
        ("sequences_per_payload", 2**20 + 1),
        ("rounds_per_epoch", 100_001),
        ("residual_rounds", 10_001),
        ("checkpoint_every", 100_001),
        ("seat_after_rounds", 1_001),
        ("max_rounds", 0),
        ("max_rounds", 2**32),
        ("p_new_ppm", 1_000_001),
        ("capacity", 0),
        ("capacity", 65),
        ("ring", 65),
        ("admission", "closed"),
        ("commit_slots", 1.5),
        ("commit_slots", True),
        ("reward_per_payload", "1"),
    ],
)
def test_single_bounds(key, value):
    with pytest.raises(InvalidValueError, match=f"chain.{key}: expected .*\\. Correct this key"):
        ChainParams.localnet(**{key: value})


def test_unknown_parameters_are_refused_with_the_nearest_name():
    with pytest.raises(UnknownKeyError, match=r"chain\.commit_slot: .*Did you mean 'commit_slots'"):
        ChainParams.localnet(commit_slot=5)


def test_a_missing_parameter_is_named():
    values = ChainParams.localnet().model_dump()
    del values["ring"]
    with pytest.raises(InvalidValueError, match="ring: expected Field required, found nothing"):
        chain.validated(ChainParams, values)


def test_a_contradiction_says_what_to_do():
    with pytest.raises(ContradictionError) as caught:
        ChainParams.localnet(min_stake_lamports=5)
    assert str(caught.value) == (
        "chain.keep_stake_lamports: expected at least 60 rewards and half of min_stake_lamports = "
        "60000000, and at most min_stake_lamports = 5, found 60000000. "
        "Raise min_stake_lamports or lower reward_per_payload."
    )
    assert caught.value.program_error == "KeepStakeOutOfRange"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 60_000_000),
        ({"min_stake_lamports": 120_000_001}, 60_000_001),
        ({"absence_fee": 7_000_000}, 70_000_000),
        ({"keep_stake_lamports": 99_000_000}, 99_000_000),
    ],
)
def test_the_stake_to_keep_is_the_least_that_the_others_allow_unless_it_is_named(changes, expected):
    assert ChainParams.localnet(**changes).keep_stake_lamports == expected
