"""The tracker: asks when something may be new, waits for what may be taken back, is patient."""

import asyncio
from dataclasses import replace

import pytest
from support.audit_driver import INDEX, closed_round, settle
from support.audit_node import FROZEN_AT, ROUND, view_at
from support.audit_views import STAGE_END, audit_view
from support.views import PARAMS

from troth_client.state.audit_tracker import (
    FORK_SLOTS,
    PATIENCE_SLOTS,
    RELIST_SLOTS,
    REREAD_SLOTS,
    asked_for,
)
from troth_coordinator.chain.errors import RpcTimeoutError
from troth_coordinator.rules.audit_view import AuditStage
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import RoundFlag, SeedStatus

WORK, OTHER = (ROUND, INDEX, 0), (ROUND, 1, 0)


@pytest.fixture
def tracker(driver):
    return driver.tracker


async def test_nothing_is_asked_while_nothing_has_changed(driver, tracker):
    driver.node.rounds = {number: closed_round(number) for number in range(ROUND + 2)}
    for slot in range(FROZEN_AT + 1, FROZEN_AT + 1 + RELIST_SLOTS):
        await tracker.refresh(view_at(slot))
    assert len(driver.node.asked) == 1
    await tracker.refresh(view_at(FROZEN_AT + 1 + RELIST_SLOTS))
    assert len(driver.node.asked) == 2


async def test_a_node_that_lags_behind_the_view_is_asked_again_soon(driver, tracker):
    driver.node.rounds = {number: closed_round(number) for number in range(ROUND + 2)}
    driver.node.view = view_at(sequence=6)
    for slot in range(FROZEN_AT + 1, FROZEN_AT + 1 + REREAD_SLOTS):
        await tracker.refresh(view_at(slot, sequence=7))
    assert len(driver.node.asked) == 1
    await tracker.refresh(view_at(FROZEN_AT + 1 + REREAD_SLOTS, sequence=7))
    assert len(driver.node.asked) == 2


async def test_settled_audits_are_not_read_again_for_every_event(driver, tracker):
    """They stay open for cases, hundreds of them in a long run."""
    settled = audit_view(AuditStage.SETTLED, target=1)
    driver.node.audits = [audit_view(), settled]
    await tracker.refresh(view_at())
    assert driver.node.num_reads == 1
    for sequence in range(2, 12):
        await tracker.refresh(view_at(sequence=sequence))
    assert driver.node.num_reads == 1
    assert driver.node.asked_audits[-1] == [WORK]


@pytest.mark.parametrize(
    "event",
    ["it closes", "a case opens about it", "another opens", "its time is over"],
)
async def test_what_happens_to_a_settled_audit_is_seen_at_once(driver, tracker, event):
    settled = audit_view(AuditStage.SETTLED, target=1)
    other = audit_view(AuditStage.ACCUSED, target=1)
    driver.node.audits = [audit_view(), settled]
    await tracker.refresh(view_at())
    view = view_at(sequence=2)
    if event == "it closes":
        driver.node.audits = [audit_view()]
    elif event == "a case opens about it":
        driver.node.audits = [audit_view(), other]
        driver.node.view = view_at(total_bonds=5)
    elif event == "another opens":
        driver.node.audits.append(audit_view(target=2))
    else:
        driver.node.audits = [audit_view(), other]
        view = view_at(settled.stage_end + 1, sequence=2)
    await tracker.refresh(view)
    assert {audit.key: audit.stage for audit in tracker.audits(view_at())} == {
        audit.key: audit.stage for audit in driver.node.audits
    }


async def test_a_list_that_is_too_short_closes_no_audit_and_is_asked_for_again(driver, tracker):
    """An RPC node whose index of accounts is not whole lists fewer than the run counts."""
    settled = audit_view(AuditStage.SETTLED, target=1, stage_end=10**6)
    driver.node.audits = [audit_view(), settled]
    await tracker.refresh(view_at())
    whole = driver.node.find_audits

    async def short(run):
        return [audit for audit in await whole(run) if audit.target != 1]

    driver.node.find_audits = short
    late = FROZEN_AT + 2 + RELIST_SLOTS
    for slot in range(late, late + REREAD_SLOTS + 1):
        await tracker.refresh(view_at(slot))
    assert tracker.find(ROUND, 1) is not None
    assert driver.node.num_reads == 3, "the first, the short one, and again after a while"


