"""A demo that cannot succeed any more is told apart from a slow one."""

from dataclasses import replace
from pathlib import Path

import pytest

from troth_cli.demo.errors import NoProgressError, TrainerFailedError
from troth_cli.demo.options import DemoOptions
from troth_cli.demo.progress import (
    MIN_PATIENCE_SECONDS,
    START_SECONDS,
    Watch,
    ending_seconds,
    patience_seconds,
)
from troth_client.telemetry.board import Board

FOLDER = Path("runs/demo")


class Stopwatch:
    def __init__(self):
        self.seconds = 1_000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def stopwatch():
    return Stopwatch()


def watch(stopwatch):
    return Watch(FOLDER, 60.0, 90.0, stopwatch)


def closed(board, round_):
    board.take({"event": "round_closed", "participant": "trainer-0", "round": round_})


def test_rounds_that_close_keep_it_quiet_for_ever(stopwatch):
    board, one = Board(), watch(stopwatch)
    for round_ in range(50):
        stopwatch.seconds += 59.0
        closed(board, round_)
        one.check(board, {"trainer-0": None})


def test_no_closed_round_for_too_long_is_an_error_with_the_states(stopwatch):
    board, one = Board(), watch(stopwatch)
    closed(board, 6)
    board.take(
        {"event": "phase", "participant": "trainer-1", "phase": "WAITING_FOR_MEMBERS", "round": 7}
    )
    one.check(board, {"trainer-0": None, "trainer-1": None})
    stopwatch.seconds += 60.0
    one.check(board, {"trainer-0": None, "trainer-1": None})
    stopwatch.seconds += 1.0
    with pytest.raises(NoProgressError) as caught:
        one.check(board, {"trainer-0": None, "trainer-1": None})
    assert "none for 61 s" in caught.value.found
    assert "round 7" in caught.value.found
    assert "trainer-1 waiting for members" in caught.value.found
    assert str(FOLDER) in caught.value.next_step


def test_other_events_are_no_progress(stopwatch):
    board, one = Board(), watch(stopwatch)
    board.take({"event": "cranked", "participant": "trainer-0", "fee": 5_000})
    one.check(board, {"trainer-0": None})
    with pytest.raises(NoProgressError):
        for _ in range(61):
            stopwatch.seconds += 1.0
            board.take({"event": "cranked", "participant": "trainer-0", "fee": 5_000})
            one.check(board, {"trainer-0": None})


def test_nobody_who_has_started_yet_is_waited_for_longer(stopwatch):
    board, one = Board(), watch(stopwatch)
    one.check(board, {"trainer-0": None})
    stopwatch.seconds += START_SECONDS
    one.check(board, {"trainer-0": None})
    stopwatch.seconds += 1.0
    with pytest.raises(NoProgressError, match="a participant to start within 300 s"):
        one.check(board, {"trainer-0": None})


def test_each_participant_that_starts_is_progress(stopwatch):
    board, one = Board(), watch(stopwatch)
    for name in ("trainer-0", "trainer-1", "witness-0"):
        board.take({"event": "computing", "participant": name})
        one.check(board, {"trainer-0": None})
        stopwatch.seconds += 59.0
    one.check(board, {"trainer-0": None})
    stopwatch.seconds += 2.0
    with pytest.raises(
        NoProgressError, match="a round to close, or an audit to go on, within 60 s"
    ):
        one.check(board, {"trainer-0": None})


def test_each_step_of_an_audit_after_the_last_round_is_progress(stopwatch):
    board, one = Board(), watch(stopwatch)
    closed(board, 4)
    of_audit = {"participant": "trainer-0", "round": 3, "target": 1}
    for event in (
        {"event": "audit_changed", "stage": "VERDICT_COMMIT"},
        {"event": "audit_changed", "stage": "SETTLED"},
        {"event": "audit_closed"},
    ):
        board.take(of_audit | event)
        one.check(board, {"trainer-0": None})
        stopwatch.seconds += 59.0
    board.take(of_audit | {"event": "audit_closed"})
    stopwatch.seconds += 2.0
    with pytest.raises(NoProgressError):
        one.check(board, {"trainer-0": None})


def test_a_trainer_that_ends_well_is_progress(stopwatch):
    board, one = Board(), watch(stopwatch)
    one.check(board, {"trainer-0": None, "trainer-1": None})
    stopwatch.seconds += 50.0
    one.check(board, {"trainer-0": 0, "trainer-1": None})
    stopwatch.seconds += 50.0
    one.check(board, {"trainer-0": 0, "trainer-1": None})


@pytest.mark.parametrize(("code", "how"), [(1, "exit code 1"), (-9, "signal 9")])
def test_a_trainer_that_fails_ends_the_demo_at_once(stopwatch, code, how):
    board = Board()
    closed(board, 2)
    board.take({"event": "failed", "participant": "trainer-1", "reason": "no such data"})
    with pytest.raises(TrainerFailedError) as caught:
        watch(stopwatch).check(board, {"trainer-0": None, "trainer-1": code})
    error = caught.value
    assert error.subject == "trainer-1"
    assert error.found == f"it ended in round 3 with {how}: no such data"
    assert str(FOLDER / "trainer-1") in error.next_step


def test_a_trainer_that_dies_without_a_reason_is_named_too(stopwatch):
    with pytest.raises(TrainerFailedError) as caught:
        watch(stopwatch).check(Board(), {"trainer-2": 1})
    assert "no reason in its event log" in caught.value.found


def test_patience_covers_three_void_rounds_and_a_halt():
    params = DemoOptions().settings().chain.to_view()
    longest = 3 * (params.commit_slots + params.attest_slots + params.close_grace_slots)
    slots = longest + params.halt_slots + params.warmup_slots
    assert patience_seconds(params, 400) == slots * 0.4
    assert patience_seconds(params, 20) == MIN_PATIENCE_SECONDS


def test_a_finished_run_has_the_longest_window_of_its_audits(stopwatch):
    params = DemoOptions().settings().chain.to_view()
    assert ending_seconds(params, 400) == patience_seconds(params, 400)
    assert ending_seconds(replace(params, appeal_slots=216_000), 400) == 86_400
    board, one = Board(), watch(stopwatch)
    closed(board, 4)
    board.take({"event": "phase", "participant": "trainer-0", "phase": "FINISHED", "round": 5})
    one.check(board, {"trainer-0": None})
    stopwatch.seconds += 90.0
    one.check(board, {"trainer-0": None})
    stopwatch.seconds += 1.0
    with pytest.raises(NoProgressError, match="within 90 s"):
        one.check(board, {"trainer-0": None})
