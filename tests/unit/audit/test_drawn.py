"""No seed, no openings: what is drawn follows from a frozen seed and a signed header alone."""

import pytest
from support import opened
from support.fields import assert_fields
from support.views import round_view

from troth_attestation import sampling
from troth_client.audit.drawn import frozen_seed, sampled_payload
from troth_client.state.errors import SeedNotFrozenError
from troth_coordinator.rules.view import SeedStatus

SEED = b"s" * 32


@pytest.mark.parametrize("status", [one for one in SeedStatus if one != SeedStatus.FROZEN])
def test_a_seed_that_is_not_frozen_draws_nothing(status):
    with pytest.raises(SeedNotFrozenError, match=status.name.lower()):
        frozen_seed(round_view(seed_status=status, seed=SEED))


def test_a_frozen_seed_is_the_rounds():
    assert frozen_seed(round_view(seed_status=SeedStatus.FROZEN, seed=SEED)) == SEED


def test_the_zeros_of_an_account_are_no_seed():
    with pytest.raises(SeedNotFrozenError, match="round 9"):
        sampled_payload(bytes(32), opened.opened().header, opened.NUM_TILES, opened.NUM_DRAWN)


def test_the_draw_is_the_protocols_and_the_roots_are_the_headers():
    audit = opened.opened()
    sampled = sampled_payload(SEED, audit.header, opened.NUM_TILES, 7)
    assert sampled.tiles == sampling.drawn_tiles(SEED, 5, opened.NUM_TILES, 7)
    assert sampled.root_after == audit.after.tree.root
    assert sampled.root_before == audit.before.tree.root
    assert_fields(sampled, round=9, index=5, previous_included=7)
