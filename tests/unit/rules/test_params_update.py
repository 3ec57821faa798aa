"""Bounds of an update of the chain parameters; the program's cases are golden vectors."""

from dataclasses import replace

import pytest

from troth_coordinator.rules.errors import ContradictionError
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_update import CHANGEABLE, GROWING, IMMUTABLE, check_update
from troth_coordinator.rules.params_view import Admission, ParamsView

PARAMS = ChainParams.public().to_view()


def refusal(changed: ParamsView, old: ParamsView = PARAMS) -> ContradictionError:
    with pytest.raises(ContradictionError) as caught:
        check_update(PARAMS, old, changed)
    return caught.value


def test_every_parameter_is_fixed_or_may_change():
    assert set(CHANGEABLE) | set(IMMUTABLE) == set(ParamsView.__slots__)
    assert len(CHANGEABLE) + len(IMMUTABLE) == len(ParamsView.__slots__)


@pytest.mark.parametrize("field", IMMUTABLE)
def test_an_update_leaves_alone_what_a_participant_joined_for(field):
    old = getattr(PARAMS, field)
    changed = replace(PARAMS, **{field: Admission(1 - old) if field == "admission" else old + 1})
    error = refusal(changed)
    assert error.program_error == "ImmutableParameter"
    assert "fixed at creation" in str(error)


@pytest.mark.parametrize("field", GROWING)
def test_a_window_grows_to_twice_its_length_at_the_creation_and_never_shrinks(field):
    first = getattr(PARAMS, field)
    wide = replace(PARAMS, **{field: first + 1})
    check_update(PARAMS, PARAMS, wide)
    assert refusal(replace(PARAMS, **{field: first - 1})).program_error == "WindowShrinks"
    assert refusal(PARAMS, wide).program_error == "WindowShrinks"
    error = refusal(replace(PARAMS, **{field: 2 * first + 1}), wide)
    assert error.program_error == "WindowTooLong"
    assert f"at most {2 * first}, twice that of the creation" in str(error)


def test_the_reward_stays_between_half_and_twice_that_of_the_creation():
    reward = PARAMS.reward_per_payload
    halved = replace(PARAMS, reward_per_payload=reward // 2)
    check_update(PARAMS, PARAMS, halved)
    check_update(PARAMS, halved, replace(PARAMS, reward_per_payload=2 * reward))
    for found in (reward // 2 - 1, 2 * reward + 1):
        error = refusal(replace(PARAMS, reward_per_payload=found), halved)
        assert error.program_error == "RewardOutOfRange"


def test_the_relations_of_the_creation_hold_after_an_update():
    error = refusal(replace(PARAMS, appeal_slots=2 * PARAMS.appeal_slots, breaker_slots=432_000))
    assert error.program_error == "VestingTooShort"


def test_min_members_only_becomes_smaller():
    fewer = replace(PARAMS, min_members=PARAMS.min_members - 1)
    check_update(PARAMS, PARAMS, fewer)
    assert refusal(PARAMS, fewer).program_error == "MinMembersGrow"
