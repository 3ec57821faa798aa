"""Transitions that anyone may send: the right instruction, with the accounts that it needs."""

from dataclasses import replace

import pytest
from solders.pubkey import Pubkey
from support.audit_driver import FROZEN_AT, INDEX, ROUND, view_at
from support.audit_views import audit_view, juror, seat
from support.fields import assert_fields
from support.views import entry, key, network, roster, run_view

from troth_client.audit.due_steps import must_wait, report_of
from troth_client.audit.transitions import due_for, open_audit, take_step
from troth_coordinator.chain.addresses import participant_address
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
OK, MISMATCH = 1, 2
END = audit_view().stage_end


async def move(driver, view, audit):
    """Take the step that is due, if one is."""
    due = due_for(driver.tracker, view, audit)
    if due is not None:
        await take_step(driver.chain, driver.tracker, view, audit, due)


def heard(*verdicts, sketches=None):
    shown = sketches or [(1_000,) * 64] * len(verdicts)
    pairs = zip(verdicts, shown, strict=True)
    return tuple(
        seat(n + 1, BOTH if verdict else 0, verdict, sketch)
        for n, (verdict, sketch) in enumerate(pairs)
    )


async def name_of(driver, audit, view):
    driver.events.events.clear()
    await driver.tracker.refresh(view)
    await move(driver, view, audit)
    return [e["event"] for e in driver.events.events if e["event"] != "audit_changed"]


@pytest.mark.parametrize(
    ("audit", "slot", "event"),
    [
        (audit_view(AuditStage.OPENINGS), END + 1, "audit_unopened"),
        (audit_view(AuditStage.REVEAL, seats=heard(1, 1, 1)), END, "audit_heard"),
        (audit_view(AuditStage.ACCUSED, case_seed_slot=FROZEN_AT), END, "jury_drawn"),
        (audit_view(AuditStage.CASE_REVEAL, jurors=(juror(1),)), END, "case_settled"),
        (audit_view(AuditStage.SETTLED), END + 1, "escrow_released"),
        (audit_view(AuditStage.REQUESTED), END + 1, "audit_forgone"),
    ],
)
async def test_what_is_due_is_sent_and_reported(driver, audit, slot, event):
    assert await name_of(driver, audit, view_at(slot)) == [event]
    assert len(driver.node.sent) == 1


async def test_what_is_not_due_is_not_sent(driver):
    waiting = {"seats": (seat(1, SeatFlag.COMMITTED),), "jurors": (juror(1, SeatFlag.COMMITTED),)}
    for stage in AuditStage:
        await move(driver, view_at(END - 1), audit_view(stage, **waiting))
    assert driver.node.sent == []


def discriminator(driver):
    return driver.last_data()[:8]


async def test_seats_that_disagree_are_extended_and_those_that_agree_are_heard(driver):
    other = [(1_000,) * 64, (1_000,) * 64, (-1_000,) * 64]
    sent = {}
    for name, audit in (
        ("agree", audit_view(AuditStage.REVEAL, seats=heard(OK, OK, OK))),
        ("differ", audit_view(AuditStage.REVEAL, seats=(*heard(OK, OK, MISMATCH), *RESERVE))),
        ("silent", audit_view(AuditStage.REVEAL, seats=(*heard(OK, OK, 0), *RESERVE))),
        (
            "lazy",
            audit_view(AuditStage.REVEAL, seats=(*heard(OK, OK, OK, sketches=other), *RESERVE)),
        ),
        (
            "nobody left",
            audit_view(AuditStage.REVEAL, seats=heard(OK, OK, MISMATCH), num_available=3),
        ),
        (
            "extended",
            audit_view(
                AuditStage.REVEAL,
                seats=heard(OK, OK, MISMATCH, OK, 0),
                num_seats=5,
                first_acting=3,
                num_available=5,
            ),
        ),
    ):
        await move(driver, view_at(END + 1), audit)
        sent[name] = discriminator(driver)
    settle, extend = sent["agree"], sent["differ"]
    assert settle != extend
    assert [sent[name] for name in ("silent", "lazy")] == [extend] * 2
    assert [sent[name] for name in ("nobody left", "extended")] == [settle] * 2


