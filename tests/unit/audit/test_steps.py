"""The steps that anyone may take: the right instruction, with the accounts that it needs."""

import random
from dataclasses import replace

import pytest
from solders.pubkey import Pubkey
from support.views import PARAMS, entry, key, roster
from troth_client.audit.steps import open_audit, report_of, take_step, waits_for_cap

from troth_client.participant.audits import attend, is_needed, owes
from troth_client.state.kept_weights import KeptWeights
from troth_coordinator.chain.addresses import participant_address
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus, Status

from .scene import (
    AUDIT,
    FROZEN_AT,
    INDEX,
    ROUND,
    Scene,
    audit_view,
    closed_round,
    juror,
    network,
    run_view,
    seat,
    view_at,
)

BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
OK, MISMATCH = 1, 2
END = audit_view().stage_end


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path)
    yield one
    one.close()


def heard(*verdicts, sketches=None):
    shown = sketches or [(1_000,) * 64] * len(verdicts)
    pairs = zip(verdicts, shown, strict=True)
    return tuple(
        seat(n + 1, BOTH if verdict else 0, verdict, sketch)
        for n, (verdict, sketch) in enumerate(pairs)
    )


async def name_of(scene, audit, view):
    scene.events.events.clear()
    await scene.peer.tracker.refresh(view)
    await take_step(scene.peer, view, audit)
    return [e["event"] for e in scene.events.events if e["event"] != "audit_changed"]


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
async def test_what_is_due_is_sent_and_told(scene, audit, slot, event):
    assert await name_of(scene, audit, view_at(slot)) == [event]
    assert len(scene.node.sent) == 1


async def test_what_is_not_due_is_not_sent(scene):
    waiting = {"seats": (seat(1, SeatFlag.COMMITTED),), "jurors": (juror(1, SeatFlag.COMMITTED),)}
    for stage in AuditStage:
        await take_step(scene.peer, view_at(END - 1), audit_view(stage, **waiting))
    assert scene.node.sent == []


def discriminator(scene):
    (instruction,) = scene.node.sent[-1]
    return bytes(instruction.data)[:8]


async def test_seats_that_disagree_are_extended_and_those_that_agree_are_heard(scene):
    other = [(1_000,) * 64, (1_000,) * 64, (-1_000,) * 64]
    told = {}
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
                flags=AuditFlag.EXTENDED,
            ),
        ),
    ):
        await take_step(scene.peer, view_at(END + 1), audit)
        told[name] = discriminator(scene)
    settle, extend = told["agree"], told["differ"]
    assert settle != extend
    assert [told[name] for name in ("silent", "lazy")] == [extend] * 2
    assert [told[name] for name in ("nobody left", "extended")] == [settle] * 2


RESERVE = (seat(4), seat(0))


async def test_whoever_may_be_fined_from_a_ticket_is_brought_along_the_target_first(scene):
    entries = roster(*(entry(n, unbonding=n % 2) for n in range(6)))
    view = network(slot=END + 1, run=run_view(round=11, num_audits=1), entries=entries)
    await take_step(scene.peer, view, audit_view(AuditStage.REVEAL, seats=heard(OK, OK, OK)))
    (instruction,) = scene.node.sent[-1]
    brought = [meta.pubkey for meta in instruction.accounts]
    run = scene.peer.at.run
    owners = [Pubkey.from_bytes(key(number)) for number in (6, 1, 3)]
    assert brought[-3:] == [participant_address(run, owner) for owner in owners]


async def test_an_audit_is_opened_for_a_target_that_hides(scene):
    await open_audit(scene.peer, view_at(), (ROUND, INDEX, 0))
    assert len(scene.named("audit_opened")) == 1


def test_a_report_shows_only_what_was_revealed():
    hidden = report_of(seat(1, SeatFlag.COMMITTED, OK, (5,) * 64))
    assert (hidden.has_committed, hidden.kind, hidden.sketch) == (True, None, None)
    shown = report_of(seat(1, BOTH, OK, (5,) * 64))
    assert (shown.kind, shown.sketch) == (OK, (5,) * 64)


async def test_nobody_goes_before_the_last_audit_is_heard_however_old_the_last_look(scene):
    """A member left a finished run while another opened the last audit: a silent seat."""
    scene.node.rounds = {}
    scene.node.audits = []
    await scene.peer.tracker.refresh(view_at(sequence=1))
    scene.node.audits = [audit_view(AuditStage.OPENINGS)]
    assert await is_needed(scene.peer, view_at(sequence=2))
    scene.node.audits = [audit_view(AuditStage.SETTLED)]
    assert not await is_needed(scene.peer, view_at(END + 1, sequence=3))
    scene.node.rounds, scene.node.audits = {ROUND: closed_round()}, []
    assert await is_needed(scene.peer, view_at(sequence=4)), "it is not opened yet"
    assert await is_needed(scene.peer, view_at(sequence=5, seeds_pending=1 << 10))


