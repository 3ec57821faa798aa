"""`troth join --ranks N`: the participant starts the processes that compute for it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.cli import Cli
from support.network import SECONDS, processes
from support.ranks import RUN, place, variables
from support.run_requests import request
from support.waiting import wait_for

from troth_cli.errors import InputError
from troth_cli.view.output import Output
from troth_cli.workflows import helping
from troth_cli.workflows.helping import Told
from troth_cli.workflows.ranks import place_of
from troth_client.train.place import Place

WINDOWS = ("chain.commit_slots=1200", "chain.attest_slots=800", "chain.warmup_slots=800")
WINDOWS += ("chain.vesting_slots=30000", "chain.unbond_slots=30000")
UNSAMPLED = ("chain.p_base_ppm=0", "chain.p_new_ppm=0")
ROUNDS = 5
SLOT_MS = 20
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="finds a rank in /proc")
REAL = pytest.mark.long(reason="a run of real processes, three of which import torch")


@pytest.fixture
def run(bench):
    return bench.create(
        *WINDOWS, *UNSAMPLED, f"schedule.rounds={ROUNDS}", "schedule.warmup_rounds=0"
    )


def helpers(run):
    """The process ids of the ranks that compute for a participant of this run."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _helps(path, run)]


def _helps(path, run):
    try:
        command = (path / "cmdline").read_bytes()
    except OSError:  # it ended meanwhile
        return False
    return run.encode() in command and helping.__name__.encode() in command


def with_ranks(bench, run, *options):
    return (*bench.join_arguments(run, "a"), "--ranks", "2", *options)


