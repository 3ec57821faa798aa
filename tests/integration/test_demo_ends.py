"""However a demo ends, it says why, says where its logs are, and leaves no process behind."""

import json
import os
import signal
import subprocess
import sys

import httpx
import pytest
from support.cli import Cli
from support.demos import marked_environment, marked_processes
from support.waiting import ANSWER_SECONDS, wait_for

from troth_client.telemetry.event_log import EventTail

pytestmark = pytest.mark.processes
SMALL = ("--trainers", "2", "--witnesses", "0", "--cheat", "none")
"""The smallest demo: what ends it is the same for two trainers as for six participants."""


class Demo:
    """`troth demo` in a session of its own, as a terminal would start it."""

    def __init__(self, folder, *flags, prefix=()):
        self.folder, self.mark = folder, str(folder)
        command = [sys.executable, "-m", "troth_cli", "demo", "--out", str(folder)]
        self.process = subprocess.Popen(
            [*prefix, *command, *flags],
            env=marked_environment(self.mark),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_round(self, round_):
        log = self.folder / "trainer-1" / "events.jsonl"

        def is_there():
            assert self.process.poll() is None, self.process.communicate()
            closed = (e for e in EventTail(log).read() if e["event"] == "round_closed")
            return any(event["round"] >= round_ for event in closed)

        wait_for(is_there, 120)

    def wait_for_event(self, name):
        def is_there():
            log = EventTail(self.folder / "events.jsonl")
            return any(event["event"] == name for event in log.read())

        wait_for(is_there, 60)

    def end(self, seconds=60):
        """Exit code, stdout and stderr; nothing that it started runs any more."""
        out, err = self.process.communicate(timeout=seconds)
        wait_for(lambda: not marked_processes(self.mark), 20)
        return self.process.returncode, out, err


@pytest.fixture
def start(tmp_path):
    demos = []

    def make(*flags, **options):
        demos.append(Demo(tmp_path / "demo", *flags, **options))
        return demos[-1]

    yield make
    for demo in demos:
        for pid in marked_processes(demo.mark):
            os.kill(pid, signal.SIGKILL)


AGAIN = pytest.mark.long(reason="the same end at another moment")


@pytest.mark.parametrize("moment", [pytest.param("setting up", marks=AGAIN), "training"])
def test_ctrl_c_leaves_no_process_and_names_the_logs(start, moment):
    demo = start("--rounds", "40", *SMALL)
    if moment == "training":
        demo.wait_for_round(0)
        assert len(marked_processes(demo.mark)) >= 5, "demo, chain, fork server, two trainers"
    else:
        demo.wait_for_event("chain_started")
    os.killpg(demo.process.pid, signal.SIGINT)
    code, out, err = demo.end()
    assert code == 130
    assert out == ""
    assert f"logs and keys are in {demo.folder}" in err
    assert "interrupted" in err
    assert "Traceback" not in err


@pytest.mark.long(reason="a third whole demo; make test has the one with a cheat")
def test_a_demo_that_stays_answers_what_it_names_and_prints_one_json_object(start, capsys):
    """Progress on stderr, the result on stdout after Ctrl-C; a long demo shows the loss nightly."""
    demo = start("--stay", "--json", "--rounds", "3", "--margin-micro", "-1000000000", *SMALL)
    err = ""
    while "troth plot" not in err:
        line = demo.process.stderr.readline()
        assert line, err
        err += line
    assert "round 3 of 3" in err
    status, page, plot = (line.split()[1:] for line in err.splitlines()[-3:])
    assert Cli(capsys).json(*status)["phase"] == "finished"
    assert page[0] == "dashboard"
    assert state_of_page(page)["phase"] == "finished"
    assert Cli(capsys).json(*plot)["rounds"] == 3
    assert (demo.folder / "run.svg").exists()
    demo.process.send_signal(signal.SIGINT)
    code, out, err = demo.end()
    assert code == 0, err
    assert err == ""
    result = json.loads(out)
    assert result["is_success"] is True
    assert result["num_parameters"] == 656_256
    assert result["payload_bytes"] == 9_216
    assert set(result["roots"].values()) == {result["chain_root"]}
    assert result["fell_by_micro"] > 0
    assert result["outcome"]["cheat"] is None
    assert result["moved_stakes"] == []
    last = json.loads((demo.folder / "events.jsonl").read_text().splitlines()[-1])
    assert last["event"] == "summarised"


def state_of_page(command):
    """Start a dashboard, ask it once for the state of the run, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "troth_cli", *command, "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        url = json.loads(process.stdout.readline())["url"]
        return httpx.get(f"{url}api/state", timeout=ANSWER_SECONDS).raise_for_status().json()
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.long(reason="one more demo that is ended from outside")
def test_a_killed_demo_leaves_no_process_either(start):
    demo = start("--rounds", "40", *SMALL)
    demo.wait_for_round(0)
    demo.process.kill()
    code, _, _ = demo.end()
    assert code == -signal.SIGKILL


@pytest.mark.long(reason="a demo of processes")
def test_a_trainer_that_dies_ends_the_demo_with_its_name(start):
    demo = start("--rounds", "40", "--json", *SMALL)
    demo.wait_for_round(0)
    holder = int((demo.folder / "trainer-1" / "state" / "lock").read_text())
    assert holder in marked_processes(demo.mark)
    os.kill(holder, signal.SIGKILL)
    code, out, err = demo.end()
    assert code == 1
    assert out == ""
    error = json.loads(err.strip().splitlines()[-1])["error"]
    assert error["kind"] == "TrainerFailedError"
    assert error["subject"] == "trainer-1"
    assert "signal 9" in error["found"]
    assert str(demo.folder / "trainer-1") in error["next_step"]


@pytest.mark.long(reason="a demo of processes")
def test_a_full_disk_is_named(start):
    """Files may not grow beyond 3 MB here: the data set does not fit."""
    small_files = ("bash", "-c", 'ulimit -f 3000; exec "$@"', "bash")
    demo = start("--rounds", "2", prefix=small_files)
    code, out, err = demo.end()
    assert code == 1
    assert out == ""
    assert "disk full" in err
    assert str(demo.folder / "data") in err
    assert "Traceback" not in err


def test_a_folder_in_use_is_refused_and_left_alone(start, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine").write_text("mine")
    code, _, err = start().end()
    assert code == 1
    assert "folder used" in err
    assert "--out" in err
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["mine"]