RESERVE = (seat(4), seat(0))


async def test_whoever_may_be_fined_from_a_ticket_is_brought_along_the_target_first(driver):
    entries = roster(*(entry(n, unbonding=n % 2) for n in range(6)))
    view = network(slot=END + 1, run=run_view(round=11, num_audits=1), entries=entries)
    await move(driver, view, audit_view(AuditStage.REVEAL, seats=heard(OK, OK, OK)))
    (instruction,) = driver.node.sent[-1]
    brought = [meta.pubkey for meta in instruction.accounts]
    run = driver.chain.at.run
    owners = [Pubkey.from_bytes(key(number)) for number in (6, 1, 3)]
    assert brought[-3:] == [participant_address(run, owner) for owner in owners]


async def test_an_audit_is_opened_for_a_target_that_hides(driver):
    await open_audit(driver.chain, driver.tracker, view_at(), (ROUND, INDEX, 0))
    assert len(driver.named("audit_opened")) == 1


def test_a_report_shows_only_what_was_revealed():
    hidden = report_of(seat(1, SeatFlag.COMMITTED, OK, (5,) * 64))
    assert_fields(hidden, has_committed=True, kind=None, sketch=None)
    shown = report_of(seat(1, BOTH, OK, (5,) * 64))
    assert_fields(shown, kind=OK, sketch=(5,) * 64)


def convicting(num, **changes):
    jurors = tuple(juror(n, BOTH, MISMATCH if n < num else OK) for n in range(3))
    return audit_view(AuditStage.CASE_REVEAL, jurors=jurors, num_jurors=3, **changes)


@pytest.mark.parametrize(
    ("case", "run", "expected"),
    [
        (convicting(2), {"convicted": (0b1000, 0, 0, 0)}, True),
        (convicting(1), {"convicted": (0b1000, 0, 0, 0)}, False),
        (convicting(2), {"convicted": (1 << 5, 0, 0, 0)}, False),
        (convicting(2), {"convicted": (0, 0b1000, 0, 0)}, False),
        (convicting(2), {"convicted": (0b1000, 0, 0, 0), "audit_epoch": 0, "epoch": 1}, False),
        (convicting(2), {"convicted": (0b1000, 0, 0, 0), "phase": Phase.FINISHED}, False),
        (convicting(2, kind=AuditKind.ROOT), {"convicted": (0b1000, 0, 0, 0)}, False),
        (convicting(2, kind=AuditKind.ROOT), {"convicted": (0, 0, 0b1000, 0)}, True),
    ],
)
async def test_a_conviction_too_many_for_the_epoch_is_not_sent_again_and_again(
    driver, case, run, expected
):
    view = view_at(**run)
    assert must_wait(view, case) is expected
    await move(driver, view, case)
    assert len(driver.node.sent) == (not expected)


def test_the_cap_grows_with_those_present_and_spares_nobody_who_is_barred_already():
    view = view_at(convicted=(1, 0, 0, 0))
    six = replace(view, entries=roster(*(entry(n) for n in range(1, 7))))
    assert not must_wait(six, convicting(3))
    gone = [entry(n, status=Status.LEFT) for n in range(1, 4)]
    three = replace(view, entries=roster(*(entry(n) for n in range(1, 4)), *gone))
    assert must_wait(three, convicting(3))
    barred = replace(three, entries=roster(*(entry(n, status=Status.BARRED) for n in range(6))))
    assert not must_wait(barred, convicting(3))


@pytest.mark.parametrize(("kind", "expected"), [(AuditKind.WORK, True), (AuditKind.ROOT, False)])
def test_a_conviction_waits_while_one_of_its_kind_may_be_reversed(kind, expected):
    case = convicting(3, kind=kind)
    pending = [entry(n, pending_kinds=1) for n in range(6)]
    view = replace(view_at(), entries=roster(*pending))
    assert must_wait(view, case) is expected
    assert not must_wait(view, convicting(1, kind=kind)), "an acquittal need not wait"
