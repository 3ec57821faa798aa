"""`torchrun -m troth_cli join`: one staked identity, several processes that compute for it."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.cli import Cli
from support.network import SECONDS, last_json, processes
from support.ranks import RUN, place, variables
from support.reader import free_port
from support.waiting import wait_for

from troth_cli.errors import InputError
from troth_cli.workflows.ranks import device_of, num_cores, place_of, threads_of

PATIENT = ("chain.commit_slots=1200", "chain.attest_slots=800", "chain.warmup_slots=800")
PATIENT += ("chain.vesting_slots=30000", "chain.unbond_slots=30000")
UNSAMPLED = ("chain.p_base_ppm=0", "chain.p_new_ppm=0")


class Torchrun:
    """A torchrun of two ranks, with its output in files."""

    def __init__(self, bench, arguments):
        self._out, self._err = (bench.folder / f"torchrun.{end}" for end in ("out", "err"))
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        command += ["--master-port", str(free_port(1)), "-m", "troth_cli"]
        command += [*map(str, arguments), "--json"]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err)

    @property
    def printed(self):
        return self._out.read_text()

    @property
    def notes(self):
        return self._err.read_text()

    def wait_for(self, words):
        wait_for(lambda: words in self.notes or self.process.poll() is not None, SECONDS)
        assert words in self.notes, self.notes

    def helper(self):
        """The process id of rank 1."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = [pid for task in tasks for pid in task.read_text().split()]
        (found,) = [pid for pid in children if b"\0RANK=1\0" in _environment(pid)]
        return int(found)


def _environment(pid):
    return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
def torchrun(bench):
    with contextlib.ExitStack() as stack:

        def begin(arguments):
            made = Torchrun(bench, arguments)
            stack.callback(made.process.wait)
            stack.callback(made.process.kill)
            return made

        yield begin


def events_of(bench, name):
    return (bench.folder / f"state-{name}" / "events.jsonl").read_text()