async def test_who_was_cleared_serves_its_openings_while_anybody_may_contest_that(scene):
    """Somebody waits for an honest member's process to end, opens a bonded case, and has it fined.

    A second committee that is served nothing says so, and that is a refusal (P5). So members stay,
    with the opening set on their desk, until no case may follow. Threat T22.
    """
    scene.peer.kept = KeptWeights(scene.store, b"c" * 32)
    scene.peer.random = random.Random(0)
    scene.propose()
    await attend(scene.peer, view_at())
    assert scene.peer.desk.find(ROUND, INDEX) == AUDIT.root
    cleared = audit_view(AuditStage.SETTLED, openings_root=AUDIT.root, stage_end=5_000)
    scene.node.audits = [cleared]
    await attend(scene.peer, view_at(5_000, sequence=2))
    assert await is_needed(scene.peer, view_at(5_000, sequence=3))
    assert scene.peer.desk.shown(AUDIT.root) is not None
    scene.node.audits = [replace(cleared, stage=AuditStage.CASE_COMMIT, stage_end=6_000)]
    await attend(scene.peer, view_at(5_100, sequence=4))
    assert await is_needed(scene.peer, view_at(5_100, sequence=5))
    assert scene.peer.desk.shown(AUDIT.root) is not None
    scene.node.audits = []
    await attend(scene.peer, view_at(6_200, sequence=6))
    assert not await is_needed(scene.peer, view_at(6_200, sequence=7))
    assert scene.peer.desk.held == []


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
        (audit_view(AuditStage.SETTLED, target=0, seats=heard(OK, OK, OK, OK, OK)), False),
        (audit_view(target=0), False),
        (audit_view(target=0, seats=heard(OK, OK, OK, OK, OK)), True),
        (audit_view(target=0, seats=(), jurors=(juror(INDEX),)), True),
    ],
)
async def test_who_has_left_stays_for_audits_that_name_it(scene, audit, expected):
    scene.node.rounds = {}
    scene.node.audits = [audit]
    assert await owes(scene.peer, left(10, 1)) is expected


async def test_who_has_left_stays_for_the_seeds_of_its_rounds_and_no_longer(scene):
    scene.node.rounds = {}
    assert await owes(scene.peer, left(9, 1, seeds_pending=1 << 9))
    assert not await owes(scene.peer, left(9, 2, seeds_pending=1 << 10))
    scene.node.rounds = {ROUND: closed_round()}
    assert await owes(scene.peer, left(9, 3))
    assert not await owes(scene.peer, left(8, 4))


async def test_a_lost_seed_asks_nobody(scene):
    scene.node.rounds = {ROUND: closed_round(seed_status=SeedStatus.LOST, freeze_clock=NONE)}
    assert not await is_needed(scene.peer, view_at(FROZEN_AT + PARAMS.openings_slots))


def convicting(num, **changes):
    jurors = tuple(juror(n, BOTH, MISMATCH if n < num else OK) for n in range(3))
    return audit_view(AuditStage.CASE_REVEAL, jurors=jurors, num_jurors=3, **changes)


@pytest.mark.parametrize(
    ("case", "run", "expected"),
    [
        (convicting(2), {"num_convicted": 1}, True),
        (convicting(1), {"num_convicted": 1}, False),
        (convicting(2), {"num_convicted": 0}, False),
        (convicting(2), {"num_convicted": 1, "audit_epoch": 0, "epoch": 1}, False),
        (convicting(2), {"num_convicted": 1, "phase": Phase.FINISHED}, False),
        (convicting(2, kind=AuditKind.ROOT), {"num_convicted": 1}, False),
    ],
)
async def test_a_conviction_too_many_for_the_epoch_is_not_sent_again_and_again(
    scene, case, run, expected
):
    view = view_at(**run)
    assert waits_for_cap(view, case) is expected
    await take_step(scene.peer, view, case)
    assert len(scene.node.sent) == (not expected)


def test_the_cap_grows_with_those_present_and_spares_nobody_who_is_barred_already():
    view = view_at(num_convicted=1)
    six = replace(view, entries=roster(*(entry(n) for n in range(1, 7))))
    assert not waits_for_cap(six, convicting(3))
    gone = [entry(n, status=Status.LEFT) for n in range(1, 4)]
    three = replace(view, entries=roster(*(entry(n) for n in range(1, 4)), *gone))
    assert waits_for_cap(three, convicting(3))
    barred = replace(three, entries=roster(*(entry(n, status=Status.BARRED) for n in range(6))))
    assert not waits_for_cap(barred, convicting(3))
