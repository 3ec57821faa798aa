"""Earnings of a day: by hand for small runs, and what empties a pool."""

from dataclasses import replace
from fractions import Fraction

import pytest

from troth_coordinator.rules.earnings import (
    Crowd,
    earnings,
    rounds_of_a_day,
    rounds_paid_for,
)
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.settings import settings_from
from troth_coordinator.rules.view import Role

BOTH = Role.TRAINER | Role.WITNESS
FEE = 5_000
PARAMS = replace(
    settings_from({}).chain.to_view(),
    reward_per_payload=1_000_000,
    witness_fee=400_000,
    p_base_ppm=500_000,
)
CROWD = Crowd(trainers=4, eligible=4, members=4, max_audits=8)


def test_half_of_four_payloads_have_three_seats_each():
    found = earnings(PARAMS, 10**12, CROWD, BOTH, 100, FEE)
    assert found.reward == 1_000_000
    assert found.seats == Fraction(3, 2)
    assert found.seat_pay == 600_000
    assert found.fees == FEE * (1 + 1 + 1 + 3 + 1), "attest, commit, a shared one, seats, audited"
    assert found.day_lamports == 100 * (1_600_000 - 35_000)


def test_a_witness_earns_no_reward_and_a_trainer_takes_no_seat():
    witness = earnings(PARAMS, 10**12, CROWD, Role.WITNESS, 100, FEE)
    assert witness.reward == 0
    assert witness.seat_pay == 600_000
    trainer = earnings(PARAMS, 10**12, CROWD, Role.TRAINER, 100, FEE)
    assert trainer.reward == 1_000_000
    assert trainer.seats == 0


def test_the_limit_of_audits_binds():
    few = replace(CROWD, max_audits=1)
    assert earnings(PARAMS, 10**12, few, BOTH, 100, FEE).seats == Fraction(3, 4)


def test_an_empty_pool_pays_no_round():
    found = earnings(PARAMS, 0, CROWD, BOTH, 100, FEE)
    assert found.pool_rounds == 0
    assert found.day_lamports == 0


def test_a_pool_lasts_for_what_is_taken_from_it():
    # Four rewards and two audits of three seats: 6.4 million a round.
    found = earnings(PARAMS, 64_000_000, CROWD, BOTH, 100, FEE)
    assert found.pool_rounds == 10
    assert found.rounds == 10


def test_a_balance_pays_for_whole_rounds():
    found = earnings(PARAMS, 10**12, CROWD, BOTH, 100, FEE)
    assert rounds_paid_for(35_000 * 7 + 34_999, found) == 7
    assert rounds_paid_for(0, found) == 0


def test_a_day_has_a_round_every_thirty_seconds():
    assert rounds_of_a_day(Fraction(75), 400_000) == 2_880
    with pytest.raises(RangeError):
        rounds_of_a_day(Fraction(0), 400_000)


def test_somebody_must_be_there():
    with pytest.raises(RangeError):
        Crowd(trainers=0, eligible=1, members=1, max_audits=1)
