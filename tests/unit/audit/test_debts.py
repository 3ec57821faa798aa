"""The debts of a participant that stops: what audits wait for, until when, at what price."""

from dataclasses import replace

import pytest
from support.audit_driver import INDEX, ROUND, AuditDriver, view_at
from support.audit_views import STAGE_END, audit_view, juror, seat
from support.fields import assert_records
from support.views import PARAMS, entry, roster

from troth_client.audit.debts import debts
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage, SeatFlag

WITNESS, LEFT = 1, 10
STAKE = 10 * PARAMS.recompute_cost * 20
UNVESTED = 7
TWO_FEES, TENTH = 2 * PARAMS.witness_fee, STAKE // 10
REWARDS = 10 * PARAMS.reward_per_payload + UNVESTED
BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
SEATS = (2, 3, WITNESS, 4, 0)


async def owed(folder, audit, index=WITNESS):
    """The debts of a participant from one audit, `LEFT` slots before its stage ends."""
    rich = entry(index + 1, stake=STAKE, bucket_amount=(0, UNVESTED, 0))
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


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (seated(AuditStage.OPENINGS), [("commit", TWO_FEES)]),
        (seated(AuditStage.COMMIT), [("commit", TWO_FEES)]),
        (seated(AuditStage.COMMIT, SeatFlag.COMMITTED), [("reveal", TENTH)]),
        (seated(AuditStage.REVEAL, SeatFlag.COMMITTED), [("reveal", TENTH)]),
        (seated(AuditStage.REVEAL, BOTH), []),
        (seated(AuditStage.REVEAL), []),
        (seated(AuditStage.SETTLED), []),
        (seated(AuditStage.COMMIT, num_seats=5, flags=AuditFlag.EXTENDED), []),
        (tried(AuditStage.CASE_COMMIT), [("commit", TWO_FEES)]),
        (tried(AuditStage.CASE_REVEAL, SeatFlag.COMMITTED), [("reveal", TENTH)]),
        (tried(AuditStage.DECIDED), []),
    ],
)
async def test_a_judge_owes_its_word(tmp_path, audit, expected):
    assert_records(await owed(tmp_path, audit), [due(*one) for one in expected])


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (audit_view(AuditStage.OPENINGS), [("openings", REWARDS)]),
        (audit_view(AuditStage.CASE_COMMIT), [("openings", REWARDS)]),
        (audit_view(AuditStage.REVEAL), []),
        (audit_view(AuditStage.CASE_COMMIT, kind=AuditKind.PAYLOAD), []),
    ],
)
async def test_a_target_owes_its_openings_for_as_long_as_they_may_be_asked_for(
    tmp_path, audit, expected
):
    assert_records(await owed(tmp_path, audit, INDEX), [due(*one) for one in expected])


async def test_who_is_not_named_owes_nothing(tmp_path):
    assert await owed(tmp_path, audit_view(AuditStage.COMMIT, num_seats=3), 4) == []
