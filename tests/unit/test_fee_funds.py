"""A funds gives up housekeeping first, then rounds, then audits; reveals never."""

import pytest
from solders.pubkey import Pubkey
from support.chain import PROGRAM
from support.fields import assert_fields
from support.views import key

from troth_client.network.fee_funds import (
    OWED_ROUNDS,
    UNSPENDABLE_LAMPORTS,
    FeeFunds,
    Rank,
    rank_of,
)
from troth_client.participant.session_funding import low_mark
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.audit_instructions import open_audit

FEE = 5_000
AT = RunAddresses(Pubkey(b"r" * 32), 8, PROGRAM)
PAYER = Pubkey(bytes(key(1)))


def holding(sends, **changes):
    funds = FeeFunds(**changes)
    funds.read(UNSPENDABLE_LAMPORTS + sends * FEE, 7)
    return funds


def test_a_key_that_was_never_read_allows_everything():
    funds = FeeFunds()
    funds.pay(FEE)
    assert all(funds.allows(rank) for rank in Rank)
    assert funds.rounds_left is None


@pytest.mark.parametrize(
    ("sends", "allowed"),
    [
        (0, set()),
        (1, {Rank.REVEAL}),
        (4, {Rank.REVEAL}),
        (5, {Rank.REVEAL, Rank.DUTY}),
        (9, {Rank.REVEAL, Rank.DUTY, Rank.ROUND}),
        (13, set(Rank)),
    ],
)
def test_what_matters_less_stops_first(sends, allowed):
    assert {rank for rank in Rank if holding(sends).allows(rank)} == allowed


def test_the_cap_for_priority_is_kept_for_every_send():
    assert not holding(13, priority_cap=FEE).allows(Rank.ROUND)
    assert holding(17, priority_cap=FEE).allows(Rank.ROUND)


@pytest.mark.parametrize("full", [10**6, 2 * 10**6, 25 * 10**7])
def test_a_key_is_refilled_before_it_gives_up_rounds(full):
    funds = FeeFunds(priority_cap=100_000)
    funds.bound_by(full)
    assert low_mark(full - UNSPENDABLE_LAMPORTS) > funds.kept(Rank.ROUND) + funds.round_lamports
    assert funds.priority_cap <= 100_000


def test_rounds_are_counted_with_the_fees_that_were_measured():
    funds = holding(100)
    assert_fields(funds, round_lamports=2 * FEE, rounds_left=46)
    funds.pay(12 * FEE)
    funds.read(UNSPENDABLE_LAMPORTS + 88 * FEE, 9)
    assert funds.round_lamports == 6 * FEE
    owed = OWED_ROUNDS * 4
    assert funds.kept(Rank.ROUND) == (8 + owed) * FEE
    assert funds.rounds_left == (88 - 8 - owed) // 6


def test_old_rounds_and_waiting_count_less_and_less():
    funds = holding(1_000)
    funds.pay(500 * FEE)
    funds.read(10**9, 7)
    funds.read(10**9, 8)
    assert funds.round_lamports == 2 * FEE, "a run that waits is no round"
    funds.pay(640 * FEE)
    for round_ in range(9, 72):
        funds.read(10**9, round_)
    assert_fields(funds, paid=320 * FEE, first_round=39, round_lamports=10 * FEE)


def test_fees_are_taken_off_until_the_balance_is_read_again():
    funds = holding(9)
    funds.pay(FEE)
    assert not funds.allows(Rank.ROUND)
    funds.read(0, 7)
    assert_fields(funds, spendable=0, rounds_left=0)


def test_ranks():
    commit = make.commit_payload(AT, PAYER, 0, 3, bytes(32), bytes(32))
    crank = make.advance_phase(AT, PAYER, 3)
    assert rank_of([commit, crank]) == Rank.ROUND
    assert rank_of([crank]) == Rank.HOUSE
    assert rank_of([open_audit(AT, PAYER, 3, 1)]) == Rank.HOUSE
