"""The training of a preset's size: it ends in time, goes on to the bit, and shows its curve."""

import itertools
import sys

import presets
import pytest
import training
from training import SIZES, read_lines

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


def test_a_run_of_few_rounds_is_refused(call, capsys):
    with pytest.raises(SystemExit):
        call("unused", "--rounds", 9)
    assert "expected 10 rounds or more" in capsys.readouterr().err
