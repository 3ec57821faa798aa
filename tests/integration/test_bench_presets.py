"""The training of a preset's size: it ends in time, goes on to the bit, and shows its curve."""

import itertools
import sys

import presets
import pytest
import training
from json_lines import read_lines
from training import SIZES

from troth_client.model.shapes import num_parameters

RUN = ("--size", "smoke", "--rounds", 10, "--every", 2, "--device", "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of the data set, which the first run prepares."""
    return tmp_path_factory.mktemp("words") / "data"


@pytest.fixture
def call(monkeypatch, data):
    """Calls the script as from a shell; returns its exit status."""

    def call(out, *arguments):
        shape = ("--data", data, "--out", out)
        monkeypatch.setattr(sys, "argv", ["presets.py", *map(str, (*RUN, *shape, *arguments))])
        return presets.main()

    return call


@pytest.mark.long(reason="two short runs on a data set of the whole standard library")
def test_a_run_whose_time_is_up_goes_on_to_what_an_unbroken_one_finds(
    call, tmp_path, monkeypatch, capsys
):
    unbroken, paused = tmp_path / "unbroken.jsonl", tmp_path / "paused.jsonl"
    assert call(unbroken) == 0
    with monkeypatch.context() as patch:
        minutes = itertools.count(step=60)
        patch.setattr(training.time, "perf_counter", lambda: float(next(minutes)))
        assert call(paused, "--minutes", 3.5) == presets.UNFINISHED
    assert "3 of 10 rounds are played; the same command goes on" in capsys.readouterr().err
    assert list(read_lines(paused)) == []
    assert call(paused) == 0
    (expected,), (found,) = read_lines(unbroken), read_lines(paused)
    assert found["losses"] == expected["losses"]
    assert found["weights"] == expected["weights"]
    assert found["tokens"] == found["rounds"] * found["tokens_a_round"]
    assert found["losses"]["10"] < found["losses"]["2"]
    assert capsys.readouterr().out.count("| smoke | 69,824 | demo, k = 32 | cpu, fp32 | 10 |") == 1
    drawing = tmp_path / "curve.svg"
    assert call(paused, "--table", unbroken, "--plot", drawing) == 0
    words = f"{expected['losses']['10']:.3f} nats a byte after 20,480 tokens."
    assert words in drawing.read_text()


@pytest.mark.long(reason="a short run on a data set of the whole standard library")
def test_a_run_may_be_saved_less_often_than_its_loss_is_measured(call, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(training.State, "save", lambda state, *_: saved.append(state.round))
    assert call(tmp_path / "seldom.jsonl", "--save-every", 4) == 0
    (found,) = read_lines(tmp_path / "seldom.jsonl")
    assert saved == [4, 8]
    assert list(found["losses"]) == ["2", "4", "6", "8", "10"]


def test_a_run_has_the_presets_rate_batch_and_model_unless_another_is_asked_for(call, monkeypatch):
    asked = []
    monkeypatch.setattr(presets.Sweep, "__init__", lambda *arguments: None)
    monkeypatch.setattr(presets.Sweep, "play", lambda _self, point, _seconds: asked.append(point))
    monkeypatch.setattr(presets, "show", lambda *arguments: None)
    assert call("unused", "--size", "124m") == 0
    assert call("unused", "--size", "25m", "--lr", "0.001", "--sequences", "8") == 0
    first, second = (point.config() for point in asked)
    assert num_parameters(first.model) == 123_587_328
    assert first.train == SIZES["124m"].config().train
    assert first.schedule.lr_nano == 400_000
    assert second.schedule.lr_nano == 1_000_000
    assert second.train.sequences_per_payload == 8


DIVERGED = {
    "size": "smoke",
    "method": "adamw",
    "k": 32,
    "device": "cpu",
    "rounds": 40,
    "lr_nano": 10**9,
    "seed": 0,
    "num_parameters": 69_824,
    "num_bytes": 1,
    "seconds_a_round": 1.0,
    "tokens": 24 * 2_048,
    "tokens_a_round": 2_048,
    "losses": {"10": 5.25, "20": 6.5},
    "has_diverged": True,
}
"""A run of which no loss was measured after round 20; it ended in round 25."""


def test_a_loss_is_at_the_tokens_of_its_round_also_where_the_run_diverged_later():
    assert dict(presets.curve_of(DIVERGED)) == {20_480: 5.25, 40_960: 6.5}


def test_a_line_of_before_tokens_a_round_were_kept_has_its_curve():
    old = {**DIVERGED, "tokens": 40 * 2_048, "losses": {"20": 5.25, "40": 5.0}}
    del old["tokens_a_round"]
    assert dict(presets.curve_of(old)) == {40_960: 5.25, 81_920: 5.0}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["5.250 after 10", "6.500 after 20", "inf after 20"]),
        (
            {"losses": {"5": 5.5, "10": 5.25, "100": 1.0}, "has_diverged": False},
            ["5.500 after 5", "5.250 after 10", "1.000 after 100"],
        ),
    ],
)
def test_each_loss_of_the_table_has_its_round(changes, expected):
    _head, _line, row = presets.table([{**DIVERGED, **changes}]).splitlines()
    assert row.split(" | ")[7:10] == expected


def test_help_tells_models_of_one_name_apart(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["presets.py", "--help"])
    with pytest.raises(SystemExit):
        presets.main()
    assert "6m 6,426,880;" in " ".join(capsys.readouterr().out.split())


def test_a_run_of_few_rounds_is_refused(call, capsys):
    with pytest.raises(SystemExit):
        call("unused", "--rounds", 9)
    assert "expected 10 rounds or more" in capsys.readouterr().err
