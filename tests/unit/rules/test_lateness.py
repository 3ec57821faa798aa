"""The ring and the checkpoints: when newcomers can replay to the open round."""

from dataclasses import replace

import pytest
from support.views import PARAMS

from troth_coordinator.config_files import load_config
from troth_coordinator.rules.lateness import (
    VOID_ROUNDS_TO_HALT,
    least_ring,
    rounds_closed_to_newcomers,
)


def closed_by_counting(ring: int, every: int) -> int:
    """Count the open rounds at which a few void rounds would let the newest checkpoint go."""
    return sum(age + VOID_ROUNDS_TO_HALT >= ring for age in range(1, every + 1))


@pytest.mark.parametrize(
    ("ring", "every"), [(16, 10), (16, 12), (16, 20), (8, 4), (6, 100), (64, 50)]
)
def test_closed_rounds_are_those_whose_way_has_left_the_ring(ring, every):
    params = replace(PARAMS, ring=ring, checkpoint_every=every)
    assert rounds_closed_to_newcomers(params) == closed_by_counting(ring, every)


@pytest.mark.parametrize("preset", ["localnet", "public"])
def test_presets_let_newcomers_in_at_any_time(preset):
    params = load_config([], {"chain": {"preset": preset}}).chain.to_view()
    assert rounds_closed_to_newcomers(params) == 0
    assert params.ring >= least_ring(params.checkpoint_every)
