"""The display: every number of a board, in any state of a run."""

import io

from rich.console import Console

from troth_client.telemetry.board import Board
from troth_client.telemetry.display import draw, headline

PARAMETERS = 656_256


def text(board):
    console = Console(file=io.StringIO(), width=120)
    console.print(draw(board, PARAMETERS))
    return console.file.getvalue()


def training():
    board = Board()
    events = [
        {"event": "run_created", "run": "Run1", "rounds": 40, "fee": 95_000},
        {"event": "trained", "participant": "trainer-0", "round": 0, "loss_micro": 5_500_000},
        {"event": "encoded", "participant": "trainer-0", "round": 0, "payload_bytes": 9_216},
        {"event": "committed", "participant": "trainer-0", "round": 0, "slot": 77, "fee": 5_000},
        {"event": "gathered", "participant": "trainer-0", "round": 0},
    ]
    for event in events:
        board.take(event)
    return board


def test_data_preparation_has_a_bar():
    board = Board()
    assert "setting up" in text(board)
    board.take({"event": "data_progress", "done": 2_500_000, "total": 12_000_000})
    shown = text(board)
    assert "preparing data: 2.5 of 12.0 MB" in shown
    assert "━" in shown


def test_round_phase_loss_bytes_fees_and_peers_are_shown():
    board = training()
    shown = text(board)
    for part in ("round 0 of 40", "attest", "slot 77", "trainer-0", "5.500", "9.2 kB", "1/142"):
        assert part in shown, part
    assert "0.000100 SOL" in shown
    assert "1 participants" in shown
    board.take({"event": "round_closed", "participant": "trainer-0", "round": 0, "own": True})
    assert "round 1 of 40" in text(board)
    assert "loss 5.500 → 5.500" in text(board)


def test_a_failure_is_shown_in_place_of_the_state():
    board = training()
    board.take({"event": "failed", "participant": "trainer-0", "reason": "the disk is full"})
    assert "the disk is full" in text(board)


def test_the_line_for_a_pipe_changes_only_when_a_round_closes():
    board = training()
    waiting = headline(board, PARAMETERS)
    assert "waiting for 40 rounds" in waiting
    board.take({"event": "attested", "participant": "trainer-0", "round": 0, "fee": 5_000})
    assert headline(board, PARAMETERS) == waiting
    board.take({"event": "round_closed", "participant": "trainer-0", "round": 0, "own": True})
    line = headline(board, PARAMETERS)
    assert line == (
        "round 1 of 40: training loss 5.500, payload 9,216 bytes (1/142 of dense), 1 participants"
    )
    board.take({"event": "trained", "participant": "trainer-0", "round": 1, "loss_micro": 1})
    assert headline(board, PARAMETERS) == line