def events_of(bench, name):
    lines = (bench.folder / "state-a" / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def own_rounds(bench):
    """The rounds that were closed with our payload, and all that were closed."""
    closed = events_of(bench, "round_closed")
    return [one["round"] for one in closed if one["own"]], [one["round"] for one in closed]


@LINUX
@pytest.mark.processes
@REAL
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hangs"])
def test_a_helper_that_is_lost_costs_no_round(bench, run, how):
    """torchrun would end rank 0 within 30 seconds; a real Commit phase lasts a minute."""
    with processes(bench) as begin:
        ours = begin(with_ranks(bench, run), "a")
        other = begin(bench.join_arguments(run, "b"), "other")
        ours.wait_for("trained round=1")
        (helper,) = helpers(run)
        os.kill(helper, signal.SIGSTOP)
        if how == signal.SIGKILL:
            other.wait_for("trained round=2")  # then rank 0 computes as well, and waits for it
            os.kill(helper, how)
        code, values = ours.end()
        assert code == 0, ours.notes()
        assert values["is_finished"] is True
        assert not helpers(run)
        other_code, other_values = other.end()
        assert other_code == 0
        assert values["root"] == other_values["root"]
    with_payload, closed = own_rounds(bench)
    assert with_payload == closed
    assert closed == list(range(ROUNDS))
    (lost,) = events_of(bench, "ranks_lost")
    assert lost["goes_on"] == "on one device"
    (computing,) = events_of(bench, "computing")
    assert computing["ranks"] == 2


def join_and_stop(bench, run, begin):
    """Make us a member by a first life without ranks, which has ended."""
    first = begin(bench.join_arguments(run, "a"), "first")
    first.wait_for("round_closed round=0")
    first.signal(signal.SIGINT)
    assert first.end()[0] == 0


@LINUX
@pytest.mark.processes
@REAL
def test_a_member_that_comes_back_waits_for_a_helper_as_at_first(bench, run):
    """It took slots of 400 ms for granted: 120 seconds for a phase of 24."""
    with processes(bench) as begin:
        other = begin(bench.join_arguments(run, "b"), "other")
        join_and_stop(bench, run, begin)
        again = begin(with_ranks(bench, run), "again")
        again.wait_for("trained")
        (helper,) = helpers(run)
        os.kill(helper, signal.SIGSTOP)
        again.wait_for("ranks_lost")
        again.kill()
        os.kill(helper, signal.SIGKILL)
        other.kill()
    (lost,) = events_of(bench, "ranks_lost")
    (waited,) = re.findall(r"waiting (\d+)ms", lost["reason"])
    assert int(waited) <= SLOT_MS * 1200 / 2


@LINUX
@pytest.mark.processes
@REAL
def test_a_member_that_comes_back_meets_its_helpers_beside_its_reveals_and_needs_none(bench, run):
    """It was locked out with verdicts on disk, and a hidden verdict is the dearest fault."""
    with processes(bench) as begin:
        other = begin(bench.join_arguments(run, "b"), "other")
        join_and_stop(bench, run, begin)
        stopped = begin(with_ranks(bench, run), "stopped")
        hang_a_helper(run)
        wait_for(lambda: len(events_of(bench, "computing")) == 2, SECONDS)  # the weights are loaded
        stopped.signal(signal.SIGINT)
        assert stopped.code() == 130, stopped.notes()
        assert not helpers(run)
        again = begin(with_ranks(bench, run), "again")
        helper = hang_a_helper(run)
        wait_for(lambda: len(events_of(bench, "computing")) == 3, SECONDS)
        os.kill(helper, signal.SIGKILL)
        again.wait_for("trained")
        assert not helpers(run)
        again.kill()
        other.kill()
    lost = events_of(bench, "ranks_lost")[-1]
    assert "no rank 1" in lost["reason"]
    assert lost["goes_on"] == "on one device"


def hang_a_helper(run):
    """Stop a rank while it starts, and return its process id."""
    wait_for(lambda: helpers(run), SECONDS)
    (found,) = helpers(run)
    os.kill(found, signal.SIGSTOP)
    return found


@LINUX
@pytest.mark.processes
@REAL
def test_ctrl_c_finishes_the_round_and_a_kill_leaves_no_helper(bench, run):
    with processes(bench) as begin:
        other = begin(bench.join_arguments(run, "b"), "other")
        ours = begin(with_ranks(bench, run), "a")
        ours.wait_for("round_closed round=0")
        ours.signal(signal.SIGINT)
        code, values = ours.end()
        assert code == 0, ours.notes()
        assert values["is_finished"] is False
        assert not helpers(run)
        with_payload, closed = own_rounds(bench)
        assert with_payload == closed
        assert not events_of(bench, "ranks_lost")
        again = begin(with_ranks(bench, run), "again")
        again.wait_for("trained")
        assert len(helpers(run)) == 1
        again.kill()
        wait_for(lambda: not helpers(run), SECONDS)
        other.kill()


@pytest.mark.cuda
@pytest.mark.processes
def test_a_helper_that_cannot_start_ends_the_join_with_nothing_paid(bench, run):
    with processes(bench) as begin:
        arguments = list(with_ranks(bench, run))
        arguments[arguments.index("--device") + 1] = "cuda:99"
        ours = begin(arguments, "a")
        assert ours.code() == 1
    assert "no rank 1" in ours.notes()
    assert "the device 'cuda:99'" in ours.notes()
    assert bench.balance("a") == 10**10


HELPER = """
import logging, sys
from troth_cli.workflows import helping
code = helping.main(sys.argv[1])
logging.getLogger("gloo").warning("a warning\\nin two lines")
sys.exit(code)
"""


@pytest.mark.cuda
def test_a_helper_shows_errors_as_its_command_was_asked_to(tmp_path):
    where = (RUN, 1, 2, str(tmp_path))
    told = Told(*where, "cuda:99", 1, False, None, "auto", is_json=True, is_debug=True)
    command = [sys.executable, "-c", HELPER, told.to_text()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as helper:
        *traceback, error, warning = helper.stderr.read().decode().splitlines()
        assert helper.wait(SECONDS) == 1
    assert traceback[0] == "Traceback (most recent call last):"
    assert json.loads(error)["error"]["expected"] == "the device 'cuda:99'"
    assert warning == "warning: gloo: a warning"


def test_a_helper_computes_in_the_precision_of_rank_zero(tmp_path):
    """On a device without it, so that the refusal names it."""
    made = request(Keypair(), Pubkey.from_string(RUN), device="mps", precision="bf16")
    told = Told.of(made, Place(1, 2, 1, folder=tmp_path), Output(is_json=True))
    patched = f"import torch\ntorch.backends.mps.is_available = lambda: True\n{HELPER}"
    command = [sys.executable, "-c", patched, told.to_text()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as helper:
        error, *_warning = helper.stderr.read().decode().splitlines()
        assert helper.wait(SECONDS) == 1
    assert json.loads(error)["error"]["expected"] == "a precision of mps: fp32"


def test_a_helper_is_told_how_its_command_prints():
    made = request(Keypair(), Pubkey.from_string(RUN))
    at = Place(1, 2, 1, folder=Path("meeting"))
    told = Told.of(made, at, Output(is_json=True, is_debug=True))
    assert told.is_json
    assert told.is_debug
    assert not Told.of(made, at, Output(is_debug=True)).is_json
    assert not Told.of(made, at, Output(is_json=True)).is_debug


def test_a_process_that_is_asked_for_ranks_is_the_first_of_them():
    assert place_of({}, 3) == Place(0, 3, 0)


def test_ranks_are_started_by_us_or_by_torchrun():
    with pytest.raises(InputError, match="--ranks 2 under torchrun"):
        place_of(variables(place(0, 29_500)), 2)


def test_a_witness_has_no_ranks(capsys):
    arguments = ("join", RUN, "--role", "witness", "--ranks", "2", "--key", "none.json")
    error = Cli(capsys).refused(*arguments)
    assert error["kind"] == "InputError"
    assert error["found"] == "rank 0 of 2"
