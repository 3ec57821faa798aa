"""Duties in an audit or case, slot by slot: windows, early ends, pauses, requests."""

from dataclasses import replace

import pytest
from support.audit_views import audit_view, juror, seat
from support.views import PARAMS, round_view, run_view

from troth_coordinator.rules.audit_view import AuditStage, SeatFlag
from troth_coordinator.rules.audits import (
    Act,
    Step,
    acting_seats,
    due_step,
    juror_duty,
    now,
    run_clock,
    seat_duty,
)
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.view import RoundFlag, SeedStatus

BOTH = SeatFlag.COMMITTED | SeatFlag.REVEALED
END = 1_060
TARGET = 5
RUN = run_view(round=11)


def test_the_run_clock_stands_still_in_a_pause_and_goes_on_after_it():
    assert run_clock(RUN, 500) == 500
    paused = run_view(paused_at_slot=400, pause_total_slots=50)
    assert [run_clock(paused, slot) for slot in (399, 400, 401, 9_999)] == [349, 350, 350, 350]
    assert run_clock(run_view(pause_total_slots=120), 500) == 380
    assert run_clock(run_view(pause_total_slots=120), 100) == 0


@pytest.mark.parametrize(
    ("stage", "following", "window"),
    [
        (AuditStage.COMMIT, AuditStage.REVEAL, PARAMS.verdict_reveal_slots),
        (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL, PARAMS.jury_reveal_slots),
    ],
)
def test_a_commit_window_that_ended_counts_as_reveal(stage, following, window):
    audit = audit_view(stage, stage_end=END)
    assert now(audit, PARAMS, END) == audit, "its last slot belongs to it"
    later = now(audit, PARAMS, END + 1)
    assert later.stage == following
    assert later.stage_end == END + window


@pytest.mark.parametrize(
    "stage",
    [s for s in AuditStage if s not in (AuditStage.COMMIT, AuditStage.CASE_COMMIT)],
)
def test_every_other_stage_waits_for_a_step(stage):
    audit = audit_view(stage, stage_end=END)
    assert now(audit, PARAMS, 10**6) == audit


def test_after_an_extension_only_the_added_seats_act():
    audit = audit_view(num_seats=5)
    assert [seat.index for seat in acting_seats(audit)] == [1, 2, 3, 4, 0]
    extended = replace(audit, first_acting=3)
    assert [seat.index for seat in acting_seats(extended)] == [4, 0]
    assert seat_duty(extended, 1, END) is None
    assert seat_duty(extended, 4, END) is Act.COMMIT


def test_seats_in_reserve_owe_nothing():
    assert seat_duty(audit_view(), 4, END) is None
    assert seat_duty(audit_view(), 9, END) is None


@pytest.mark.parametrize(
    ("flags", "in_commit", "in_reveal"),
    [(0, Act.COMMIT, None), (SeatFlag.COMMITTED, None, Act.REVEAL), (BOTH, None, None)],
)
def test_a_seat_commits_and_then_reveals_each_in_its_window(flags, in_commit, in_reveal):
    seats = (seat(1, flags), *audit_view().seats[1:])
    for stage, act in ((AuditStage.COMMIT, in_commit), (AuditStage.REVEAL, in_reveal)):
        audit = audit_view(stage, seats=seats)
        assert seat_duty(audit, 1, END) is act
        assert seat_duty(audit, 1, END + 1) is None, "too late"
    for stage in set(AuditStage) - {AuditStage.COMMIT, AuditStage.REVEAL}:
        assert seat_duty(audit_view(stage, seats=seats), 1, END) is None


