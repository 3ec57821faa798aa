"""The tracker: asks when something may be new, waits for what may be taken back, is patient."""

from dataclasses import replace

import pytest
from support.views import PARAMS

from troth_client.state.audit_tracker import FORK_SLOTS, PATIENCE_SLOTS, REREAD_SLOTS, asked_for
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import RoundFlag, SeedStatus

from .scene import FROZEN_AT, INDEX, ROUND, Scene, audit_view, closed_round, view_at

WORK = (ROUND, INDEX, 0)


@pytest.fixture
def scene(tmp_path):
    one = Scene(tmp_path)
    yield one
    one.close()


@pytest.fixture
def tracker(scene):
    return scene.peer.tracker


async def test_nothing_is_asked_while_nothing_seems_to_have_changed(scene, tracker):
    for slot in range(FROZEN_AT + 1, FROZEN_AT + 1 + REREAD_SLOTS):
        await tracker.refresh(view_at(slot))
    assert scene.node.num_reads == 1
    await tracker.refresh(view_at(FROZEN_AT + 1 + REREAD_SLOTS))
    assert scene.node.num_reads == 2, "the node that answered may have lagged"


async def test_every_event_of_the_run_is_a_reason_to_ask_also_on_another_fork(scene, tracker):
    await tracker.refresh(view_at())
    await tracker.refresh(view_at(sequence=2))
    assert scene.node.num_reads == 2
    await tracker.refresh(view_at(sequence=2, chain_hash=b"f" * 32))
    assert scene.node.num_reads == 3


async def test_no_audit_is_looked_for_where_the_run_has_none(scene, tracker):
    scene.node.audits = [audit_view()]
    view = view_at()
    await tracker.refresh(replace(view, run=replace(view.run, num_audits=0)))
    assert scene.node.num_reads == 0
    assert list(tracker.audits(view)) == []


async def test_rounds_are_read_again_until_their_seed_is_final(scene, tracker):
    scene.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await tracker.refresh(view_at())
    await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 1, sequence=2))
    assert ROUND in scene.node.asked[-1]
    await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 2, sequence=3))
    assert ROUND not in scene.node.asked[-1]
    assert tracker.round(ROUND) is not None


async def test_a_round_with_an_unopened_audit_is_read_however_old_its_seed(scene, tracker):
    for sequence in (1, 2):
        await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 9, sequence=sequence))
    assert ROUND in scene.node.asked[-1]


async def test_a_seed_that_a_fork_drew_anew_replaces_the_other(scene, tracker):
    await tracker.refresh(view_at())
    scene.node.rounds[ROUND] = closed_round(seed=b"t" * 32, sampled=0b10)
    view = view_at(sequence=2)
    await tracker.refresh(view)
    assert tracker.round(ROUND).seed == b"t" * 32
    assert tracker.to_open(view) == [(ROUND, 1, 0)]


async def test_a_round_that_a_fork_undid_is_forgotten(scene, tracker):
    await tracker.refresh(view_at())
    await tracker.refresh(view_at(round_=ROUND, sequence=2))
    assert tracker.round(ROUND) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": RoundFlag(0)},
        {"seed_status": SeedStatus.PENDING, "freeze_clock": NONE},
        {"seed_status": SeedStatus.RETARGETED, "freeze_clock": NONE},
    ],
)
async def test_a_round_is_unknown_until_it_is_closed_and_its_seed_decided(scene, tracker, changes):
    scene.node.rounds[ROUND] = closed_round(**changes)
    await tracker.refresh(view_at())
    assert tracker.round(ROUND) is None
    assert tracker.to_open(view_at()) == []


async def test_what_the_seed_asks_for_is_opened_once_and_in_time(scene, tracker):
    await tracker.refresh(view_at())
    assert tracker.to_open(view_at()) == [WORK]
    end = FROZEN_AT + PARAMS.openings_slots
    assert tracker.to_open(view_at(end)) == [WORK]
    assert tracker.to_open(view_at(end + 1)) == []
    scene.node.audits = [audit_view(AuditStage.REQUESTED)]
    await tracker.refresh(view_at(sequence=2))
    assert tracker.to_open(view_at()) == [WORK], "paid in advance, not opened yet"
    scene.node.audits = [audit_view(AuditStage.OPENINGS)]
    await tracker.refresh(view_at(sequence=3))
    assert tracker.to_open(view_at()) == []


