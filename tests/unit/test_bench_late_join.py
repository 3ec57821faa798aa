"""The benchmark of a late join plays the model that its options name."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/bench/late_join.py"
WIDE = {"hidden_size": 64, "intermediate_size": 256}


def load():
    spec = importlib.util.spec_from_file_location("late_join", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


late_join = load()


@pytest.mark.parametrize(
    ("hidden", "layers", "changes"),
    [
        (None, None, {}),
        (None, 3, {"num_hidden_layers": 3}),
        (64, None, {**WIDE, "num_hidden_layers": 4}),
        (64, 3, {**WIDE, "num_hidden_layers": 3}),
    ],
)
def test_each_option_counts_also_without_the_other(hidden, layers, changes):
    assert late_join.model_of(hidden, layers) == changes
