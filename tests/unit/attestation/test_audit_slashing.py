"""Money: every lamport that is taken arrives somewhere, and no cheat gains by a slash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fields import assert_fields

from troth_attestation import slashing
from troth_attestation.quorum import SeatFault
from troth_attestation.slashing import Fault, Funds, Prices, SlashIntent, Split
from troth_coordinator.rules.errors import RangeError
from troth_coordinator.rules.ids import NONE

LAMPORTS = st.integers(0, 2**62)
NAMES = ("claimable", "unvested", "stake", "unbonding")
FUNDS = st.builds(Funds, LAMPORTS, LAMPORTS, LAMPORTS, LAMPORTS)
PRICES = Prices(reward_per_payload=1000, witness_fee=200, recompute_cost=900)
RICH = Funds(claimable=300, unvested=7_001, stake=60_000, unbonding=20_000)
INTENTS = st.builds(SlashIntent, st.sampled_from(Fault), LAMPORTS, *[st.booleans()] * 4)


@given(INTENTS, FUNDS)
def test_a_slash_takes_what_is_there_in_order_and_records_the_rest(intent, funds):
    taken = slashing.take(intent, funds)
    assert 0 <= taken.stake <= funds.stake
    assert 0 <= taken.unbonding <= funds.unbonding
    assert 0 <= taken.unvested <= funds.unvested
    if taken.unbonding:
        assert taken.stake == funds.stake
    if intent.takes_unvested:
        assert taken.unvested == funds.unvested
    elif taken.unvested and not intent.is_small:
        assert taken.stake == funds.stake
        assert taken.unbonding == funds.unbonding
    if intent.is_small:
        assert not taken.stake or taken.unvested == funds.unvested
        assert not taken.stake or taken.claimable == funds.claimable
    assert intent.is_small or not taken.claimable
    forfeited = funds.unvested if intent.takes_unvested else 0
    assert taken.total + taken.shortfall == intent.principal + forfeited
    if taken.shortfall:
        vested = funds.claimable if intent.is_small else 0
        assert taken.total == funds.principal + funds.unvested + vested


@given(LAMPORTS, st.booleans(), LAMPORTS)
def test_the_parts_add_up_to_the_lamport(total, has_bond, most):
    parts = slashing.split(total, has_bond=has_bond)
    assert parts.total == total
    assert 20 * parts.burned >= 19 * total
    assert_fields(parts, acquitted=0)
    assert has_bond or parts.challenger == 0
    fined = slashing.fine(total, most)
    assert fined.total == total
    assert_fields(fined, challenger=0, acquitted=min(total, most))


def test_the_split_in_numbers():
    bonded = slashing.split(1_000_039, has_bond=True)
    assert bonded == Split(challenger=50_001, burned=950_038)
    assert slashing.split(1_000_039, has_bond=False) == Split(burned=1_000_039)
    assert slashing.split(1, has_bond=True) == Split(burned=1)
    assert slashing.fine(1_000_039) == Split(burned=1_000_039)
    most = slashing.acquittal(PRICES)
    assert most == 10 * PRICES.reward_per_payload
    assert slashing.fine(most + 7, most) == Split(acquitted=most, burned=7)


@given(LAMPORTS)
def test_a_failed_case_pays_half_of_the_bond_and_burns_the_rest(bond):
    parts = slashing.failed_case(bond)
    assert parts.total == bond
    assert parts.burned - parts.acquitted in (0, 1)
    assert parts.challenger == 0


@pytest.mark.parametrize(
    ("intent", "stake", "unbonding", "unvested", "claimable"),
    [
        (slashing.malformed(RICH), 8_000, 0, 0, 0),
        (slashing.vouched_for_malformed(), 0, 0, 0, 0),
        (slashing.work(RICH, is_repeated=False), 40_000, 0, 7_001, 0),
        (slashing.work(RICH, is_repeated=True), 60_000, 20_000, 7_001, 0),
        (slashing.no_openings(RICH, 12_000, 0), 4_699, 0, 7_001, 300),
        (slashing.no_openings(RICH, 12_000, 1), 16_699, 0, 7_001, 300),
        (slashing.no_openings(RICH, 12_000, 2), 32_699, 0, 7_001, 300),
        (slashing.seat(SeatFault.NO_COMMIT, RICH, PRICES), 0, 0, 100, 300),
        (slashing.seat(SeatFault.NO_REVEAL, RICH, PRICES), 0, 0, 100, 300),
        (slashing.seat(SeatFault.NO_REVEAL, RICH, PRICES, is_second=True), 1_699, 0, 7_001, 300),
        (slashing.seat(SeatFault.WRONG_OK, RICH, PRICES), 1_699, 0, 7_001, 300),
        (slashing.seat(SeatFault.OUTVOTED_SKETCH, RICH, PRICES), 0, 0, 100, 300),
        (slashing.seat(SeatFault.FALSE_MISMATCH, RICH, PRICES), 699, 0, 7_001, 300),
        (slashing.false_root(RICH), 20_000, 0, 0, 0),
        (slashing.false_possession(RICH), 1_600, 0, 0, 0),
    ],
)
def test_what_each_fault_costs(intent, stake, unbonding, unvested, claimable):
    taken = slashing.take(intent, RICH)
    assert taken.stake == stake
    assert taken.unbonding == unbonding
    assert taken.unvested == unvested
    assert taken.shortfall == 0
    assert taken.claimable == claimable
    assert taken.total == stake + unbonding + unvested + claimable


def test_what_else_follows():
    assert slashing.work(RICH, is_repeated=True).is_barred
    assert not slashing.work(RICH, is_repeated=False).is_barred
    assert slashing.vouched_for_malformed().is_strike
    assert slashing.false_possession(RICH).is_strike
    framed = slashing.seat(SeatFault.FALSE_MISMATCH, RICH, PRICES)
    assert framed.pays_acquitted
    assert not slashing.seat(SeatFault.WRONG_OK, RICH, PRICES).pays_acquitted
    hidden = slashing.seat(SeatFault.NO_REVEAL, Funds(0, 0, 200_000, 0), PRICES, is_second=True)
    assert hidden.principal == 20_000
    assert [fault.value for fault in Fault] == ["P2", "P3", "P5", "P6", "P7", "P8", "P9", "P10"]


@given(LAMPORTS, LAMPORTS)
def test_asking_for_the_stake_back_lowers_no_penalty(stake, moved):
    moved = min(stake, moved)
    before, after = Funds(0, 5, stake, 0), Funds(0, 5, stake - moved, moved)
    for make in (
        slashing.malformed,
        slashing.false_root,
        slashing.false_possession,
        lambda funds: slashing.work(funds, is_repeated=False),
        lambda funds: slashing.work(funds, is_repeated=True),
    ):
        first = slashing.take(make(before), before)
        second = slashing.take(make(after), after)
        assert first.total == second.total


def test_a_poor_participant_loses_all_and_the_rest_is_recorded():
    poor = Funds(claimable=1, unvested=4, stake=3, unbonding=2)
    taken = slashing.take(SlashIntent(Fault.WRONG_SEAT, 100), poor)
    assert taken.stake == 3
    assert taken.unbonding == 2
    assert taken.unvested == 4
    assert taken.shortfall == 91


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("amount", [-1, NONE])
def test_amounts_that_no_account_holds_are_refused(name, amount):
    with pytest.raises(RangeError, match=name):
        Funds(**(dict.fromkeys(NAMES, 1) | {name: amount}))
