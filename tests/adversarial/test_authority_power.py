"""Attacks by the authority of a run: it may pause, fund and change a few parameters, never take.

The bounds of its changes are in program/test_update_params.py.
"""

from support.fields import assert_fields
from support.program.audits import MISMATCH
from support.program.cases import ROOT, STAKE, CaseDriver
from support.program.losses import balance, penalties
from support.program.rounds import RoundDriver

from troth_attestation.quorum import CaseOutcome
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase

TARGET = 3
TIMES = {"vesting_slots": 9_000, "unbond_slots": 9_000, "rounds_per_epoch": 2}
ROOM = {"keep_stake_lamports": 100_000, "bond_lamports": 10_000, "min_stake_lamports": 200_000}


def ask(driver: RoundDriver, **changes: int) -> str:
    """The name under which the program refuses an update, or nothing."""
    values = {name: getattr(driver.run.params, name) for name in ParamsView.__slots__} | changes
    built = make.update_params(driver.at, driver.authority.pubkey(), ParamsView(**values))
    return driver.attempt(built, driver.authority)


def test_the_authority_cannot_end_audits_price_out_challengers_or_hold_a_run_still() -> None:
    """Participants have joined for ten thousand lamports of bond and a tenth of all payloads.

    Then the authority asks for no audits, a bond that nobody owns, a rest of 2^40 slots, a stake
    that nobody has, a closed door, and as many members as there are places. Threat T93.
    """
    driver = CaseDriver(12, **TIMES, **ROOM)
    for wish in (
        {"p_base_ppm": 0, "p_new_ppm": 0},
        {"seat_after_rounds": 1_000},
        {"bond_lamports": 200_000},
        {"min_stake_lamports": 10**9},
        {"keep_stake_lamports": 200_000},
        {"absence_fee": 1},
        {"recompute_cost": 10_000},
        {"join_until_round": 0},
        {"max_pause_slots": 0},
        {"audit_cap": 2},
    ):
        assert ask(driver, **wish) == "ImmutableParameter"
    assert ask(driver, halt_slots=2**40) == "WindowTooLong"
    assert ask(driver, min_members=16) == "MinMembersGrow"


def test_a_reward_that_is_raised_later_raises_no_penalty_of_a_round_before() -> None:
    """A member misses its openings window. The authority has doubled the reward meanwhile.

    Penalties are counted in rewards: tenfold they would take the whole stake of whoever joined at
    the old price. The reward may only double, and a round is judged at the price of its open.
    Threat T93.
    """
    driver = CaseDriver(12, param_delay_slots=1, **TIMES, **ROOM)
    assert ask(driver, reward_per_payload=10_000) == "RewardOutOfRange"
    assert ask(driver, reward_per_payload=2_000) == "KeepStakeOutOfRange"
    assert ask(driver, reward_per_payload=1_600) == ""
    driver.start()
    driver.play(1)
    driver.draw(0)
    driver.open_audit(0, TARGET)
    price = driver.of(0, TARGET).openings_price
    driver.play(2)
    assert driver.run.params.reward_per_payload == 1_600
    assert driver.round(0).reward_price == driver.of(0, TARGET).reward_price == 1_000
    assert driver.round(2).reward_price == 1_600
    driver.run_to(driver.of(0, TARGET).stage_end)
    (penalised,) = penalties(driver.settle(0, TARGET))
    assert penalised.claimable + penalised.unvested + penalised.stake == price == 12_000


def test_the_authority_cannot_pause_until_a_partner_has_its_stake_back() -> None:
    """A partner votes for a false root and leaves; the authority pauses for its whole budget.

    Tickets matured on real slots while the window for a case stood still, so the case that came in
    time found nothing. Now a ticket waits as long as every window does. Threat T25, T32.
    """
    driver = CaseDriver(12, p_base_ppm=0, p_new_ppm=0)
    driver.start()
    owner, boss = driver.owners[TARGET], driver.authority
    for index in driver.trainers():
        driver.commit(index, b"l" * 32 if index == TARGET else None)
    driver.advance_phase()
    driver.send(make.leave_run(driver.at, owner.pubkey()), owner)
    driver.send(make.pause_run(driver.at, boss.pubkey()), boss)
    driver.attest_all()
    driver.close()
    assert driver.run.phase == Phase.PAUSED
    before = balance(driver, owner)
    withdraw = make.withdraw_stake(driver.at, owner.pubkey(), 0)
    driver.chain.advance(driver.params.max_pause_slots + 1)
    assert driver.refused(withdraw, owner) == "NothingToWithdraw"
    stranger = driver.outsider("stranger")
    driver.send(make.resume_run(driver.at, stranger.pubkey(), driver.run.round), stranger)
    assert driver.refused(withdraw, owner) == "NothingToWithdraw"
    driver.challenge(stranger, 0, TARGET, ROOT)
    landed = driver.decide(driver.case(0, TARGET, ROOT), MISMATCH, people=[TARGET])
    convicted = landed.event("CaseSettled")
    assert_fields(convicted, outcome=CaseOutcome.CONVICTED, unbonding=STAKE // 4, shortfall=0)
    assert balance(driver, owner) == before
