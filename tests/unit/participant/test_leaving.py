"""How long a participant stays: while an audit, or a seed, may still ask something of it."""

from dataclasses import replace

import pytest
from support.audit_driver import (
    FROZEN_AT,
    INDEX,
    ROUND,
    closed_round,
    view_at,
)
from support.audit_views import audit_view, juror, seat
from support.views import PARAMS, entry, network, roster, run_view

from troth_client.participant.staying import is_needed, owes
from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import SeedStatus, Status

BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
OK = 1
END = audit_view().stage_end
EVERYBODY, OTHERS = 0b111111, 0b011111
"""Eligible witnesses, with the member of these tests and without it."""


def heard(*verdicts):
    return tuple(seat(n + 1, BOTH, verdict) for n, verdict in enumerate(verdicts))


async def test_nobody_goes_before_the_last_audit_is_heard_however_old_the_last_look(driver):
    """A member left a finished run while another opened the last audit: a silent seat."""
    driver.node.rounds = {}
    driver.node.audits = []
    await driver.tracker.refresh(view_at(sequence=1))
    driver.node.audits = [audit_view(AuditStage.OPENINGS)]
    assert await is_needed(driver.member, view_at(sequence=2))
    driver.node.audits = [audit_view(AuditStage.SETTLED)]
    assert not await is_needed(driver.member, view_at(END + 1, sequence=3))
    driver.node.rounds, driver.node.audits = {ROUND: closed_round()}, []
    assert await is_needed(driver.member, view_at(sequence=4)), "it is not opened yet"
    assert await is_needed(driver.member, view_at(sequence=5, seeds_pending=1 << 10))


def left(round_, sequence, **changes):
    entries = roster(
        *(entry(n) for n in range(1, 6)), entry(6, status=Status.LEFT, left_round=round_)
    )
    run = run_view(round=11, num_audits=1, event_sequence=sequence, **changes)
    return network(slot=FROZEN_AT + 1, run=run, entries=entries)


@pytest.mark.parametrize(
    ("audit", "expected"),
    [
        (audit_view(), True),
        (audit_view(AuditStage.SETTLED), True),
        (audit_view(AuditStage.SETTLED, stage_end=FROZEN_AT), False),
        (audit_view(AuditStage.SETTLED, target=0, eligible=OTHERS), False),
        (audit_view(AuditStage.SETTLED, target=0, eligible=EVERYBODY), True),
        (audit_view(AuditStage.SETTLED, target=0, eligible=EVERYBODY, stage_end=FROZEN_AT), False),
        (audit_view(target=0, eligible=OTHERS), False),
        (audit_view(target=0, eligible=EVERYBODY), True),
        (audit_view(AuditStage.ACCUSED, target=0, eligible=EVERYBODY), True),
        (audit_view(AuditStage.CASE_COMMIT, target=0, eligible=EVERYBODY), False),
        (audit_view(target=0, seats=heard(OK, OK, OK, OK, OK)), True),
        (audit_view(AuditStage.CASE_COMMIT, target=0, seats=(), jurors=(juror(INDEX),)), True),
    ],
)
async def test_a_member_that_has_left_stays_for_audits_that_name_it(driver, audit, expected):
    driver.node.rounds = {}
    driver.node.audits = [audit]
    assert await owes(driver.member, left(10, 1)) is expected


async def test_a_member_that_has_left_stays_for_the_seeds_of_its_rounds_and_no_longer(driver):
    driver.node.rounds = {}
    assert await owes(driver.member, left(9, 1, seeds_pending=1 << 9))
    assert not await owes(driver.member, left(9, 2, seeds_pending=1 << 10))
    driver.node.rounds = {ROUND: closed_round()}
    assert await owes(driver.member, left(9, 3))
    driver.node.rounds = {ROUND: closed_round(eligible=OTHERS)}
    await driver.tracker.refresh(view_at(sequence=4))
    assert not await owes(driver.member, left(8, 5))


async def test_a_witness_stays_while_a_case_about_one_of_its_rounds_may_be_opened(driver):
    """Those who stay would be the whole jury of those who went home. Threat T70."""
    slots = PARAMS.case_slots
    lost = closed_round(seed_status=SeedStatus.LOST, freeze_clock=NONE, close_clock=FROZEN_AT)
    driver.node.rounds, driver.node.audits = {ROUND: lost}, []
    assert await owes(driver.member, left(10, 1))
    assert await is_needed(driver.member, view_at(FROZEN_AT + slots, sequence=2))
    assert not await is_needed(driver.member, view_at(FROZEN_AT + slots + 1, sequence=3))
    driver.node.rounds = {ROUND: replace(lost, eligible=OTHERS)}
    await driver.tracker.refresh(view_at(sequence=4))
    assert not await owes(driver.member, left(10, 5))


async def test_a_lost_seed_asks_nobody(driver):
    driver.node.rounds = {ROUND: closed_round(seed_status=SeedStatus.LOST, freeze_clock=NONE)}
    assert not await is_needed(driver.member, view_at(FROZEN_AT + PARAMS.openings_slots))
