"""A board is the same whichever log is folded first; only the last word of a participant counts."""

from itertools import permutations

import pytest

from troth_client.telemetry.board import Board

DEMO = [
    {"time": 0.0, "event": "data_progress", "done": 5, "total": 10},
    {"time": 0.1, "event": "run_created", "run": "Run1", "rounds": 4, "fee": 100},
    {"time": 9.0, "event": "killed", "participant": "b", "round": 1},
]
FIRST = [
    {"time": 1.0, "event": "joined", "participant": "a", "index": 0, "fee": 7},
    {"time": 1.1, "event": "phase", "participant": "a", "phase": "WARMUP", "round": 0, "slot": 10},
    {"time": 2.0, "event": "trained", "participant": "a", "round": 0, "loss_micro": 4_000_000},
    {"time": 2.1, "event": "encoded", "participant": "a", "round": 0, "payload_bytes": 640},
    {"time": 2.2, "event": "committed", "participant": "a", "round": 0, "slot": 20, "fee": 5_000},
    {"time": 4.0, "event": "gathered", "participant": "a", "round": 0, "held": 2},
    {
        "time": 5.0,
        "event": "round_closed",
        "participant": "a",
        "round": 0,
        "own": True,
        "root": "r1",
    },
    {"time": 6.0, "event": "trained", "participant": "a", "round": 1, "loss_micro": 3_000_000},
    {
        "time": 9.5,
        "event": "round_closed",
        "participant": "a",
        "round": 1,
        "own": True,
        "root": "r2",
    },
    {"time": 9.9, "event": "ended", "participant": "a", "root": "r2", "finished": True},
]
SECOND = [
    {"time": 1.5, "event": "joined", "participant": "b", "index": 1, "fee": 8},
    {"time": 3.0, "event": "trained", "participant": "b", "round": 0, "loss_micro": 2_000_000},
    {
        "time": 5.1,
        "event": "round_closed",
        "participant": "b",
        "round": 0,
        "own": False,
        "root": "r1",
    },
    {"time": 6.5, "event": "trained", "participant": "b", "round": 1, "loss_micro": 1_000_000},
    {"time": 6.6, "event": "wrote_a_novel", "participant": "b"},
]


def board(logs) -> Board:
    made = Board()
    for log in logs:
        for event in log:
            made.take(event)
    return made


@pytest.mark.parametrize("logs", list(permutations([DEMO, FIRST, SECOND])))
def test_the_order_of_the_logs_changes_nothing(logs):
    made = board(logs)
    assert made == board([DEMO, FIRST, SECOND])
    assert made.run == "Run1"
    assert made.num_rounds == 4
    assert made.round == 2
    assert made.slot == 20
    assert made.fees == 100 + 7 + 8 + 5_000
    assert made.mean_losses() == [3.0, 2.0]
    assert {name: line.state for name, line in made.participants.items()} == {
        "a": "finished",
        "b": "killed",
    }
    assert made.phase == "COMMIT"
    assert made.participants["a"].num_included == 2
    assert made.participants["b"].num_included == 0
    assert made.participants["a"].root == "r2"
    assert made.participants["a"].payload_bytes == 640


def test_a_loss_is_shown_when_its_round_has_closed():
    made = Board()
    made.take({"event": "trained", "participant": "a", "round": 0, "loss_micro": 5_000_000})
    assert made.mean_losses() == []
    made.take({"event": "round_closed", "participant": "a", "round": 0})
    assert made.mean_losses() == [5.0]


def test_a_gradient_computed_again_after_a_restart_counts_once():
    made = Board()
    for loss in (6_000_000, 4_000_000):
        made.take({"event": "trained", "participant": "a", "round": 0, "loss_micro": loss})
    made.take({"event": "round_closed", "participant": "a", "round": 0})
    assert made.mean_losses() == [4.0]


def test_a_killed_trainer_that_comes_back_is_no_longer_killed():
    made = board([DEMO, SECOND])
    assert made.state_of("b") == "killed"
    made.take({"time": 12.0, "event": "joined", "participant": "b", "index": 1})
    assert made.state_of("b") == "joined"


def test_who_has_said_nothing_is_starting():
    assert Board().state_of("nobody") == "starting"


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        ({"reason": "no room", "kind": "DiskFullError"}, "no room"),
        ({"reason": "", "kind": "KeyboardInterrupt"}, "KeyboardInterrupt"),
        ({}, "no reason given"),
    ],
)
def test_a_failure_keeps_its_reason(event, failure):
    made = Board()
    made.take({"event": "failed", "participant": "a", **event})
    assert made.state_of("a") == "failed"
    assert made.participants["a"].failure == failure


@pytest.mark.parametrize("fields", [{"finished": True}, {"finished": False}, {}])
def test_the_end_says_whether_the_run_was_over(fields):
    made = Board()
    made.take({"event": "ended", "participant": "a", "root": "r", **fields})
    assert made.state_of("a") == ("finished" if fields.get("finished") else "stopped")


def test_a_void_round_counts_as_closed_and_is_named():
    made = Board(num_rounds=1)
    made.take({"event": "round_closed", "participant": "a", "round": 0, "void": True})
    assert made.state_of("a") == "void round"
    assert made.num_closed == 1


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ({"event": "lagging", "round": 3, "missing": [1]}, "LAGGING: a payload is missing"),
        ({"event": "recovering", "round": 3}, "LAGGING: needs a checkpoint"),
        ({"event": "restoring", "round": 10}, "fetching a checkpoint"),
        ({"event": "fetching", "done_bytes": 25, "total_bytes": 100}, "fetching 25 %"),
        ({"event": "root_differs", "round": 3}, "another root: replaying"),
        ({"event": "healing", "round": 3}, "HEALING: fetching pieces"),
        ({"event": "healed", "round": 3}, "healed"),
        ({"event": "arrived", "round": 12}, "ready to join"),
    ],
    ids=lambda value: value["event"] if isinstance(value, dict) else "",
)
def test_a_participant_that_catches_up_says_what_it_does(event, state):
    made = board([FIRST[:2], [{"time": 9.0, "participant": "a"} | event]])
    assert made.participants["a"].state == state
