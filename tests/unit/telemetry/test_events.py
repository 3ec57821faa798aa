"""Event logs: written line by line, read while they grow, whole after a kill."""

import json
import resource
import signal
import subprocess
import sys

import pytest

from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventLog, EventTail


def test_a_line_holds_time_name_bound_fields_and_fields(tmp_path):
    path = tmp_path / "a" / "events.jsonl"
    with EventLog.open(path, peer="trainer-0") as log:
        log.emit("committed", round=3, nested={"a": [1, None]})
    (record,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert list(record) == ["time", "event", "peer", "round", "nested"]
    assert record["peer"] == "trainer-0"
    assert record["nested"] == {"a": [1, None]}


def test_a_half_written_line_waits_until_it_is_whole(tmp_path):
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    assert list(tail.read()) == []
    whole = b'{"event":"a"}\n{"event":"b","text":"\xc3\xa4"}\n'
    seen = []
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        seen += [(end, event["event"]) for event in tail.read()]
    assert [place for place, _name in seen] == [14, len(whole)]
    assert [name for _place, name in seen] == ["a", "b"]


def test_each_event_is_read_once(tmp_path):
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    with EventLog.open(path) as log:
        for number in range(5):
            log.emit("closed", round=number)
            assert [event["round"] for event in tail.read()] == [number]
    assert list(tail.read()) == []


def test_what_a_killed_writer_left_unfinished_spoils_no_other_line(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event":"first"}\n{"event":"sec')
    with EventLog.open(path) as log:
        log.emit("third")
    assert [event["event"] for event in EventTail(path).read()] == ["first", "third"]


def test_lines_that_are_no_events_are_passed_over(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'[]\n\xff\xfe\n{}\n{"event":1}\nnull\n{"event":"good"}\n')
    assert [event["event"] for event in EventTail(path).read()] == ["good"]


FILLER = """
import resource, sys
from pathlib import Path
from troth_client.runtime.files import DiskFullError
from troth_client.telemetry.events import EventLog
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with EventLog.open(Path(sys.argv[1])) as log:
        while True:
            log.emit("filled", text="x" * 100)
except DiskFullError as error:
    print(error.expected, "|", error.found)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no file size limits here")
def test_a_full_disk_is_named_with_the_file(tmp_path):
    path = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", FILLER, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    expected, found = done.stdout.split("|")
    assert str(path) in expected
    assert "too large" in found
    assert len(list(EventTail(path).read())) >= 1
    assert issubclass(DiskFullError, Exception)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
