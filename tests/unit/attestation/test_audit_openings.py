"""Opening sets: what an honest trainer serves is read, and every other byte string is refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.judged_work import changed, committed, payload_of, trained

from troth_attestation import openings
from troth_attestation.errors import (
    OpeningError,
    OpeningFieldError,
    OpeningLengthError,
    OpeningNotFiniteError,
    OpeningPathError,
    OpeningRootError,
    OpeningTileError,
)
from troth_coordinator.rules.ids import NONE

HEAD = 1 + 32 + 8 + 2 + 8 + 8
WORK = trained(1)
DATA = WORK.data


def record(number):
    """Return where record `number` starts and ends."""
    at = HEAD
    for tile in (WORK.sampled.tiles * 2)[:number]:
        at += openings._record_bytes(tile, WORK.sampled.num_tiles)
    tile = (WORK.sampled.tiles * 2)[number]
    return at, at + openings._record_bytes(tile, WORK.sampled.num_tiles)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_an_honest_set_shows_both_residuals():
    shown = openings.decode(DATA, WORK.sampled)
    assert shown.tiles == WORK.sampled.tiles
    rows = list(shown.tiles)
    assert np.array_equal(shown.after, WORK.after.u[rows].reshape(len(rows), -1))
    assert np.array_equal(shown.before, WORK.before.u[rows].reshape(len(rows), -1))
    assert shown.after.dtype == np.float32
    assert len(DATA) == openings.size(WORK.sampled)


def test_a_full_set_is_about_two_mebibytes():
    big = changed(WORK, num_tiles=10**6, tiles=tuple(range(0, 10**6, 15_625)))
    assert 2**21 < openings.size(big) < 1.1 * 2**21


def test_without_a_previous_round_the_residual_before_is_zero():
    u = np.ones((3, 4096), np.float32)
    made = payload_of(None, u, u)
    assert made.sampled.previous_included == NONE
    shown = openings.decode(made.data, made.sampled)
    assert shown.tiles == (0, 1, 2)
    assert not shown.before.any()
    assert len(made.data) == openings.size(made.sampled)


@pytest.mark.parametrize("num_tiles", [1, 2, 3, 5, 33, 64])
def test_every_tile_count_can_be_opened(num_tiles):
    u = np.random.default_rng(num_tiles).normal(size=(num_tiles, 4096)).astype(np.float32)
    made = payload_of(u, 2 * u, u)
    assert openings.decode(made.data, made.sampled).after.shape[1] == 4096


@pytest.mark.parametrize("cut", [0, 1, HEAD - 1, HEAD, HEAD + 8, len(DATA) // 2, len(DATA) - 1])
def test_truncated_bytes_are_refused(cut):
    with pytest.raises(OpeningLengthError, match="bytes"):
        openings.decode(DATA[:cut], WORK.sampled)


def test_extended_bytes_are_refused():
    with pytest.raises(OpeningLengthError, match=f"found {len(DATA) + 1} bytes"):
        openings.decode(DATA + b"\0", WORK.sampled)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("round", 8),
        ("run", b"x" * 32),
        ("index", 6),
        ("previous_included", 7),
        ("previous_included", NONE),
        ("num_tiles", 46),
    ],
)
def test_a_set_of_something_else_is_refused_by_name(field, value):
    with pytest.raises(OpeningFieldError, match=field):
        openings.decode(DATA, changed(WORK, **{field: value}))


def test_another_version_is_refused():
    with pytest.raises(OpeningFieldError, match="version"):
        openings.decode(b"\1" + DATA[1:], WORK.sampled)


def test_swapped_records_are_refused():
    (a, b), (c, d) = record(0), record(1)
    swapped = DATA[:a] + DATA[c:d] + DATA[a:b] + DATA[d:]
    with pytest.raises((OpeningTileError, OpeningPathError)):
        openings.decode(swapped, WORK.sampled)


def test_a_record_of_another_tile_is_refused():
    at, _ = record(3)
    other = DATA[:at] + struct.pack("<Q", WORK.sampled.tiles[3] + 1) + DATA[at + 8 :]
    with pytest.raises(OpeningTileError, match=f"tile {WORK.sampled.tiles[3]}"):
        openings.decode(other, WORK.sampled)


def test_swapped_leaves_under_the_right_numbers_are_refused():
    (a, _), (c, _) = record(0), record(1)
    leaf = slice(a + 8, a + 8 + 16_384)
    swapped = bytearray(DATA)
    swapped[leaf] = DATA[c + 8 : c + 8 + 16_384]
    with pytest.raises(OpeningPathError, match=f"tile {WORK.sampled.tiles[0]}"):
        openings.decode(bytes(swapped), WORK.sampled)


@pytest.mark.parametrize("number", [0, 7, -1])
def test_a_wrong_path_is_refused(number):
    number %= 2 * len(WORK.sampled.tiles)
    _, end = record(number)
    with pytest.raises(OpeningPathError):
        openings.decode(flipped(DATA, end - 1), WORK.sampled)


def test_the_two_residuals_cannot_stand_for_each_other():
    with pytest.raises(OpeningPathError):
        openings.decode(DATA, changed(WORK, root_after=WORK.sampled.root_before))
    with pytest.raises(OpeningPathError):
        openings.decode(DATA, changed(WORK, root_before=WORK.sampled.root_after))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["after", "before"])
def test_values_that_are_not_finite_are_named_with_their_tile(value, side):
    tile = WORK.sampled.tiles[2]
    u = {name: getattr(WORK, name).u.reshape(-1, 4096).copy() for name in ("after", "before")}
    u[side][tile, 17] = value
    made = payload_of(u["before"], u["after"], WORK.own)
    with pytest.raises(OpeningNotFiniteError, match=f"tile {tile}: .* 1 NaN or infinite"):
        openings.decode(made.data, made.sampled)


def test_the_root_binds_every_byte():
    root = openings.openings_root(DATA)
    openings.check_root(DATA, root)
    for other in (flipped(DATA, 0), flipped(DATA, len(DATA) - 1), DATA + b"\0", DATA[:-1], b""):
        with pytest.raises(OpeningRootError):
            openings.check_root(other, root)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(DATA) - 1))
def test_any_flipped_bit_is_refused(at):
    with pytest.raises(OpeningError):
        openings.decode(flipped(DATA, at), WORK.sampled)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_refused(data):
    with pytest.raises(OpeningError):
        openings.decode(data, WORK.sampled)
    with pytest.raises(OpeningError):
        openings.decode(DATA[:HEAD] + data, WORK.sampled)


def test_a_trainer_cannot_open_another_residual_by_mistake():
    with pytest.raises(OpeningPathError, match="the header was signed for"):
        openings.encode(WORK.sampled, WORK.before, WORK.before)
    with pytest.raises(OpeningPathError, match="over 45 tiles"):
        openings.encode(WORK.sampled, committed(np.zeros((3, 4096))), WORK.before)
    with pytest.raises(OpeningFieldError, match="u of round 8"):
        openings.encode(WORK.sampled, WORK.after)