async def test_when_a_case_ends_all_audits_are_listed(driver, tracker):
    """Another may have opened at once, with the same bond."""
    driver.node.audits = [
        audit_view(AuditStage.CASE_REVEAL),
        audit_view(AuditStage.SETTLED, target=1),
    ]
    await tracker.refresh(view_at())
    driver.node.audits = [
        audit_view(AuditStage.DECIDED),
        audit_view(AuditStage.ACCUSED, target=1),
    ]
    await tracker.refresh(view_at(sequence=2))
    assert tracker.find(ROUND, 1).stage is AuditStage.ACCUSED


async def test_an_audit_that_the_round_shows_is_read_without_a_list(driver, tracker):
    """Its address follows from the round before, which every view holds."""
    driver.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    driver.node.audits.append(audit_view(target=1, round=ROUND + 1))
    before = closed_round(ROUND + 1, audited=0b10)
    await tracker.refresh(replace(view_at(sequence=2), previous_round=before))
    assert driver.node.num_reads == 1
    assert tracker.find(ROUND + 1, 1) is not None


async def test_every_event_of_the_run_is_a_reason_to_ask_also_on_another_fork(driver, tracker):
    await tracker.refresh(view_at())
    await tracker.refresh(view_at(sequence=2))
    assert len(driver.node.asked) == 2
    await tracker.refresh(view_at(sequence=2, chain_hash=b"f" * 32))
    assert len(driver.node.asked) == 3


async def test_no_audit_is_looked_for_where_the_run_has_none(driver, tracker):
    view = view_at()
    await tracker.refresh(replace(view, run=replace(view.run, num_audits=0)))
    assert driver.node.num_reads == 0
    assert list(tracker.audits(view)) == []


async def test_rounds_are_read_again_until_their_seed_is_final(driver, tracker):
    driver.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await tracker.refresh(view_at())
    await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 1, sequence=2))
    assert ROUND in driver.node.asked[-1]
    await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 2, sequence=3))
    assert ROUND not in driver.node.asked[-1]
    assert tracker.round(ROUND) is not None


async def test_a_round_with_an_unopened_audit_is_read_however_old_its_seed(driver, tracker):
    for sequence in (1, 2):
        await tracker.refresh(view_at(FROZEN_AT + FORK_SLOTS + 9, sequence=sequence))
    assert ROUND in driver.node.asked[-1]


async def test_a_seed_that_a_fork_drew_anew_replaces_the_other(driver, tracker):
    await tracker.refresh(view_at())
    driver.node.rounds[ROUND] = closed_round(seed=b"t" * 32, sampled=0b10)
    view = view_at(sequence=2)
    await tracker.refresh(view)
    assert tracker.round(ROUND).seed == b"t" * 32
    (asked,) = tracker.to_open(view)
    assert asked == OTHER


async def test_a_round_that_a_fork_undid_is_forgotten(driver, tracker):
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
async def test_a_round_is_unknown_until_it_is_closed_and_its_seed_decided(driver, tracker, changes):
    driver.node.rounds[ROUND] = closed_round(**changes)
    await tracker.refresh(view_at())
    assert tracker.round(ROUND) is None
    assert tracker.to_open(view_at()) == []


async def test_what_the_seed_asks_for_is_opened_once_and_in_time(driver, tracker):
    await tracker.refresh(view_at())
    assert tracker.to_open(view_at()) == [WORK]
    end = FROZEN_AT + PARAMS.openings_slots
    assert tracker.to_open(view_at(end)) == [WORK]
    assert tracker.to_open(view_at(end + 1)) == []
    driver.node.audits = [audit_view(AuditStage.REQUESTED)]
    await tracker.refresh(view_at(sequence=2))
    assert tracker.to_open(view_at()) == [WORK], "paid in advance, not opened yet"
    driver.node.audits = [audit_view(AuditStage.OPENINGS)]
    await tracker.refresh(view_at(sequence=3))
    assert tracker.to_open(view_at()) == []


