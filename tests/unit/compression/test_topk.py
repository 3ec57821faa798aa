"""The canonical choice: exact under ties, zeros, subnormal numbers and both zeros."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference

from troth_client.compression import topk
from troth_client.compression.errors import NonFiniteError, TileShapeError, UnsupportedKError
from troth_client.compression.topk import select, top_k

K = st.sampled_from(reference.ALL_K)
TINY = float(np.float32(1e-45))
# Few distinct values: ties everywhere, also across the cut.
VALUES = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, TINY, -TINY, 3.4e38, -3.4e38, 1e-38]),
    min_size=1,
    max_size=40,
)


def agree(u, k):
    found = select(torch.from_numpy(u), k)
    assert found.num_tiles == len(u)
    assert found.k == k
    assert found.indices.dtype == np.int16
    for tile, values in enumerate(u):
        present, indices, negative = reference.choose(values, k)
        assert bool(found.present[tile]) == present
        assert found.indices[tile].tolist() == indices
        assert found.negative[tile].tolist() == negative


@settings(max_examples=150, deadline=None)
@given(VALUES, K, st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_choice_equals_the_reference_under_ties(values, k, seed, tiles):
    rng = np.random.default_rng(seed)
    u = np.zeros((tiles, 4096), np.float32)
    places = rng.permutation(4096)[: len(values)]
    u[:, places] = np.array(values, np.float32)
    agree(u.reshape(-1, 64, 64), k)


@pytest.mark.parametrize("k", reference.ALL_K)
def test_choice_equals_the_reference_on_dense_tiles(k):
    u = np.random.default_rng(k).standard_normal((9, 64, 64)).astype(np.float32)
    u[2] = 0
    u[3] = -0.0
    u[4] = 1
    u[5] = np.round(u[5])
    u[6, 1:] = 0
    u[7] = -1
    agree(u, k)


@settings(max_examples=60, deadline=None)
@given(VALUES, K, st.integers(0, 2**32 - 1))
def test_a_device_chooses_as_a_processor_does(values, k, seed):
    rng = np.random.default_rng(seed)
    u = np.zeros((3, 4096), np.float32)
    u[:, rng.permutation(4096)[: len(values)]] = np.array(values, np.float32)
    u[2] = rng.standard_normal(4096)
    tiles = torch.from_numpy(u.reshape(3, 64, 64))
    ours, theirs = top_k(tiles, k), topk._on_the_device(torch.from_numpy(u), k)
    assert np.array_equal(theirs.indices, ours.indices)
    assert np.array_equal(theirs.negative, ours.negative)


def test_blocks_make_no_difference():
    u = torch.randn(300, 64, 64, generator=torch.Generator().manual_seed(3))
    whole = select(u, 8)
    for tile in (0, 31, 32, 127, 128, 299):
        one = select(u[tile : tile + 1], 8)
        assert np.array_equal(one.indices[0], whole.indices[tile])
        assert np.array_equal(one.negative[0], whole.negative[tile])


def test_subnormal_numbers_are_seen_with_flush_to_zero_on():
    u = torch.zeros(1, 64, 64)
    u.view(torch.int32)[0, 5, 5] = -0x7FFFFFFF  # the smallest negative number
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush")
    try:
        found = top_k(u, 1)
    finally:
        torch.set_flush_denormal(False)
    assert select(u, 1).present.tolist() == [False]
    assert found.indices.tolist() == [[325]]
    assert found.negative.tolist() == [[True]]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_refused(bad):
    u = torch.ones(200, 64, 64)
    u[150, 3, 3] = bad
    with pytest.raises(NonFiniteError, match="tile 150"):
        select(u, 4)


@pytest.mark.parametrize("k", [0, 3, 65, 128, -1])
def test_other_k_are_refused(k):
    with pytest.raises(UnsupportedKError):
        select(torch.ones(1, 64, 64), k)


def test_half_precision_is_refused():
    with pytest.raises(TileShapeError, match="float32"):
        select(torch.ones(1, 64, 64, dtype=torch.bfloat16), 1)
