"""Updates of the parameters: what may change, from when, and what is refused by name."""

import dataclasses

import pytest
from support.program.rounds import SOL, RoundDriver

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.params_update import GROWING, IMMUTABLE
from troth_coordinator.rules.view import RunFlag


def update(driver: RoundDriver, **changes: int):
    params = dataclasses.replace(driver.run.params, **changes)
    return make.update_params(driver.at, driver.authority.pubkey(), params)


def test_parameters_change_at_the_first_epoch_boundary_after_the_delay():
    driver = RoundDriver(4, rounds_per_epoch=4, param_delay_slots=10)
    driver.start()
    driver.play(3)
    requested = driver.send(update(driver, reward_per_payload=500), driver.authority)
    assert requested.names() == ["ParamsRequested"]
    driver.play()
    # Round 4 starts an epoch, but the delay has not passed.
    assert driver.run.round == 4 and driver.run.params.reward_per_payload == 1_000
    driver.chain.advance(10)
    driver.play(3)
    assert driver.run.params.reward_per_payload == 1_000
    landed = driver.play()
    assert landed.event("ParamsApplied").epoch == 2
    assert driver.run.params.reward_per_payload == 500
    assert driver.run.flags == 0 and driver.run.params_requested_slot == NONE
    before = sum(driver.entries[0].bucket_amount) + driver.entries[0].claimable
    driver.play()
    assert sum(driver.entries[0].bucket_amount) + driver.entries[0].claimable == before + 500


def changed(driver: RoundDriver, field: str) -> int:
    """Another value of that parameter, as close as may be."""
    value = getattr(driver.params, field)
    return 1 - value if field == "admission" else value + 1


@pytest.fixture(scope="module")
def unjoined() -> RoundDriver:
    return RoundDriver(0, vesting_slots=9_000, unbond_slots=9_000, min_members=3)


@pytest.mark.parametrize("field", IMMUTABLE)
def test_what_a_participant_joined_for_never_changes(unjoined, field):
    built = update(unjoined, **{field: changed(unjoined, field)})
    assert unjoined.refused(built, unjoined.authority) == "ImmutableParameter"


@pytest.mark.parametrize("field", GROWING)
def test_a_window_grows_to_twice_its_length_and_never_shrinks(unjoined, field):
    driver, first = unjoined, getattr(unjoined.params, field)
    shorter = update(driver, **{field: first - 1})
    assert driver.refused(shorter, driver.authority) == "WindowShrinks"
    longer = update(driver, **{field: 2 * first + 1})
    assert driver.refused(longer, driver.authority) == "WindowTooLong"
    driver.send(update(driver, **{field: 2 * first}), driver.authority)


@pytest.mark.parametrize(
    ("error", "changes"),
    [
        ("MinMembersGrow", {"min_members": 4}),
        ("MinMembersOutOfRange", {"min_members": 0}),
        ("RewardOutOfRange", {"reward_per_payload": 499}),
        ("RewardOutOfRange", {"reward_per_payload": 2_001}),
        ("KeepStakeOutOfRange", {"reward_per_payload": 1_001}),
    ],
)
def test_the_reward_and_the_members_change_within_bounds(unjoined, error, changes):
    assert unjoined.refused(update(unjoined, **changes), unjoined.authority) == error
    unjoined.send(update(unjoined, min_members=2, reward_per_payload=500), unjoined.authority)


RAISED = {"reward_per_payload": 1_500}
AFFORDED = {"keep_stake_lamports": 100_000, "bond_lamports": 7_500, "rounds_per_epoch": 4}


def test_a_raise_needs_a_pool_that_pays_it_for_an_epoch():
    """A reward that the pool cannot pay raises only the penalties that are counted in rewards."""
    driver = RoundDriver(4, pool=1_500 * 4 * 4 - 1, **AFFORDED)
    assert driver.refused(update(driver, **RAISED), driver.authority) == "RewardUnfunded"
    driver.send(make.fund_run(driver.at, driver.authority.pubkey(), 1), driver.authority)
    driver.send(update(driver, **RAISED), driver.authority)


def test_a_raise_that_the_pool_cannot_pay_any_more_waits_for_the_funder():
    pool = 1_500 * 4 * 4
    driver = RoundDriver(4, pool=pool, param_delay_slots=1, **AFFORDED)
    driver.send(update(driver, **RAISED), driver.authority)
    driver.start()
    driver.play(4)
    assert driver.run.reward_pool < pool
    assert driver.run.params.reward_per_payload == 1_000
    assert driver.run.flags == RunFlag.PARAMS_PENDING
    driver.send(make.fund_run(driver.at, driver.authority.pubkey(), SOL), driver.authority)
    driver.play(4)
    assert driver.run.params.reward_per_payload == 1_500
    assert driver.run.created.reward_per_payload == 1_000


def test_only_the_authority_changes_parameters():
    driver = RoundDriver(0)
    foreign = make.update_params(driver.at, driver.cranker.pubkey(), driver.run.params)
    assert driver.refused(foreign, driver.cranker) == "WrongAuthority"