@pytest.mark.processes
@pytest.mark.long(reason="two runs of real processes, three of which import torch")
@pytest.mark.skipif(sys.platform != "linux", reason="finds a rank in /proc")
@pytest.mark.parametrize("is_killed", [False, True], ids=["to the end", "a rank is killed"])
def test_a_run_under_torchrun(bench, torchrun, is_killed):
    """A killed rank ends all others, as torchrun does it, if need be after 30 seconds.

    Rounds are shorter than that here. The stake stays, and one goes on.
    """
    run = bench.create(*PATIENT, *UNSAMPLED, "schedule.rounds=5", "schedule.warmup_rounds=0")
    ranks = torchrun(bench.join_arguments(run, "a"))
    with processes(bench) as begin:
        other = begin(bench.join_arguments(run, "b"), "other")
        ranks.wait_for("round_closed round=1")
        if is_killed:
            os.kill(ranks.helper(), signal.SIGKILL)
            assert ranks.process.wait(SECONDS) == 1, ranks.notes
            assert "rank=1" in ranks.notes.replace(" ", "").replace(":", "="), ranks.notes
            resumed = begin(bench.join_arguments(run, "a"), "resumed")
            code, values = resumed.end()
            assert "resumed" in resumed.notes()
        else:
            code = ranks.process.wait(SECONDS)
            values = last_json(ranks.printed)
            assert len(ranks.printed.strip().splitlines()) == 1
        assert code == 0, ranks.notes
        assert values["is_finished"] is True
        other_code, other_values = other.end()
    assert other_code == 0
    assert values["root"] == other_values["root"]
    num_threads = max(1, num_cores() // 2)
    assert f'"threads":{num_threads},"ranks":2' in events_of(bench, "a")
    assert ('"event":"ranks_lost"' in events_of(bench, "a")) <= is_killed


def test_without_torchrun_a_process_is_alone():
    assert place_of({}) is None
    assert place_of({"RANK": "0", "WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize(
    ("num_ranks", "asked", "num_cores", "found"),
    [(2, None, 16, 8), (3, None, 16, 5), (8, None, 2, 1), (2, None, None, 1), (2, 3, 16, 3)],
)
def test_a_rank_computes_with_its_share_of_the_cores(num_ranks, asked, num_cores, found):
    assert threads_of(place(1, 29_500, num_ranks), asked, num_cores) == found


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("number", "asked", "has_cuda", "found"),
    [
        (0, "auto", True, "cuda:0"),
        (1, "auto", True, "cuda:1"),
        (3, "auto", True, "cuda:3"),
        (1, "cuda", True, "cuda:1"),
        (1, "cuda:0", True, "cuda:0"),
        (1, "cuda:2", True, "cuda:2"),
        (1, "cpu", True, "cpu"),
        (1, "auto", False, "auto"),
        (1, "cuda", False, "cuda"),
        (1, "mps", False, "mps"),
    ],
)
def test_a_rank_takes_the_gpu_of_its_number_unless_another_device_is_named(
    number, asked, has_cuda, found
):
    assert device_of(place(number, 29_500, 4), asked, has_cuda=has_cuda) == found


@pytest.mark.cuda
def test_the_gpu_of_a_rank_is_the_one_of_its_number_on_this_machine():
    one = replace(place(5, 29_500, 8), local=2)
    assert device_of(one, "cuda", has_cuda=True) == "cuda:2"


@pytest.mark.cuda
@pytest.mark.parametrize("device", [(), ("--device", "cuda")], ids=["none named", "cuda"])
def test_a_rank_without_a_gpu_of_its_own_is_refused_with_its_name(capsys, monkeypatch, device):
    """As on a machine with fewer GPUs than ranks; here it may have none at all."""
    number = torch.cuda.device_count() + 1
    for name, value in variables(place(number, 29_500, number + 1)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    error = Cli(capsys).refused("join", RUN, "--key", "of-rank-zero.json", *device)
    assert error["kind"] == "DeviceError"
    assert error["expected"] == f"the device 'cuda:{number}'"


@pytest.mark.cuda
def test_a_rank_takes_the_device_of_the_config_as_rank_zero_does(capsys, monkeypatch, tmp_path):
    """Here one that no machine has, so that the refusal names it."""
    config = tmp_path / "run.toml"
    config.write_text("[hints]\ndevice = 'cuda:99'\n")
    for name, value in variables(place(1, 29_500)).items():
        monkeypatch.setenv(name, value)
    arguments = ("join", RUN, "--key", "of-rank-zero.json", "--config", config)
    error = Cli(capsys).refused(*arguments)
    assert error["kind"] == "DeviceError"
    assert error["expected"] == "the device 'cuda:99'"


@pytest.mark.parametrize("command", [("witness",), ("join", "--role", "witness")], ids=" ".join)
@pytest.mark.parametrize("rank", [0, 1])
def test_whoever_trains_nothing_is_refused_under_torchrun(capsys, monkeypatch, command, rank):
    """Each rank was a witness of its own, all with one key."""
    for name, value in variables(place(rank, 29_500)).items():
        monkeypatch.setenv(name, value)
    error = Cli(capsys).refused(*command, RUN, "--key", "none.json")
    assert error["kind"] == "InputError"
    assert error["found"] == f"rank {rank} of 2"
    assert "without torchrun" in error["next_step"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not say")
def test_the_cores_are_those_that_this_process_may_use():
    """As in a container that has a few of the machine's."""
    usable = os.sched_getaffinity(0)
    assert num_cores() == len(usable)
    os.sched_setaffinity(0, {min(usable)})
    try:
        assert num_cores() == 1
    finally:
        os.sched_setaffinity(0, usable)


@pytest.mark.parametrize("asked", [None, 4])
def test_a_process_alone_computes_with_what_was_asked_for(asked):
    assert threads_of(None, asked, 16) == asked


def test_the_place_is_that_of_the_launcher():
    wanted = place(1, 29_500)
    assert place_of(variables(wanted)) == wanted
    agent = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "2"}
    found = place_of(variables(wanted) | agent)
    assert found.launcher_hosts is True
    assert found.attempt == "2"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"RANK": "x"}, "RANK"),
        ({"RANK": "2"}, "RANK"),
        ({"RANK": "-1"}, "RANK"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE"),
        ({"MASTER_PORT": ""}, "MASTER_PORT"),
        ({"LOCAL_RANK": ""}, "LOCAL_RANK"),
        ({"WORLD_SIZE": "4"}, "LOCAL_WORLD_SIZE"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused(changed, field):
    with pytest.raises(InputError) as raised:
        place_of(variables(place(1, 29_500)) | changed)
    assert field in str(raised.value)
