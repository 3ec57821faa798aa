"""`troth profile` with real ranks: bytes as computed, time as the cable allows, nothing left."""

import json
import os
import signal
import subprocess
import sys

import pytest
from support.profiles import left_of, pids_in
from support.waiting import wait_for

from troth_simulation.faults.namespaces import refusal

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long(reason="each rank imports torch, and cables of 10 Mbit/s are slow"),
]
TINY = {
    "model.hidden_size": 64,
    "model.intermediate_size": 128,
    "model.num_hidden_layers": 2,
    "data.sequence_tokens": 64,
    "schedule.rounds": 10,
    "schedule.decay_from_round": 10,
    "train.sequences_per_payload": 2,
}
SETTINGS = [part for name, value in TINY.items() for part in ("--set", f"{name}={value}")]
COMMON = ["--model", "demo", "--ranks", "2", *SETTINGS]
BURST_BYTES = 16_000
SECONDS = 240


@pytest.fixture
def permitted():
    found = refusal()
    if found:
        pytest.skip(f"namespaces with bounded rates cannot be made here: {found}")


def started(*arguments):
    command = [
        sys.executable,
        "-m",
        "troth_cli",
        "profile",
        *COMMON,
        *map(str, arguments),
        "--json",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(*arguments):
    process = started(*arguments)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert left_of(process.pid) == []
    return json.loads(out)


def by_method(rows, mbit):
    return {row["method"]: row for row in rows if row["mbit"] == mbit}


def test_on_loopback_each_method_sends_what_its_collectives_need_and_learns(tmp_path):
    values = finished("--no-shaping", "--out", tmp_path)
    rows = by_method(values["measured"], None)
    assert list(rows) == ["ddp", "fsdp", "diloco", "demo"]
    dense = 4 * rows["ddp"]["num_parameters"]
    # An all-reduce among n ranks sends 2 (n - 1) / n of the data: here all of it once.
    assert rows["ddp"]["sent_bytes"] == pytest.approx(dense, rel=0.03)
    assert rows["ddp"]["received_bytes"] == pytest.approx(dense, rel=0.03)
    assert rows["diloco"]["sent_bytes"] == pytest.approx(dense / 10, rel=0.05)
    assert rows["diloco"]["num_steps"] == 10
    assert rows["fsdp"]["sent_bytes"] > 1.25 * dense
    assert rows["demo"]["sent_bytes"] < dense / 20
    curves = {one["method"]: dict(one["points"]) for one in values["losses"]}
    assert {curve[0] for curve in curves.values()} == {curves["ddp"][0]}
    assert set(curves["ddp"]) == set(range(11))
    assert set(curves["diloco"]) == {0, 10}, "in between the ranks hold different weights"
    assert all(curve[10] < curve[0] - 0.3 for curve in curves.values())
    # The same gradient, averaged in two ways.
    assert curves["fsdp"][10] == pytest.approx(curves["ddp"][10], abs=0.001)
    assert curves["demo"][10] != curves["ddp"][10]
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "profile.json",
        "profile.md",
        "profile.svg",
    ]
    assert json.loads((tmp_path / "profile.json").read_text()) == values


@pytest.mark.usefixtures("permitted")
def test_a_cable_bounds_the_rate_and_its_bytes_are_those_of_the_collective():
    values = finished("--mbit", "10", "--method", "ddp", "--method", "demo")
    rows = by_method(values["measured"], 10)
    dense = 4 * rows["ddp"]["num_parameters"]
    # Headers are 5 % of a full frame, and a few frames are acknowledgements or sent again.
    assert dense < rows["ddp"]["sent_bytes"] < 1.12 * dense
    num_steps = rows["ddp"]["num_steps"]
    least = (rows["ddp"]["sent_bytes"] - BURST_BYTES / num_steps) * 8 / 10**7
    assert rows["ddp"]["slowest_seconds"] >= least
    free = by_method(values["measured"], None)
    assert rows["ddp"]["seconds"] > free["ddp"]["seconds"]
    composed = {(one["method"], one["mbit"]): one["points"][-1] for one in values["composed"]}
    assert composed["ddp", 10][0] == pytest.approx(10 * rows["ddp"]["seconds"])


@pytest.mark.usefixtures("permitted")
def test_a_killed_rank_is_named_and_nothing_is_left():
    process = started("--mbit", "1", "--method", "ddp", "--steps", "500")
    ranks = housed(process)
    os.kill(ranks[1], signal.SIGKILL)
    out, err = process.communicate(timeout=SECONDS)
    error = json.loads(err.splitlines()[-1])["error"]
    assert process.returncode == 1
    assert out == ""
    assert error["kind"] == "RankEndedError"
    assert error["subject"] == "ddp, rank 1"
    assert error["found"] == "signal SIGKILL ended it"
    check_gone(process.pid, ranks)


@pytest.mark.usefixtures("permitted")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_profile_leaves_nothing(number):
    process = started("--mbit", "1", "--method", "ddp", "--steps", "500")
    ranks = housed(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "interrupted"
    check_gone(process.pid, ranks)


def housed(process):
    """The process of each rank, once both live in their namespaces."""

    def look():
        assert process.poll() is None, process.communicate()
        found = [pids_in(f"tf{process.pid}-{rank}") for rank in range(2)]
        return found if all(found) else None

    return [pids[0] for pids in wait_for(look, SECONDS)]


def check_gone(pid, ranks):
    assert left_of(pid) == []
    assert [one for one in ranks if os.path.exists(f"/proc/{one}")] == []  # noqa: PTH110
