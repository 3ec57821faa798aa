"""The debts of a participant that stops: what audits wait for, until when, at what price."""

from dataclasses import replace

import pytest
from support.audit_driver import INDEX, ROUND, AuditDriver, view_at
from support.audit_views import STAGE_END, audit_view, juror, seat
from support.fields import assert_records
from support.views import PARAMS, entry, roster

from troth_client.audit.debts import debts
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE

WITNESS, LEFT = 1, 10
STAKE = 10 * PARAMS.recompute_cost * 20
UNVESTED = 7
TWO_FEES, TENTH = 2 * PARAMS.witness_fee, STAKE // 10
PRICE = 12 * PARAMS.reward_per_payload
BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
SEATS = (2, 3, WITNESS, 4, 0)


async def owed(folder, audit, index=WITNESS, **changes):
    """The debts of a participant from one audit, `LEFT` slots before its stage ends."""
    rich = entry(index + 1, stake=STAKE, bucket_amount=(0, UNVESTED, 0), **changes)
    others = [entry(number + 1) for number in range(6)]
    view = view_at(STAGE_END - LEFT)
    view = replace(view, entries=roster(*others[:index], rich, *others[index + 1 :]))
    driver = AuditDriver(folder, index=index)
    driver.node.audits = [audit]
    await driver.tracker.refresh(view)
    found = list(debts(driver.tracker, index, view))
    await driver.close()
    return found


def due(what, lamports):
    """The one debt of an audit."""
    return {"round": ROUND, "target": INDEX, "what": what, "slots": LEFT, "lamports": lamports}


def seated(stage, flags=0, **changes):
    seats = tuple(seat(index, flags if index == WITNESS else 0) for index in SEATS)
    return audit_view(stage, seats=seats, **changes)


def tried(stage, flags=0):
    return audit_view(stage, jurors=(juror(2), juror(WITNESS, flags)), num_jurors=2, seats=())


def priced(stage, **changes):
    return audit_view(stage, openings_price=PRICE, **changes)


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (seated(AuditStage.OPENINGS), [("commit", TWO_FEES)]),
        (seated(AuditStage.COMMIT), [("commit", TWO_FEES)]),
        (seated(AuditStage.COMMIT, SeatFlag.COMMITTED), [("reveal", TWO_FEES)]),
        (seated(AuditStage.REVEAL, SeatFlag.COMMITTED), [("reveal", TWO_FEES)]),
        (seated(AuditStage.REVEAL, BOTH), []),
        (seated(AuditStage.REVEAL), []),
        (seated(AuditStage.SETTLED), []),
        (seated(AuditStage.COMMIT, num_seats=5, first_acting=3), []),
        (tried(AuditStage.CASE_COMMIT), [("commit", TWO_FEES)]),
        (tried(AuditStage.CASE_REVEAL, SeatFlag.COMMITTED), [("reveal", TWO_FEES)]),
        (tried(AuditStage.DECIDED), []),
    ],
)
async def test_a_judge_owes_its_word(tmp_path, audit, expected):
    assert_records(await owed(tmp_path, audit), [due(*one) for one in expected])


@pytest.mark.parametrize(
    ("decided", "fine"), [(NONE, TWO_FEES), (ROUND, TWO_FEES), (ROUND - 1, TENTH)]
)
async def test_a_second_hidden_verdict_would_cost_a_tenth(tmp_path, decided, fine):
    """The second one is of a round opened after the first one was decided."""
    hidden = seated(AuditStage.REVEAL, SeatFlag.COMMITTED)
    found = await owed(tmp_path, hidden, reveal_fault_round=decided)
    assert_records(found, [due("reveal", fine)])


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (priced(AuditStage.OPENINGS), [("openings", PRICE)]),
        (priced(AuditStage.CASE_COMMIT), [("openings", PRICE)]),
        (priced(AuditStage.OPENINGS, flags=AuditFlag.REQUESTED), [("openings", 0)]),
        (audit_view(AuditStage.REVEAL), []),
        (audit_view(AuditStage.CASE_COMMIT, kind=AuditKind.PAYLOAD), []),
    ],
)
async def test_a_target_owes_its_openings_for_as_long_as_they_may_be_asked_for(
    tmp_path, audit, expected
):
    assert_records(await owed(tmp_path, audit, INDEX), [due(*one) for one in expected])


@pytest.mark.parametrize(("decided", "doublings"), [(ROUND, 0), (ROUND - 1, 1)])
async def test_a_second_refusal_would_cost_twice_as_much(tmp_path, decided, doublings):
    """A round opened before the first refusal was decided costs the same step again."""
    known = {"openings_step": 1, "openings_fault_round": decided}
    found = await owed(tmp_path, priced(AuditStage.OPENINGS), INDEX, **known)
    assert_records(found, [due("openings", PRICE << doublings)])


async def test_who_is_not_named_owes_nothing(tmp_path):
    assert await owed(tmp_path, audit_view(AuditStage.COMMIT, num_seats=3), 4) == []