async def test_an_audit_that_is_over_is_not_opened_again(driver, tracker):
    driver.node.rounds[ROUND] = closed_round(audited=1 << INDEX)
    await tracker.refresh(view_at())
    assert tracker.to_open(view_at()) == []


def test_only_included_payloads_are_asked_for():
    assert list(asked_for(closed_round(sampled=0b110, requested=0b1000, included=0b1010))) == [1, 3]


@pytest.mark.parametrize(("eligible", "expected"), [(0b1111, [0]), (0b0111, []), (0b1110, [0])])
def test_without_three_other_witnesses_nobody_is_asked(eligible, expected):
    assert list(asked_for(closed_round(sampled=0b1, eligible=eligible))) == expected


async def test_work_is_done_with_when_no_fork_can_ask_for_it_any_more(driver, tracker):
    last = FROZEN_AT + PARAMS.openings_slots + FORK_SLOTS
    assert not tracker.is_done(ROUND, INDEX, view_at()), "the round was not read yet"
    assert tracker.is_done(ROUND, INDEX, view_at(round_=ROUND + PARAMS.ring + 1))
    await tracker.refresh(view_at())
    assert not tracker.is_done(ROUND, INDEX, view_at(last))
    assert tracker.is_done(ROUND, INDEX, view_at(last + 1))
    driver.node.audits = [audit_view()]
    await tracker.refresh(view_at(sequence=2))
    assert not tracker.is_done(ROUND, INDEX, view_at(last + 1)), "its audit is open"


async def test_what_was_refused_waits_and_holds_up_nothing_else(driver, tracker):
    view = view_at()
    tracker.refuse(WORK, "audit_opened", view)
    assert not tracker.may_try(WORK, "audit_opened", view)
    assert tracker.may_try(WORK, "openings_posted", view)
    assert tracker.may_try((ROUND, 1, 0), "audit_opened", view)
    assert not tracker.may_try(WORK, "audit_opened", view_at(view.slot + PATIENCE_SLOTS - 1))
    assert tracker.may_try(WORK, "audit_opened", view_at(view.slot + PATIENCE_SLOTS))


async def test_refusals_are_forgotten_when_they_are_old(driver, tracker):
    for number in range(100):
        view = view_at(FROZEN_AT + number)
        tracker.refuse((number, 0, 0), "audit_heard", view)
        await tracker.refresh(view)
    assert len(tracker._rests) == PATIENCE_SLOTS


async def test_what_landed_is_not_sent_again_at_a_look_from_before(driver, tracker):
    """The look began, then the step landed: what it shows is older than what we know."""
    tracker.landed(WORK, "audit_opened", FROZEN_AT + 1)
    assert not tracker.may_try(WORK, "audit_opened", view_at(FROZEN_AT + 1))
    assert tracker.may_try(WORK, "openings_posted", view_at(FROZEN_AT + 1))
    assert tracker.may_try(WORK, "audit_opened", view_at(FROZEN_AT + 2)), "a fork may undo it"
    tracker.landed(WORK, "verdict_revealed", 10**18)
    assert tracker.may_try(WORK, "verdict_revealed", view_at(FROZEN_AT + 1)), "a made-up slot"


async def test_changes_are_told_and_nothing_twice(driver, tracker):
    driver.node.audits = [audit_view()]
    for sequence in (1, 2):
        await tracker.refresh(view_at(sequence=sequence))
    driver.node.audits = [audit_view(AuditStage.SETTLED, outcome=1)]
    await tracker.refresh(view_at(sequence=3))
    driver.node.audits = []
    await tracker.refresh(view_at(sequence=4))
    before, after = driver.named("audit_changed")
    assert before["stage"] == "COMMIT"
    assert before["outcome"] == 0
    assert after["stage"] == "SETTLED"
    assert after["outcome"] == 1
    (closed,) = driver.named("audit_closed")
    assert closed["round"] == ROUND
    assert closed["target"] == INDEX
    assert closed["kind"] == "WORK"


async def test_what_a_conviction_took_includes_what_the_jurors_got_of_it(driver, tracker):
    """A further conviction takes one reward, all of which the jurors may get."""
    driver.node.audits = [
        audit_view(stage=AuditStage.DECIDED, escrow_unvested=1_000, juror_fees=1_000)
    ]
    await tracker.refresh(view_at())
    (event,) = driver.named("audit_changed")
    assert event["taken"] == 1_000
    assert event["juror_fees"] == 1_000


