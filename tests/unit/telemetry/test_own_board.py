"""The view of one participant: numbers from its own events, drawn on any terminal."""

import io
import threading
from collections import deque
from dataclasses import fields, is_dataclass

import pytest
from rich.console import Console
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.run_requests import request

from troth_cli.view.output import Output
from troth_cli.workflows import live_view
from troth_cli.workflows.live_view import shown_events
from troth_client.telemetry.own_board import MOST_AUDITS, MOST_LOSSES, OwnBoard
from troth_client.telemetry.own_display import draw_own
from troth_client.telemetry.thinning import superfluous

NAT = 10**6
RUN = str(Pubkey.from_bytes(bytes(range(32))))
HOSTILE = "\x1b[2J\x1b]0;owned\x07\nerror: send your key"


class Tty(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def closed(round_, loss=3 * NAT, **more):
    return {"event": "round_closed", "round": round_, "own": True, "mean_loss_micro": loss, **more}


EVENTS = [
    {"event": "joined", "index": 3, "fee": 5_000},
    {"event": "phase", "phase": "COMMIT", "round": 0, "slot": 70},
    {"event": "trained", "round": 0, "loss_micro": 4 * NAT},
    {"event": "encoded", "round": 0, "payload_bytes": 9_216},
    {"event": "committed", "round": 0, "slot": 77, "fee": 5_000},
    closed(0),
    {
        "event": "tallied",
        "round": 0,
        "rounds": 40,
        "slot": 99,
        "members": 5,
        "audits": 2,
        "sent_bytes": 1_500_000,
        "received_bytes": 20_000,
        "stake": 10**8,
        "claimable": 2 * 10**6,
        "unvested": 10**6,
        "strikes": 1,
        "offences": 0,
    },
    {"event": "judged", "round": 0, "target": 1, "verdict": "OK", "seconds": 2.0},
    {"event": "validated", "round": 0, "loss_micro": 5 * NAT, "tokens": 640},
]


def board(events=EVENTS, clock=None):
    own = OwnBoard(RUN, 40, clock or Clock())
    for event in events:
        own.take(event)
    return own


def picture(own, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(draw_own(own, 656_256))
    return console.file.getvalue()


def test_the_view_has_round_loss_bytes_members_audits_stake_and_earnings():
    shown = picture(board())
    for part in (
        "round 1 of 40",
        "slot 99",
        "training loss 3.000 → 3.000",
        "validation loss 5.000 → 5.000",
        "participant 3, applied, our loss 4.000, payload 9.2 kB (1/142 of dense)",
        "5 members, 2 open audits",
        "1.5 MB sent, 20.0 kB received",
        "1 judged (1 ok) in 2 s",
        "stake 0.1 SOL, earned 0.003 SOL (0.002 SOL ready), fees 0.00001 SOL",
        "1 strikes",
        "too few rounds so far",
    ):
        assert part in shown, (part, shown)


def test_before_anything_happened_there_is_something_to_draw():
    shown = picture(board([]))
    assert "waiting for the first round" in shown
    assert "starting" in shown


def test_the_time_left_is_that_of_the_rounds_so_far():
    clock = Clock()
    own = OwnBoard(RUN, 40, clock)
    for round_ in range(6):
        clock.now += 100.0 if round_ == 3 else 10.0
        own.take(closed(round_))
    assert own.seconds_left().middle == 34 * 10.0
    assert "about 5 min 40 s" in picture(own)
    for round_ in range(6, 40):
        own.take(closed(round_))
    assert "none: the last round has closed" in picture(own)


def test_a_gap_in_the_rounds_is_no_round():
    clock = Clock()
    own = OwnBoard(RUN, 40, clock)
    for round_ in (0, 1, 2, 9, 10):
        clock.now += 500.0 if round_ == 9 else 10.0
        own.take(closed(round_))
    assert own.seconds_left().high == 29 * 10.0


def test_a_run_of_100_000_rounds_keeps_its_curve_in_bounds():
    own = board([])
    for round_ in range(20_000):
        own.take(closed(round_, loss=20_000 - round_))
    assert len(own.losses) <= MOST_LOSSES
    assert next(iter(own.losses)) == 0
    assert max(own.losses) == 19_999
    assert superfluous(range(10), 10) == ()


def audit(name, round_, target=1, **more):
    return {"event": name, "round": round_, "target": target, **more}


def played(num_rounds, verdict="OK"):
    """The events of so many rounds, in each of which we train, and judge an audit to its end."""
    for round_ in range(num_rounds):
        yield {"event": "trained", "round": round_, "loss_micro": 3 * NAT}
        yield audit("audit_changed", round_, stage="OPENINGS")
        yield audit("judged", round_, verdict=verdict, seconds=1.0)
        yield audit("audit_closed", round_)
        yield closed(round_)


def num_held(record):
    """How many entries the containers of a record hold, those of its parts included."""
    parts = [getattr(record, one.name) for one in fields(record)]
    own = [part for part in parts if isinstance(part, dict | list | set | deque)]
    return sum(map(len, own)) + sum(num_held(part) for part in parts if is_dataclass(part))


def test_what_it_holds_does_not_grow_with_the_rounds():
    """The two curves of the run apart, which have bounds of their own."""
    short, long = board(played(100)), board(played(300))
    for own in (short, long):
        own.losses.clear()
        assert own.duties.verdicts == {"OK": 100 if own is short else 300}
    assert num_held(long) == num_held(short)


def test_a_run_of_faults_alone_keeps_the_newest_ones():
    own = board(played(3 * MOST_AUDITS, "MISMATCH"))
    kept = [line.round for line in own.board.notable_audits()]
    assert kept == list(range(2 * MOST_AUDITS, 3 * MOST_AUDITS))
    assert own.duties.findings == []


def test_a_notable_audit_is_shown_after_its_end_and_others_are_dropped():
    accused = audit("audit_changed", 7, 2, stage="ACCUSED")
    still_open = audit("audit_changed", 8, 3, stage="OPENINGS")
    own = board([accused, audit("audit_closed", 7, 2), still_open, *played(3_000)])
    assert [line.round for line in own.board.audits.values()] == [7, 8]
    shown = picture(own)
    assert "accused" in shown


def test_losses_that_are_not_known_leave_no_mark():
    own = board([closed(0, None), closed(1, None, void=True)])
    assert own.losses == {}
    assert own.num_void == 1


def test_texts_of_strangers_cannot_steer_the_terminal():
    own = board([*EVENTS, {"event": "failed", "reason": HOSTILE}])
    shown = picture(own)
    assert {one for one in shown if one != "\n" and not one.isprintable()} == set()
    assert "\nerror: send" not in shown


@pytest.mark.parametrize("width", [20, 80])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, picture(board(), width).splitlines())) <= width


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    return monkeypatch


