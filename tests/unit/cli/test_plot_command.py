"""`troth plot`: the numbers of event logs, the same picture each time, damaged logs."""

import json
import sys
from html.parser import HTMLParser
from xml.dom.minidom import parseString

import pytest
from support.cli import process
from support.event_logs import STAKE, TAKEN, rounds_of, write_demo, write_log
from support.observations import observation

from troth_attestation.slashing import Fault
from troth_audit import slashes
from troth_cli.errors import EventLogError
from troth_cli.plot.collect import collect, find_logs
from troth_cli.plot.data import RoundRow, Slash
from troth_cli.plot.observed import of_observation
from troth_client.telemetry.event_log import Rotation

EVIL = "_<script>alert(1)</script>$\\frac{1}\x1b[31m\u202e&\"' 漢"


def collected(*sources):
    warned = []
    return collect(find_logs(sources), warned.append), warned


def test_the_numbers_are_those_of_all_logs_in_a_folder(tmp_path):
    data, warned = collected(write_demo(tmp_path))
    assert warned == []
    assert data.run == "Run1"
    assert data.names == ("free-rider", "trainer-0")
    assert dict(data.losses) == {0: 5.5, 1: 5.4, 2: 4.8, 3: 4.7, 4: 4.6}
    assert dict(data.validations) == {2: 4.9}
    assert [row.num_committed for row in data.rounds] == [2, 2, 1, 1, 1]
    assert {row.num_included for row in data.rounds} == {2}
    assert {row.num_bytes for row in data.rounds} == {2 * 640}
    assert data.slashes == (Slash(1, "free-rider", TAKEN),)
    stakes = {line.name: line.points for line in data.stakes}
    assert dict(stakes["trainer-0"]) == {0: STAKE}
    assert dict(stakes["free-rider"]) == {0: STAKE, 3: STAKE - TAKEN}


def test_an_observed_run_has_the_same_numbers():
    taken = slashes.Slash(1, 2, Fault.WORK, TAKEN, 0, None, None, is_paid_out=True)
    seen = observation(num_rounds=3, slashes=(taken,))
    data = of_observation(seen)
    assert dict(data.losses) == {0: 5.0, 1: 4.0, 2: 3.0}
    assert data.rounds[2] == RoundRow(2, 3.0, None, 4, 4, None, False)
    assert data.slashes == (Slash(1, seen.participants[2].owner, TAKEN),)
    assert [line.points[0][0] for line in data.stakes] == [2, 2, 2, 2]


def test_an_observed_run_without_a_round_is_refused():
    with pytest.raises(EventLogError) as caught:
        of_observation(observation(num_rounds=0))
    assert "none: its phase is" in caught.value.found


def test_the_mean_of_all_headers_is_better_than_the_losses_at_hand(tmp_path):
    log = write_log(tmp_path / "a.jsonl", rounds_of(1, mean_loss_micro=4_000_000), owner="Owner")
    data, _ = collected(log)
    assert dict(data.losses) == {0: 4.0}
    assert data.names == ("Owner",)


def test_a_witness_alone_shows_what_it_saw(tmp_path):
    closed = [event for event in rounds_of(2) if event[0] == "round_closed"]
    data, _ = collected(write_log(tmp_path / "events.jsonl", closed, owner="W"))
    assert data.rounds[0] == RoundRow(0, None, None, 0, 2, None, False)
    assert data.losses == []


def test_rotated_files_are_read_once(tmp_path):
    log = write_log(tmp_path / "events.jsonl", rounds_of(40), Rotation(1_000, 50), owner="A")
    data, _ = collected(log, tmp_path, log)
    assert [row.round for row in data.rounds] == list(range(40))
    assert len(find_logs([log, tmp_path, log])) == 1


AROUND = pytest.mark.long(reason="a page around the same picture")


@pytest.mark.parametrize("name", ["run.svg", pytest.param("run.html", marks=AROUND)])
def test_the_same_logs_make_the_same_bytes(cli, tmp_path, name):
    """In this process and in another one: sets have another order in each."""
    write_demo(tmp_path / "demo")
    here, there = tmp_path / "here" / name, tmp_path / "there" / name
    for out in (here, there):
        out.parent.mkdir()
    values = cli.json("plot", tmp_path / "demo", "--out", here)
    done = process("plot", tmp_path / "demo", "--out", there, "--json")
    assert done.returncode == 0, done.stderr
    assert here.read_bytes() == there.read_bytes()
    assert values["rounds"] == 5
    assert values["loss_first"] == 5.5
    assert values["taken_lamports"] == TAKEN


