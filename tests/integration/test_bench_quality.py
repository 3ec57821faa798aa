"""The comparison of methods: a killed one goes on to the bit, grids widen, findings are told."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import training
from json_lines import read_lines
from quality import search
from quality_plot import svg_of
from quality_table import ARMS, findings, table
from support.fields import assert_fields
from support.waiting import wait_for
from training import Point, Sweep

SCRIPT = Path(training.__file__).with_name("quality.py")
ROUNDS = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of the data set, which the first sweep prepares."""
    return tmp_path_factory.mktemp("words") / "data"


def point(name, **changes):
    arm = ARMS[name]
    values = {"size": "smoke", "rounds": 6, "lr_nano": arm.rates_nano[1], "seed": 1}
    return Point(**values, method=arm.method, k=arm.k, **changes)


def without_time(line):
    found = json.loads(json.dumps(line))
    return {name: value for name, value in found.items() if name != "seconds_a_round"}


def command(out, data):
    sizes = ("--sizes", "smoke", "--rounds", str(ROUNDS), "--every", "1", "--seeds", "0")
    return [sys.executable, SCRIPT, *sizes, "--arms", "delayed-32", "--out", out, "--data", data]


@pytest.mark.long(reason="short runs of each method on a data set of the whole standard library")
@pytest.mark.parametrize("name", ["adamw", "signum", "demo-4", "delayed-32"])
def test_each_method_goes_on_to_the_bit_where_it_was_interrupted(name, tmp_path, data, monkeypatch):
    whole = Sweep(tmp_path / "whole.jsonl", data, every=2).play(point(name))
    assert whole["losses"][6] < whole["losses"][2]
    evaluate, seen = training.evaluate, []

    def interrupted(model, batch, **options):
        seen.append(model)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return evaluate(model, batch, **options)

    monkeypatch.setattr(training, "evaluate", interrupted)
    out = tmp_path / "again.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Sweep(out, data, every=2).play(point(name))
    assert list(read_lines(out)) == []
    again = Sweep(out, data, every=2).play(point(name))
    assert len(seen) == 4, "it began at round 4, not anew"
    assert without_time(again) == without_time(whole)
    assert list(tmp_path.glob("*.npz")) == []


@pytest.mark.long(reason="the script as a process, twice, on a data set of the standard library")
def test_a_script_killed_without_warning_finds_what_an_unbroken_one_finds(tmp_path, data):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    out, unbroken = tmp_path / "killed.jsonl", tmp_path / "unbroken.jsonl"
    part = out.with_suffix(".part.npz")
    killed = subprocess.Popen(command(out, data), env=environment, **quiet)
    try:
        wait_for(lambda: out.exists() and part.exists(), 400)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert killed.returncode == -signal.SIGKILL
    num_finished = len(list(read_lines(out)))
    for path in (out, unbroken):
        subprocess.run(command(path, data), env=environment, check=True, **quiet)
    lines = [without_time(line) for line in read_lines(out)]
    assert len(lines) > num_finished
    assert lines == [without_time(line) for line in read_lines(unbroken)]


@pytest.mark.long(reason="a short run on a data set of the whole standard library")
def test_what_is_in_the_file_is_not_played_again_and_half_a_line_is_no_run(tmp_path, data):
    out = tmp_path / "runs.jsonl"
    first = Sweep(out, data, every=3).play(point("demo-32"))
    with out.open("a") as stream:
        stream.write('{"key": "half')
    again = Sweep(out, data, every=3).play(point("demo-32"))
    assert json.dumps(again) == json.dumps(first), "with the seconds of the first time"


@pytest.mark.long(reason="a short run on a data set of the whole standard library")
def test_a_rate_that_diverges_is_a_result(tmp_path, data):
    fast = replace(point("demo-32"), lr_nano=10**9)
    found = Sweep(tmp_path / "runs.jsonl", data, every=3).play(fast)
    assert found["has_diverged"] or found["losses"][6] > 10, found


@pytest.mark.long(reason="two short runs on a data set of the whole standard library")
def test_an_update_that_comes_a_round_late_is_another_run_with_the_same_text(tmp_path, data):
    sweep = Sweep(tmp_path / "runs.jsonl", data, every=1)
    prompt, late = sweep.play(point("demo-32")), sweep.play(point("delayed-32"))
    assert late["losses"][1] > prompt["losses"][1], "nothing is applied in the first round"
    assert late["weights"] != prompt["weights"]
    assert late["tokens"] == prompt["tokens"]
    assert late["num_bytes"] == prompt["num_bytes"]


@pytest.mark.parametrize(
    ("best", "expected"), [(1_500_000, {750, 1500, 3000}), (375_000, {187, 375, 750, 1500, 3000})]
)
def test_a_grid_of_rates_widens_until_its_best_lies_inside(best, expected):
    tried = []

    def loss_at(rate):
        tried.append(rate)
        return abs(rate - best)

    assert search(loss_at, (750_000, 1_500_000, 3_000_000)) == best
    assert {rate // 1_000 for rate in tried} == expected


def test_a_grid_widens_upwards_and_leaves_rates_that_diverge():
    losses = {1: 3.0, 2: 2.0, 4: 1.0, 8: float("inf")}
    assert search(losses.__getitem__, (1, 2)) == 4


def line(name, lr_nano, seed, last, *, has_diverged=False):
    arm = ARMS[name]
    return {
        "size": "demo",
        "method": arm.method,
        "k": arm.k,
        "num_parameters": 656_256,
        "num_bytes": 9_216,
        "tokens": 20_480,
        "rounds": 10,
        "lr_nano": lr_nano,
        "seed": seed,
        "losses": {"5": 4.0, "10": last},
        "has_diverged": has_diverged,
    }


LINES = [
    line("demo-32", 1_500_000, 0, 3.0),
    line("demo-32", 3_000_000, 0, 2.0),
    line("demo-32", 3_000_000, 1, 2.5),
    line("demo-32", 6_000_000, 0, 1.0, has_diverged=True),
    line("adamw", 3_000_000, 0, 1.75),
]


def test_the_table_has_each_method_at_its_best_rate_with_mean_and_range():
    first, second = findings(LINES)
    assert_fields(first, title="AdamW", last=[1.75])
    assert_fields(second, best_nano=3_000_000, last=[2.0, 2.5])
    row = table([second]).splitlines()[-1]
    assert "0.0015: 3.000, **0.003: 2.000**, 0.006: diverged" in row
    assert "| **2.250** | 2.000 to 2.500 | 2 |" in row


def test_the_picture_says_in_words_what_it_shows():
    svg = svg_of(findings(LINES))
    assert "656,256 parameters, DeMo, k = 32: 2.250 nats a byte after 20,480 tokens." in svg
    assert svg == svg_of(findings(LINES))
