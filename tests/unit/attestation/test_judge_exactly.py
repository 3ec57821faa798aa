"""The part of the judge that needs no gradient: it finds what the whole judge finds, or nothing."""

from dataclasses import replace

import pytest
from support.headers import HEADER
from support.judged_work import NUM_DRAWN, NUM_TILES, RULE, SIGMA, trained

from troth_attestation import work as judge_module
from troth_attestation.openings import Sampled
from troth_attestation.sampling import drawn_tiles
from troth_attestation.verdict import Reason, VerdictKind
from troth_attestation.work import judge_exactly


@pytest.fixture(scope="module")
def work():
    return trained(1)


def exactly(work, **changes):
    """The verdict on what a trainer shows, with other arguments by name."""
    given = {"data": work.data, "sampled": work.sampled, "signs": work.signs} | changes
    return judge_exactly(given["data"], given["sampled"], given["signs"], RULE)


def test_honest_work_leaves_the_verdict_to_the_gradient(work):
    assert exactly(work) is None
    assert exactly(trained(1, lambda _parts, before, _rng: before.mean(axis=0))) is None


def test_a_payload_that_is_not_the_top_k_is_a_mismatch_whatever_the_gradient(work):
    negative = work.signs.negative.copy()
    negative[work.sampled.tiles[0], 0] ^= True
    found = exactly(work, signs=replace(work.signs, negative=negative))
    assert found.kind is VerdictKind.MISMATCH
    assert found.reason is Reason.PAYLOAD_NOT_TOP_K
    assert found.tile == work.sampled.tiles[0]


@pytest.mark.parametrize("together", [1, 5, NUM_DRAWN - 1, NUM_DRAWN, 1000])
def test_the_first_wrong_tile_is_found_wherever_it_lies(work, monkeypatch, together):
    monkeypatch.setattr(judge_module, "TILES_TOGETHER", together)
    for first in (0, 4, NUM_DRAWN - 1):
        negative = work.signs.negative.copy()
        negative[list(work.sampled.tiles[first:]), -1] ^= True
        found = exactly(work, signs=replace(work.signs, negative=negative))
        assert found.tile == work.sampled.tiles[first]
    assert exactly(work) is None


def test_presence_and_places_are_compared_too(work):
    tile = work.sampled.tiles[3]
    present, indices = work.signs.present.copy(), work.signs.indices.copy()
    present[tile] ^= True
    assert exactly(work, signs=replace(work.signs, present=present)).tile == tile
    indices[tile, 0] ^= 1
    assert exactly(work, signs=replace(work.signs, indices=indices)).tile == tile


def test_a_malformed_payload_is_a_mismatch(work):
    few = replace(
        work.signs,
        present=work.signs.present[:-1],
        indices=work.signs.indices[:-1],
        negative=work.signs.negative[:-1],
    )
    for signs in (None, few):
        found = exactly(work, signs=signs)
        assert found.kind is VerdictKind.MISMATCH
        assert found.reason is Reason.PAYLOAD_MALFORMED


def test_bytes_that_are_no_opened_tiles_are_unavailable(work):
    altered = bytearray(work.data)
    altered[-1] ^= 1
    for data, reason in (
        (work.data[:-1], Reason.OPENINGS_LENGTH),
        (bytes(altered), Reason.OPENINGS_PATH),
    ):
        found = exactly(work, data=data)
        assert found.kind is VerdictKind.UNAVAILABLE
        assert found.reason is reason


def test_what_is_sampled_of_a_header_follows_from_the_seed():
    found = Sampled.of(HEADER, SIGMA, NUM_TILES, NUM_DRAWN)
    assert found.tiles == drawn_tiles(SIGMA, HEADER.index, NUM_TILES, NUM_DRAWN)
    assert found.root_after == HEADER.residual_after
    assert found.root_before == HEADER.residual_before
    assert found.previous_included == HEADER.previous_included