def test_a_picture_has_a_title_and_a_description(cli, tmp_path):
    cli.ok("plot", write_demo(tmp_path / "demo"), "--out", tmp_path / "run.svg")
    picture = parseString((tmp_path / "run.svg").read_text()).documentElement
    title, description = (
        picture.getElementsByTagName(name)[0].firstChild.data for name in ("title", "desc")
    )
    assert picture.getAttribute("role") == "img"
    assert title == "Run Run1"
    assert "Training loss from 5.500 to 4.600 nats a token." in description
    assert "0.05 SOL taken from free-rider" in description


class Page(HTMLParser):
    """The addresses that a page loads, and the text of its tables."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loaded, self.rows = [], [], []
        self._is_cell = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._is_cell = tag in ("th", "td")
        if tag == "tr":
            self.rows.append([])
        if self._is_cell:
            self.rows[-1].append("")
        names = ("src", "href", "xlink:href", "data", "srcset", "action", "poster")
        self.loaded += [value for name, value in attrs if name in names]

    def handle_endtag(self, tag):
        self._is_cell = self._is_cell and tag not in ("th", "td")

    def handle_data(self, data):
        if self._is_cell:
            self.rows[-1][-1] += data


def test_a_page_loads_nothing_and_has_the_numbers_as_text(cli, tmp_path):
    cli.ok("plot", write_demo(tmp_path / "demo"), "--out", tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    page = Page(text)
    assert {one[0] for one in page.loaded} <= {"#"}
    assert {"script", "img", "link", "iframe", "object"} & set(page.tags) == set()
    assert "url(http" not in text
    assert "prefers-color-scheme: dark" in text
    assert "currentColor" in text
    assert "#010203" not in text
    assert page.rows[2] == ["1", "5.4000", "", "2", "2", "1,280"]
    assert page.rows[3] == ["2", "4.8000", "4.9000", "1", "2", "1,280"]
    assert page.rows[-1] == ["free-rider", "1", "0.05 SOL"]


@pytest.mark.parametrize("name", ["run.svg", "run.html"])
def test_names_of_strangers_stay_text(cli, tmp_path, name):
    events = [
        ("run_created", {"run": EVIL}),
        ("joined", {"participant": EVIL, "index": 1}),
        ("tallied", {"participant": EVIL, "round": 0, "stake": 5}),
        (
            "audit_changed",
            {"participant": EVIL, "round": 0, "target": 1, "stage": "NONE", "taken": 7},
        ),
        *rounds_of(1),
    ]
    log = write_log(tmp_path / "events.jsonl", events)
    done = cli.ok("plot", log, "--out", tmp_path / name)
    text = (tmp_path / name).read_text()
    assert "<script" not in text
    assert "\x1b" not in text + done.out + done.err
    assert "\u202e" not in text + done.out + done.err
    assert "&lt;script&gt;" in text
    parseString(text[text.index("<svg ") : text.index("</svg>") + 6])


STRANGE = [
    '{"event":"trained","participant":"b","round":0,"loss_micro":NaN}',
    '{"event":"trained","participant":"b","round":0,"loss_micro":-Infinity}',
    '{"event":"trained","participant":"b","round":0,"loss_micro":true}',
    '{"event":"trained","participant":"b","round":0,"loss_micro":-7}',
    '{"event":"trained","participant":"b","round":0,"loss_micro":' + "9" * 400 + "}",
    '{"event":"trained","participant":"b","round":1e308,"loss_micro":1}',
    '{"event":"round_closed","participant":"b","round":-1,"included":[0]}',
    '{"event":"round_closed","participant":"b","included":[0]}',
    '{"event":"round_closed","participant":"b","round":0,"included":"all"}',
    '{"event":"phase","participant":["b"],"time":' + "9" * 400 + "}",
    '{"event":"encoded","participant":{},"round":0,"payload_bytes":1.5}',
    '{"event":"audit_changed","participant":"b","round":0,"target":[],"outcome":99,'
    '"case_outcome":77}',
    '{"event":"run_created"}',
    '{"event":"tallied","participant":"\\ud800","round":0,"stake":' + "9" * 30 + "}",
]


def test_numbers_that_no_run_can_have_are_passed_over(cli, tmp_path):
    log = write_log(tmp_path / "events.jsonl", rounds_of(2), participant="a")
    with log.open("a") as stream:
        stream.write("\n".join(STRANGE) + "\n")
    data, warned = collected(log)
    assert warned == []
    assert dict(data.losses) == {0: 5.0, 1: 4.9}
    assert [row.num_included for row in data.rounds] == [2, 2]
    assert {row.num_bytes for row in data.rounds} == {1_280}
    cli.ok("plot", log, "--out", tmp_path / "run.svg")


def test_the_largest_numbers_can_be_drawn(cli, tmp_path):
    most = 2**63 - 1
    events = [
        *rounds_of(1),
        ("round_closed", {"round": most, "included": [0]}),
        ("trained", {"round": most, "loss_micro": most}),
        ("encoded", {"round": most, "payload_bytes": most}),
        ("tallied", {"round": most, "stake": most}),
    ]
    log = write_log(tmp_path / "events.jsonl", events, participant="a")
    assert cli.json("plot", log, "--out", tmp_path / "run.svg")["loss_last"] == most / 10**6


def test_lines_that_are_no_events_are_left_out_with_a_warning(cli, tmp_path):
    log = write_log(tmp_path / "events.jsonl", rounds_of(2), participant="a")
    with log.open("ab") as stream:
        stream.write(b"garbage\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
        stream.write(b'{"event":"round_closed","round":2,"included":[')
    done = cli.ok("plot", log, "--out", tmp_path / "run.svg")
    assert "3 lines without an event left out" in done.err
    assert "2 closed" in done.out


BAD_LOGS = {
    "empty": (b"", "no complete line"),
    "cut": (b'{"event":"round_closed","round":0', "no complete line"),
    "other JSON": (b'{"a":1}\n[1,2]\n', "2 lines without an event"),
    "binary": (bytes(range(256)) * 9 + b"\n", "10 lines without an event"),
    "no round": (b'{"event":"joined","participant":"a","index":0}\n', "none in 1 log"),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_a_file_that_shows_no_round_is_refused(cli, tmp_path, name):
    content, found = BAD_LOGS[name]
    log = tmp_path / "events.jsonl"
    log.write_bytes(content)
    error = cli.refused("plot", log, "--out", tmp_path / "run.svg")
    assert error["kind"] == "EventLogError"
    assert error["found"] == found
    assert str(log) == error["subject"]
    assert not (tmp_path / "run.svg").exists()


@pytest.mark.parametrize(
    ("source", "out", "kind", "expected"),
    [
        ("demo", "run.png", "InputError", ".svg or .html"),
        ("demo", "run", "InputError", ".svg or .html"),
        ("demo", "missing/run.svg", "OutputFileError", "a folder that exists"),
        ("demo", "folder.svg", "OutputFileError", "a file to write"),
        ("demo", "demo/events.jsonl/run.svg", "OutputFileError", "a folder that can be written"),
        ("nothing.jsonl", "run.svg", "EventLogError", "events.jsonl"),
        ("folder.svg", "run.svg", "EventLogError", "a folder that holds some"),
    ],
)
def test_files_that_cannot_be_used_are_named(cli, tmp_path, source, out, kind, expected):
    write_demo(tmp_path / "demo")
    (tmp_path / "folder.svg").mkdir()
    error = cli.refused("plot", tmp_path / source, "--out", tmp_path / out)
    assert error["kind"] == kind
    assert expected in error["expected"]


def test_without_its_extra_the_command_says_how_to_install_it(cli, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("troth_cli.plot.draw")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = cli.refused("plot", write_demo(tmp_path / "demo"), "--out", tmp_path / "run.svg")
    assert error["kind"] == "PackageMissingError"
    assert "plot" in error["next_step"]


def test_a_long_run_is_thinned_out_in_the_table(cli, tmp_path):
    log = write_log(tmp_path / "events.jsonl", rounds_of(1_200), participant="a")
    values = json.loads(cli.ok("plot", log, "--out", tmp_path / "run.html", "--json").out)
    page = Page((tmp_path / "run.html").read_text())
    assert values["rounds"] == 1_200
    assert len(page.rows) == 1 + 1_200 // 3