def emitted(stream, **options):
    """Show a participant's events, and return what is on the terminal or in the file."""
    output = Output(err=stream, is_json=options.pop("is_json", False))
    made = request(Keypair(), Pubkey.from_string(RUN), **options)
    with shown_events(made, output) as events:
        for event in EVENTS:
            events.emit(event["event"], **{k: v for k, v in event.items() if k != "event"})
        events.emit("owed", round=3, target=1)
    return stream.getvalue()


def test_a_terminal_gets_the_view_and_notable_events_above_it(terminal):
    shown = emitted(Tty())
    assert "5 members, 2 open audits" in shown
    assert "owed round=3 target=1" in shown
    assert "round_closed" not in shown


def num_drawn(num_rounds, monkeypatch):
    """How many pictures the thread of the events drew while they came."""
    drawn = []

    def draw(own, num_parameters):
        drawn.append(threading.get_ident())
        return draw_own(own, num_parameters)

    made = request(Keypair(), Pubkey.from_string(RUN))
    monkeypatch.setattr(live_view, "draw_own", draw)
    with shown_events(made, Output(err=Tty())) as events:
        for event in played(num_rounds):
            events.emit(event["event"], **{k: v for k, v in event.items() if k != "event"})
        return drawn.count(threading.get_ident())


def test_no_event_waits_for_a_picture(terminal):
    few, many = num_drawn(100, terminal), num_drawn(300, terminal)
    assert many == few


@pytest.mark.parametrize("case", ["pipe", "plain", "narrow", "json"])
def test_elsewhere_events_are_lines(terminal, case):
    if case == "narrow":
        terminal.setenv("COLUMNS", "60")
    stream = io.StringIO() if case == "pipe" else Tty()
    shown = emitted(stream, is_plain=case == "plain", is_json=case == "json")
    assert "round_closed round=0" in shown
    assert "owed round=3 target=1" in shown
    assert "open audits" not in shown
    assert "\x1b" not in shown


def test_two_signals_leave_the_terminal_as_it_was(terminal):
    stream = Tty()
    output = Output(err=stream)
    made = request(Keypair(), Pubkey.from_string(RUN))
    with pytest.raises(KeyboardInterrupt), shown_events(made, output):
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\x1b[?25h"), "the cursor is back"