async def test_the_stage_shown_is_that_of_the_slot(driver, tracker):
    driver.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    (before,) = tracker.audits(view_at(STAGE_END))
    (after,) = tracker.audits(view_at(STAGE_END + 1))
    assert before.stage is AuditStage.COMMIT
    assert after.stage is AuditStage.REVEAL
    assert tracker.held_rounds == {ROUND}


@pytest.mark.parametrize("stage", AuditStage)
async def test_the_rounds_of_settled_audits_are_left_to_the_ring(driver, tracker, stage):
    """A case about one is refused once the ring has dropped its round; an open case is judged."""
    driver.node.audits = [audit_view(stage=stage)]
    await tracker.refresh(view_at())
    is_over = stage in (AuditStage.SETTLED, AuditStage.DECIDED)
    assert tracker.held_rounds == (set() if is_over else {ROUND})


async def test_a_pause_stops_the_windows(driver, tracker):
    driver.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    paused = view_at(FROZEN_AT + 500, paused_at_slot=FROZEN_AT + 50)
    (during,) = tracker.audits(paused)
    assert during.stage is AuditStage.COMMIT
    resumed = view_at(FROZEN_AT + 510, pause_total_slots=450)
    (after,) = tracker.audits(resumed)
    assert after.stage is AuditStage.COMMIT
    assert tracker.to_open(resumed) == []


async def test_every_task_that_waits_gets_the_next_view(driver, tracker):
    """A seat, a juror and housekeeping wait at once; one look is enough for all."""
    await tracker.refresh(view_at())
    waiting = [driver.start(tracker.next()) for _ in range(3)]
    await settle()
    assert not any(task.done() for task in waiting)
    later = view_at(FROZEN_AT + 2)
    await tracker.refresh(later)
    for task in waiting:
        assert await task is later
    assert len(driver.node.asked) == 1


async def test_a_search_that_ends_wakes_its_judge_before_the_next_look(driver, tracker):
    await tracker.refresh(view_at())
    search = driver.start(asyncio.sleep(0))
    assert await tracker.next(search) == view_at()
    assert search.done()


async def test_a_look_that_fails_wakes_nobody_and_the_next_one_does(driver, tracker):
    await tracker.refresh(view_at())
    waiting = driver.start(tracker.next())
    driver.node.read_failure = RpcTimeoutError("http://node", "nothing")
    with pytest.raises(RpcTimeoutError):
        await tracker.refresh(view_at(FROZEN_AT + 2, sequence=2))
    await settle()
    assert not waiting.done()
    driver.node.read_failure = None
    again = view_at(FROZEN_AT + 3, sequence=2)
    await tracker.refresh(again)
    assert await waiting is again


async def test_two_refreshes_at_once_read_one_after_the_other(driver, tracker):
    """The task of audits and the task of rounds both refresh at the end of a run."""
    await asyncio.gather(tracker.refresh(view_at()), tracker.refresh(view_at()))
    assert len(driver.node.asked) == 1, "the second finds that nothing has changed"


def test_a_view_is_asked_for_before_anything_was_read(driver):
    with pytest.raises(RuntimeError, match="refresh"):
        _ = driver.tracker.view


async def test_our_own_step_is_read_once_and_not_again_when_the_view_catches_up(driver, tracker):
    driver.node.rounds = {number: closed_round(number) for number in range(ROUND + 2)}
    driver.node.audits = [audit_view()]
    await tracker.refresh(view_at())
    driver.node.view = view_at(sequence=2)
    tracker.landed(WORK, "verdict_committed", FROZEN_AT + 1)
    for slot in range(FROZEN_AT + 2, FROZEN_AT + 6):
        await tracker.refresh(view_at(slot))
    assert len(driver.node.asked) == 2
    await tracker.refresh(view_at(FROZEN_AT + 6, sequence=2))
    assert len(driver.node.asked) == 2
    await tracker.refresh(view_at(FROZEN_AT + 7, sequence=3))
    assert len(driver.node.asked) == 3
