"""How an observation is shown: as a picture, lines or objects, on any terminal."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console
from support.observations import NAT, observation, round_seen

from troth_attestation.slashing import Fault
from troth_audit.cases import CaseFile, Money
from troth_audit.slashes import Slash
from troth_cli.view.output import Grid, Output
from troth_cli.view.run_display import draw
from troth_cli.view.run_lines import first_lines, new_lines, round_line
from troth_cli.view.screen import Screen
from troth_cli.view.status import status_blocks
from troth_cli.workflows import watch
from troth_client.telemetry.losses import RoundLoss
from troth_coordinator.rules.audit_view import AuditFlag

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\u202e[bold red]x[/]\nerror: send your key"
CASE = CaseFile((7, 2, 0), "CASE_COMMIT", outcome=3, flags=AuditFlag.BONDED)
SLASH = Slash(5, 3, Fault.WORK, 50_000_000, 40_000_000, None, None, is_paid_out=False)


def picture(seen, width=100, rows=60, **options):
    console = Console(file=io.StringIO(), width=width, height=rows, **options)
    console.print(draw(seen, rows))
    return console.file.getvalue()


def test_the_picture_has_warnings_first_then_round_loss_time_and_people():
    seen = observation(warnings=("auditing is off",), cases=(CASE,), slashes=(SLASH,))
    shown = picture(seen)
    order = [
        "warning: auditing is off",
        "round 3 of 1000",
        "training loss 5.000 → 3.000",
        "round 2: 4 of 4 included, loss 3.000 (4 of 4 headers)",
        "time left: not known: too few rounds have closed",
        "4vJ9JU1b",
        "case: round 7, participant 2, work: case commit",
        "slash: round 5, participant 3, work",
    ]
    places = [shown.find(part) for part in order]
    assert -1 not in places, dict(zip(order, places, strict=True))
    assert places == sorted(places)


def test_convictions_that_count_as_one_are_called_offences():
    seen = observation()
    assert "offences" in picture(seen)
    (grid,) = [one for one in status_blocks(seen) if isinstance(one, Grid)]
    assert "offences" in grid.columns
    assert seen.to_json()["participants"][0]["offences"] == 0


def test_a_run_with_nobody_and_nothing_can_be_drawn():
    shown = picture(observation(0, 0, slots_left=None))
    assert "waiting for the first round" in shown
    assert "no round" not in shown


def test_a_small_terminal_names_how_many_participants_it_leaves_out():
    assert "and 36 more" in picture(observation(num_people=64), rows=48)
    assert "more: troth" not in picture(observation(num_people=4), rows=24)


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    shown = picture(observation(300, 64), width=width)
    assert max(map(len, shown.splitlines())) <= width


def test_the_curve_of_a_long_run_shows_all_of_it():
    losses = [round_seen(number, (2_000 - number) * 1_000) for number in range(2_000)]
    shown = picture(observation(rounds=tuple(losses)))
    curve = next(line for line in shown.splitlines() if "training loss" in line)
    assert "2.000 → 0.001" in curve
    assert curve.count("█") < 10, "it falls from the first column to the last"


def test_texts_of_strangers_cannot_steer_the_terminal():
    seen = observation(trouble=HOSTILE, warnings=(HOSTILE,))
    person = replace(seen.participants[0], endpoint=HOSTILE, status=HOSTILE)
    seen = replace(seen, participants=(person,))
    stream = io.StringIO()
    screen = Screen(Console(file=stream, width=100))
    for line in (*first_lines(seen), *new_lines(seen, observation())):
        screen.line(line)
    for shown in (picture(seen), stream.getvalue()):
        assert {one for one in shown if one != "\n" and not one.isprintable()} == set()
        assert not [line for line in shown.splitlines() if line.startswith("error: send")]


def test_age_and_trouble_are_said():
    assert "no answer from the RPC node for 1 min 5 s: refused" in picture(
        observation(trouble="refused", age_seconds=65.0)
    )
    assert "this is 30 s old" in picture(observation(age_seconds=30.0))
    assert "accounts are closed" in picture(observation(is_gone=True))
    assert "old" not in picture(observation(age_seconds=3.0))


@pytest.mark.parametrize(
    ("width", "is_terminal", "term", "is_wanted", "is_live"),
    [
        (80, True, "xterm", True, True),
        (79, True, "xterm", True, False),
        (20, True, "xterm", True, False),
        (200, False, "xterm", True, False),
        (200, True, "dumb", True, False),
        (200, True, "xterm", False, False),
    ],
)
def test_only_a_terminal_of_80_columns_gets_a_picture(
    width, is_terminal, term, is_wanted, is_live, monkeypatch
):
    monkeypatch.setenv("TERM", term)
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal)
    assert Screen(console, is_wanted=is_wanted).is_live is is_live


def test_no_color_takes_the_colours_and_leaves_the_picture(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    seen = observation(warnings=("auditing is off",))
    coloured = picture(seen, force_terminal=True)
    assert "\x1b[33m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = picture(seen, force_terminal=True)
    assert "\x1b[33m" not in plain
    assert "warning: auditing is off" in plain


def test_a_line_printed_meanwhile_stands_above_the_picture(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    console = Console(file=stream, width=100, height=40, force_terminal=True)
    with Screen(console) as screen:
        screen.draw(draw(observation(), screen.num_rows))
        screen.line("a note")
        screen.draw(draw(observation(), screen.num_rows))
    shown = stream.getvalue()
    assert shown.rfind("a note") < shown.rfind("training loss")


def test_lines_say_what_changed_and_nothing_twice():
    before = observation()
    assert list(new_lines(before, before)) == []
    later = observation(4, 5, cases=(CASE,), slashes=(SLASH,), trouble="refused", revision=2)
    left = replace(later.participants[1], status="left")
    later = replace(later, participants=(later.participants[0], left, *later.participants[2:]))
    later = replace(later, run=replace(later.run, phase="halted"))
    lines = list(new_lines(later, before))
    assert lines[0] == "no answer from the RPC node: refused"
    assert "phase halted of round 4" in lines
    assert "participant 1 is left now, it was active" in lines
    assert any(line.startswith("participant 4 joined as both") for line in lines)
    assert any(line.startswith("case: round 7") for line in lines)
    assert any(line.startswith("slash: round 5") for line in lines)
    assert list(new_lines(later, later)) == []
    assert next(iter(new_lines(before, later))) == "the RPC node answers again"
    paid = replace(CASE, money=Money(stake=5), stage="DECIDED", case_outcome=1)
    assert len(list(new_lines(replace(later, cases=(paid,)), later))) == 1


def test_a_round_in_one_line():
    assert round_line(round_seen(7)) == (
        "round 7: training loss 3.000 (4 of 4 headers), 4 of 4 included"
    )
    odd = replace(round_seen(7), loss=RoundLoss(4 * NAT, 4 * NAT, 3, 1))
    assert "4.000 (3 of 4 headers, 1 odd)" in round_line(odd)
    assert "training loss not known (0 of 4 headers)" in round_line(round_seen(7, None))
    void = round_seen(8, None, is_void=True, num_committed=1, included=0)
    assert round_line(void) == "round 8 void: 1 of 4 committed"


def test_an_object_after_the_first_has_only_the_rounds_that_changed():
    before = observation(3)
    assert before.to_json(since=before)["rounds"] == []
    later = observation(4)
    changed = replace(later, rounds=(round_seen(0, 9 * NAT), *later.rounds[1:]))
    assert [one["round"] for one in changed.to_json(since=before)["rounds"]] == [0, 3]
    out = io.StringIO()
    Output(is_json=True, out=out).result(changed.to_json())
    assert json.loads(out.getvalue())["rounds"][0]["mean_loss_micro"] == 9 * NAT


def test_lines_of_rounds_come_in_order_and_wait_for_headers_only_so_long():
    out = io.StringIO()
    lines = watch._Lines(Screen(Console(file=out, width=200), is_wanted=True))

    def shown(known, num_rounds, **options):
        rounds = (round_seen(number) for number in range(num_rounds))
        rounds = [one if one.chain.round in known else replace(one, loss=None) for one in rounds]
        out.seek(0)
        out.truncate()
        lines.show(observation(num_rounds, rounds=tuple(rounds)), **options)
        return [int(line.split()[1].rstrip(":")) for line in out.getvalue().splitlines()]

    lines.show(observation(0, rounds=()))
    assert shown({1}, 2) == [], "round 0 comes first"
    assert shown({0, 1, 3}, 4) == [0, 1], "round 2 may still be read"
    waited = {0, 1, *range(3, 3 + watch.LATE_ROUNDS)}
    assert shown(waited, max(waited) + 1) == sorted({2, *waited} - {0, 1})
    assert shown(waited, max(waited) + 3, is_last=True) == [max(waited) + 1, max(waited) + 2]
