"""The sweep of learning rates: nothing is played twice, and a rate that diverges is a result."""

import json

import pytest
from learning_rates import table
from training import Point, Sweep

pytestmark = pytest.mark.long(reason="a data set of the whole standard library, some short runs")
POINT = Point("smoke", 6, 1_500_000, 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of the data set, which the first sweep prepares."""
    return tmp_path_factory.mktemp("words") / "data"


def without_time(line):
    found = json.loads(json.dumps(line))
    return {name: value for name, value in found.items() if name != "seconds_a_round"}


def test_what_is_in_the_file_is_not_played_again_and_half_a_line_is_cut_off(tmp_path, data):
    out = tmp_path / "runs.jsonl"
    first = Sweep(out, data, every=3).play(POINT)
    with out.open("a") as stream:
        stream.write('{"key": "half')
    assert without_time(Sweep(out, data, every=3).play(POINT)) == without_time(first)
    assert len(out.read_text().splitlines()) == 1
    assert "| smoke | 69,824 | 6 | 0 |" in table(out)


def test_a_rate_that_diverges_is_a_result(tmp_path, data):
    found = Sweep(tmp_path / "runs.jsonl", data, every=3).play(Point("smoke", 6, 10**9, 0))
    loss = found["losses"].get(6, 0)
    assert found["has_diverged"] or loss > 10, found
    assert "0.0015" not in table(tmp_path / "runs.jsonl")