async def test_an_audit_that_is_over_is_not_opened_again(scene, tracker):
    scene.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await tracker.refresh(view_at())
    assert tracker.to_open(view_at()) == []


def test_only_included_payloads_are_asked_for():
    assert asked_for(closed_round(sampled=0b110, requested=0b1000, included=0b1010)) == (1, 3)


@pytest.mark.parametrize(("eligible", "expected"), [(0b1111, (0,)), (0b0111, ()), (0b1110, (0,))])
def test_without_three_other_witnesses_nobody_is_asked(eligible, expected):
    assert asked_for(closed_round(sampled=0b1, eligible=eligible)) == expected


async def test_work_is_done_with_when_no_fork_can_ask_for_it_any_more(scene, tracker):
    last = FROZEN_AT + PARAMS.openings_slots + FORK_SLOTS
    assert not tracker.is_done(ROUND, INDEX, view_at()), "the round was not read yet"
    assert tracker.is_done(ROUND, INDEX, view_at(round_=ROUND + PARAMS.ring + 1))
    await tracker.refresh(view_at())
    assert not tracker.is_done(ROUND, INDEX, view_at(last))
    assert tracker.is_done(ROUND, INDEX, view_at(last + 1))
    scene.node.audits = [audit_view()]
    await tracker.refresh(view_at(sequence=2))
    assert not tracker.is_done(ROUND, INDEX, view_at(last + 1)), "its audit is open"


async def test_what_was_refused_waits_and_holds_up_nothing_else(scene, tracker):
    view = view_at()
    tracker.refuse(WORK, "audit_opened", view)
    assert not tracker.may_try(WORK, "audit_opened", view)
    assert tracker.may_try(WORK, "openings_posted", view)
    assert tracker.may_try((ROUND, 1, 0), "audit_opened", view)
    assert not tracker.may_try(WORK, "audit_opened", view_at(view.slot + PATIENCE_SLOTS - 1))
    assert tracker.may_try(WORK, "audit_opened", view_at(view.slot + PATIENCE_SLOTS))


async def test_refusals_are_forgotten_when_they_are_old(scene, tracker):
    for number in range(100):
        tracker.refuse((number, 0, 0), "audit_heard", view_at(FROZEN_AT + number))
    assert len(tracker._refused) == PATIENCE_SLOTS


async def test_changes_are_told_and_nothing_twice(scene, tracker):
    scene.node.audits = [audit_view()]
    for sequence in (1, 2):
        await tracker.refresh(view_at(sequence=sequence))
    scene.node.audits = [audit_view(AuditStage.SETTLED, outcome=1)]
    await tracker.refresh(view_at(sequence=3))
    scene.node.audits = []
    await tracker.refresh(view_at(sequence=4))
    told = [(event["stage"], event["outcome"]) for event in scene.named("audit_changed")]
    assert told == [("COMMIT", 0), ("SETTLED", 1)]
    (closed,) = scene.named("audit_closed")
    assert (closed["round"], closed["target"], closed["kind"]) == (*WORK[:2], "WORK")


async def test_the_stage_shown_is_that_of_the_slot(scene, tracker):
    scene.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    (before,) = tracker.audits(view_at(FROZEN_AT + 60))
    (after,) = tracker.audits(view_at(FROZEN_AT + 61))
    assert (before.stage, after.stage) == (AuditStage.COMMIT, AuditStage.REVEAL)
    assert tracker.held_rounds == {ROUND}


async def test_a_pause_stops_the_windows(scene, tracker):
    scene.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    paused = view_at(FROZEN_AT + 500, paused_at_slot=FROZEN_AT + 50)
    (during,) = tracker.audits(paused)
    assert during.stage is AuditStage.COMMIT
    resumed = view_at(FROZEN_AT + 510, pause_total_slots=450)
    (after,) = tracker.audits(resumed)
    assert after.stage is AuditStage.COMMIT
    assert tracker.to_open(resumed) == []
