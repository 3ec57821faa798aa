"""The benchmark of a late join plays the model that its options name."""

import pytest
from support.scripts import script

WIDE = {"hidden_size": 64, "intermediate_size": 256}


late_join = script("bench/late_join.py")


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