@pytest.mark.parametrize(
    ("flags", "in_commit", "in_reveal"),
    [(0, Act.COMMIT, None), (SeatFlag.COMMITTED, None, Act.REVEAL), (BOTH, None, None)],
)
def test_a_juror_does_so_in_the_windows_of_the_case(flags, in_commit, in_reveal):
    jurors = (juror(2, flags), juror(3))
    for stage, act in ((AuditStage.CASE_COMMIT, in_commit), (AuditStage.CASE_REVEAL, in_reveal)):
        audit = audit_view(stage, jurors=jurors)
        assert juror_duty(audit, 2, END) is act
        assert juror_duty(audit, 2, END + 1) is None
        assert juror_duty(audit, 4, END) is None


def step_at(audit, slot, round_=None, run=RUN):
    return due_step(audit, run, slot, round_)


def test_openings_that_are_late_are_settled():
    audit = audit_view(AuditStage.OPENINGS)
    assert step_at(audit, END) is None
    assert step_at(audit, END + 1) is Step.END_UNOPENED


@pytest.mark.parametrize(
    ("stage", "places", "step"),
    [
        (AuditStage.REVEAL, "seats", Step.HEAR),
        (AuditStage.CASE_REVEAL, "jurors", Step.DECIDE),
    ],
)
def test_reveals_end_early_when_all_who_committed_have_shown(stage, places, step):
    make = seat if places == "seats" else juror
    waiting = (make(1, BOTH), make(2, SeatFlag.COMMITTED), make(3))
    shown = (make(1, BOTH), make(2, BOTH), make(3))
    assert step_at(audit_view(stage, **{places: waiting}), END) is None
    assert step_at(audit_view(stage, **{places: waiting}), END + 1) is step
    assert step_at(audit_view(stage, **{places: shown}), END) is step


def test_a_jury_is_drawn_after_its_seed_slot_also_in_a_pause():
    audit = audit_view(AuditStage.ACCUSED, case_seed_slot=2_000)
    paused = run_view(paused_at_slot=1_500)
    assert step_at(audit, 2_000, run=paused) is None
    assert step_at(audit, 2_001, run=paused) is Step.DRAW


def test_what_is_settled_is_released_after_its_windows():
    settled = audit_view(AuditStage.SETTLED)
    assert step_at(settled, END) is None
    assert step_at(settled, END + 1) is Step.RELEASE
    decided = audit_view(AuditStage.DECIDED, case_end=END + 100)
    assert step_at(decided, END + 100) is None
    assert step_at(decided, END + 101) is Step.RELEASE


@pytest.mark.parametrize("stage", [AuditStage.COMMIT, AuditStage.CASE_COMMIT])
def test_nothing_is_due_while_verdicts_are_committed(stage):
    assert step_at(audit_view(stage), 10**6) is None


def frozen(**changes):
    about = {
        "flags": RoundFlag.CLOSED,
        "seed_status": SeedStatus.FROZEN,
        "freeze_clock": 1_000,
        "included": 1 << TARGET,
    }
    return round_view(round=9, **(about | changes))


@pytest.mark.parametrize(
    ("round_", "slot", "expected"),
    [
        (frozen(), 1_000 + PARAMS.openings_slots, None),
        (frozen(), 1_001 + PARAMS.openings_slots, Step.FORGO),
        (frozen(included=0), 1_001, Step.FORGO),
        (frozen(seed_status=SeedStatus.LOST, freeze_clock=NONE), 1_001, Step.FORGO),
        (frozen(seed_status=SeedStatus.NONE, freeze_clock=NONE), 1_001, Step.FORGO),
        (None, 10**6, None),
    ],
)
def test_a_request_is_given_back_when_it_can_come_to_nothing_any_more(round_, slot, expected):
    assert step_at(audit_view(AuditStage.REQUESTED), slot, round_) is expected


def test_a_request_of_a_round_that_left_the_ring_is_given_back():
    audit = audit_view(AuditStage.REQUESTED)
    assert step_at(audit, 10**6, run=run_view(round=9 + PARAMS.ring - 1)) is None
    assert step_at(audit, 10**6, run=run_view(round=9 + PARAMS.ring)) is Step.FORGO
