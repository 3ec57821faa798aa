"""No text of a stranger steers the terminal, wherever it leaves for it.

RPC nodes, endpoints, names of runs and model cards bring texts of others. Each may hold escape
sequences, C1 controls, marks that reverse the writing, and lines that look like ours.
"""

import io
import json
import os
import pty
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.disks import ending_unwritten, full_log

from troth_cli.failures import explain, show
from troth_cli.view.events import OF_A_PARTICIPANT, EventLines
from troth_cli.view.output import Facts, Grid, Output
from troth_cli.view.screen import Screen
from troth_client.errors import ClientError
from troth_client.telemetry.board import Board
from troth_client.telemetry.display import draw
from troth_client.telemetry.event_log import EventLog
from troth_client.telemetry.events import EventSinks
from troth_client.telemetry.printable import one_line, printable
from troth_coordinator.chain.errors import RpcTimeoutError

ESCAPES = {
    "clears the screen": "\x1b[2J",
    "sets the title": "\x1b]0;owned\x07",
    "one byte introducer": "\x9b31m",
    "next line of C1": "\x85",
    "reverses": "\u202egpj.exe",
    "isolates": "\u2067x\u2069",
    "overwrites": "\r",
    "own line": "\nerror: send your key to me",
    "separators": "\u2028\u2029\x0b\x0c",
    "markup": "[bold red]x[/]",
}
NOT_PRINTED = r"space left|Input/output"
HOSTILE = "a" + "".join(ESCAPES.values()) + "z"


def assert_harmless(text):
    steering = sorted({one for one in text if one != "\n" and not one.isprintable()})
    assert steering == []
    assert not [line for line in text.splitlines() if line.startswith("error: send")]


@pytest.fixture
def streams():
    return io.StringIO(), io.StringIO()


@pytest.fixture
def output(streams):
    out, err = streams
    return Output(out=out, err=err)


@pytest.mark.parametrize("form", ["text", "fact", "label of a fact", "title", "cell"])
def test_results(output, streams, form):
    blocks = {
        "text": "run " + one_line(HOSTILE),
        "fact": Facts([("endpoint", HOSTILE)]),
        "label of a fact": Facts([(HOSTILE, "value")]),
        "title": Facts([], HOSTILE),
        "cell": Grid(["name"], [[HOSTILE]], HOSTILE),
    }
    output.result({}, blocks[form])
    assert "\\x1b[2J" in streams[0].getvalue().replace("\n", "")
    assert_harmless(streams[0].getvalue())


def test_a_result_as_json_is_json_and_keeps_the_text(streams):
    Output(is_json=True, out=streams[0]).result({"endpoint": HOSTILE})
    assert json.loads(streams[0].getvalue()) == {"endpoint": HOSTILE}
    assert streams[0].getvalue().isascii()
    assert_harmless(streams[0].getvalue())


def test_notes_warnings_and_progress(output, streams):
    output.note(one_line(HOSTILE))
    output.warn(one_line(HOSTILE))
    with output.progress(HOSTILE) as report:
        report(1, 2, HOSTILE)
    assert_harmless(streams[1].getvalue())


@pytest.mark.parametrize("part", ["expected", "found", "next_step", "subject"])
def test_errors(streams, part):
    parts = {"expected": "this", "found": "that", "next_step": "it", "subject": "thing"}
    failure = explain(ClientError(**parts | {part: HOSTILE}))
    show(failure, streams[0], is_json=False)
    show(failure, streams[1], is_json=True)
    assert_harmless(streams[0].getvalue())
    assert json.loads(streams[1].getvalue())["error"][part] == HOSTILE
    assert_harmless(streams[1].getvalue())


def test_the_answer_of_an_rpc_node_begins_no_line_of_its_own(streams):
    failure = explain(RpcTimeoutError("http://node", "busy\nerror: send your key to me"))
    show(failure, streams[0], is_json=False)
    assert_harmless(streams[0].getvalue())
    assert " " * 12 + "error: send your key to me" in streams[0].getvalue()


def test_a_traceback_asked_for(cli, monkeypatch, tmp_path):
    path = tmp_path / "key\x1b[2J"
    path.write_text("x")
    done = cli("keys", "show", path, "--debug")
    assert done.code == 1
    assert "Traceback" in done.err
    assert_harmless(done.err)


def test_events_on_the_terminal(output, streams, tmp_path):
    with EventLog.open(tmp_path / "events.jsonl") as log:
        printed = EventLines(output, OF_A_PARTICIPANT)
        EventSinks(log, printed).emit("file_damaged", reason=HOSTILE)
    assert json.loads((tmp_path / "events.jsonl").read_text())["reason"] == HOSTILE
    assert len(streams[1].getvalue().splitlines()) == 1
    assert_harmless(streams[1].getvalue())


def test_the_display():
    board = Board()
    for event in (
        {"event": "run_created", "run": HOSTILE, "rounds": 3, "fee": 1},
        {"event": "trained", "participant": HOSTILE, "round": 0, "loss_micro": 1},
        {"event": "failed", "participant": HOSTILE, "reason": HOSTILE},
        {"event": "phase", "participant": HOSTILE, "phase": HOSTILE, "round": 0, "slot": 4},
    ):
        board.take(event)
    console = Console(file=io.StringIO(), width=400)
    console.print(draw(board, 1_000))
    shown = console.file.getvalue()
    assert "[bold red]" in shown, "markup of others is text"
    assert_harmless(shown)


@given(st.text())
def test_any_text(text):
    assert_harmless(printable(text).replace("\n", ""))
    assert one_line(text).isprintable()
    assert not set(one_line(text)) & set("\n\r\x1b")


class _Closed(io.StringIO):
    def write(self, _text):
        raise BrokenPipeError


def hung_up():
    """A terminal whose window was closed: each write to it fails."""
    window, terminal = pty.openpty()
    os.close(window)
    return ending_unwritten(os.fdopen(terminal, "w"))


def no_reader():
    """`troth join ... 2>&1 | head`."""
    return _Closed()


@pytest.mark.parametrize("stream", [hung_up, full_log, no_reader])
def test_what_cannot_be_printed_ends_no_participant(stream):
    """The stake stays at work when nobody can read on: these lines are printed in every task."""
    with stream() as err:
        output = Output(err=err)
        for _ in range(3):
            EventLines(output).emit("disk_full", reason="no space left")
            output.warn("the disk is full")
            with output.progress("data") as report:
                report(1, 2, "shard 1")
        with Screen(output.console(), picture=lambda: "round 3") as screen:
            screen.line("round 3 closed")


@pytest.mark.parametrize("stream", [hung_up, full_log])
def test_a_result_that_cannot_be_printed_fails(stream):
    with stream() as out:
        with pytest.raises(OSError, match=NOT_PRINTED):
            Output(out=out).result({"round": 3}, "round 3")
        with pytest.raises(OSError, match=NOT_PRINTED):
            Output(out=out).screen().print("round 3")


def test_a_live_view_outlives_its_terminal(monkeypatch):
    """Lines above the view, and what it draws itself, are lost; nothing piles up for later."""
    window, terminal = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with ending_unwritten(os.fdopen(terminal, "w")) as err:
        monkeypatch.setattr(sys, "stderr", err)
        output = Output()
        console = output.console()
        with Screen(console, picture=lambda: "round 3") as screen:
            assert screen.is_live
            os.close(window)
            for round_ in range(3):
                output.note(f"round {round_} closed")
                console.print("drawn")
            assert console._buffer == []
        assert sys.stderr is err
