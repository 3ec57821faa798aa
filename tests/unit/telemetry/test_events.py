"""Event logs: written line by line, read while they grow, whole after a kill."""

import errno
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from troth_cli.workflows.kept_duties import duties_of, keep_duties
from troth_client.telemetry.event_log import EventLog, EventTail, Rotation, older_files


def test_a_line_holds_time_name_bound_fields_and_fields(tmp_path):
    path = tmp_path / "a" / "events.jsonl"
    with EventLog.open(path, participant="trainer-0") as log:
        log.emit("committed", round=3, nested={"a": [1, None]})
    (record,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert list(record) == ["time", "event", "participant", "round", "nested"]
    assert record["participant"] == "trainer-0"
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
from troth_client.telemetry.event_log import EventLog
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
with EventLog.open(Path(sys.argv[1])) as log:
    log.emit("first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    for _ in range(50):
        log.emit("filled", text="x" * 100)
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    log.emit("last")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no file size limits here")
def test_a_full_disk_costs_events_and_nothing_else(tmp_path):
    """No line is torn, and the log says how many are missing once there is room again."""
    path = tmp_path / "events.jsonl"
    command = [sys.executable, "-c", FILLER, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    events = list(EventTail(path).read())
    num_filled = sum(event["event"] == "filled" for event in events)
    assert num_filled >= 5
    *lost, last = events[num_filled + 1 :]
    assert last["event"] == "last"
    # A line about lost events is short, so one may still fit where no event does.
    assert {event["event"] for event in lost} == {"events_lost"}
    assert sum(event["count"] for event in lost) == 50 - num_filled
    assert len(path.read_text().splitlines()) == len(events)


SMALL = Rotation(max_file_bytes=300, num_older=3)


def numbered(log, numbers):
    for number in numbers:
        log.emit("closed", round=number)


def test_a_log_is_rotated_and_its_oldest_files_are_removed(tmp_path):
    path, removed = tmp_path / "events.jsonl", []
    with EventLog.open(path, Rotation(300, 3, lambda number, _: removed.append(number))) as log:
        numbered(log, range(100))
    older = older_files(path)
    assert len(older) == 3
    assert removed == list(range(1, older[0][0]))
    assert max(one.stat().st_size for _, one in older) < 300 + 100


def refusing(monkeypatch, number, name):
    """Let no file be opened for writing whose name has this in it; return how to allow it again."""
    opened = os.open

    def refuse(path, flags, *rest, **others):
        if flags & os.O_CREAT and name in str(path):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, flags, *rest, **others)

    monkeypatch.setattr(os, "open", refuse)
    return lambda: monkeypatch.setattr(os, "open", opened)


def test_a_full_disk_at_the_removal_of_an_older_file_ends_nothing(tmp_path, monkeypatch):
    """There is room for a line, and none for the file of the sums: the older files wait."""
    path = tmp_path / "events.jsonl"
    with EventLog.open(path, Rotation(300, 3, partial(keep_duties, tmp_path))) as log:
        allow = refusing(monkeypatch, errno.ENOSPC, "duties")
        numbered(log, range(50))
        kept = [event["round"] for event in EventTail(path).read()]
        assert kept == list(range(50))
        allow()
        numbered(log, range(50, 60))
    assert len(older_files(path)) == 3


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOSPC])
def test_a_log_goes_on_in_its_file_while_no_other_can_be_opened(tmp_path, monkeypatch, number):
    path = tmp_path / "events.jsonl"
    with EventLog.open(path, Rotation(300, 10)) as log:
        allow = refusing(monkeypatch, number, "events.jsonl")
        numbered(log, range(20))
        assert older_files(path) == []
        allow()
        numbered(log, range(20, 40))
    assert len(older_files(path)) > 1
    assert [event["round"] for event in EventTail(path).read()] == list(range(40))


def test_threads_that_emit_at_once_lose_nothing_at_a_rotation(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog.open(path, Rotation(300, 10_000)) as log, ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(numbered, log, range(n, 1600, 8)) for n in range(8)]:
            done.result()
    assert sorted(event["round"] for event in EventTail(path).read()) == list(range(1600))


@pytest.mark.parametrize("every", [1, 3, 7, 12])
def test_a_reader_loses_and_repeats_nothing_across_rotations(tmp_path, every):
    path, seen = tmp_path / "events.jsonl", []
    tail = EventTail(path)
    for begin in range(0, 84, every):
        with EventLog.open(path, SMALL) as log:  # restarted each time
            numbered(log, range(begin, begin + every))
        seen += [event["round"] for event in tail.read()]
    assert seen == list(range(len(seen)))
    assert len(older_files(path)) == 3


def test_a_log_that_is_rotated_while_it_is_read_is_read_on(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog.open(path, SMALL) as log:
        numbered(log, range(2))
        reading, seen = EventTail(path).read(), []
        for event in reading:
            seen.append(event["round"])
            if len(seen) < 8:
                numbered(log, [len(seen) + 1])
    assert seen == list(range(9))


def test_a_reader_that_was_away_for_long_goes_on_with_what_is_left(tmp_path):
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    with EventLog.open(path, SMALL) as log:
        numbered(log, [0])
        assert len(list(tail.read())) == 1
        numbered(log, range(1, 100))
        seen = [event["round"] for event in tail.read()]
    assert seen == list(range(seen[0], 100))
    assert seen[0] > 50


def test_the_duties_of_a_witness_outlive_its_old_logs(tmp_path):
    """Killed between the sums and the removal: nothing is counted twice."""
    path, kept = tmp_path / "events.jsonl", []

    def keep(number, log):
        for _ in range(2):
            keep_duties(tmp_path, number, log)
        kept.append(number)

    with EventLog.open(path, Rotation(300, 2, keep)) as log:
        for round_ in range(40):
            verdict = "MISMATCH" if round_ == 3 else "OK"
            log.emit("judged", round=round_, target=1, verdict=verdict, reason="", seconds=0.5)
            log.emit("verdict_revealed", round=round_, target=1)
        log.emit("ended", rewards=77)
    assert len(kept) > 10
    found = duties_of(tmp_path)
    assert found.verdicts == {"OK": 39, "MISMATCH": 1}
    assert [one["round"] for one in found.findings] == [3]
    assert found.num_revealed == 40
    assert found.rewards == 77
    assert found.judging_seconds == 20.0
