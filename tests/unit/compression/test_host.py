"""Values that leave a device arrive whole and in order, and hash as on the processor."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from troth_attestation.pieces import StateName, pieces_of
from troth_attestation.state import residual_root, residual_root_of_parts
from troth_client.compression.host import HostArrays, HostCopy, host_array, streamed

TILE = 4096


def values(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("part", [TILE, 2 * TILE, 5 * TILE, 100 * TILE])
def test_parts_arrive_in_order_and_fill_the_target(part):
    source = values(5, 64, 64)
    target = np.full(5 * TILE, np.nan, np.float32)
    seen = [found.copy() for found in streamed(source, target, part)]
    assert [len(one) for one in seen] == [
        min(part, 5 * TILE - at) for at in range(0, 5 * TILE, part)
    ]
    assert np.array_equal(np.concatenate(seen), source.numpy().reshape(-1))
    assert np.array_equal(target, source.numpy().reshape(-1))


def test_a_part_is_there_before_the_next_is_asked_for():
    source, target = values(4, 64, 64), np.zeros(4 * TILE, np.float32)
    parts = streamed(source, target, TILE)
    next(parts)
    assert target[:TILE].all()
    assert not target[TILE:].any()


def test_strided_and_empty_sources_are_copied():
    source = values(64, 130).T
    target = np.zeros(source.numel(), np.float32)
    assert len(list(streamed(source, target, 1000))) == 9
    assert np.array_equal(target.reshape(130, 64), source.numpy())
    assert list(streamed(torch.empty(0), np.empty(0, np.float32))) == []


def test_on_a_processor_nothing_is_copied():
    source = torch.nn.Parameter(values(2, 64, 64))
    copy = HostCopy(source)
    assert np.shares_memory(copy.array, source.detach().numpy())
    (part,) = copy.parts()
    assert np.shares_memory(part, copy.array)
    assert np.shares_memory(host_array(source), copy.array)


def test_a_root_of_parts_is_that_of_the_whole():
    u, target = values(150, 64, 64), np.empty(150 * TILE, np.float32)
    assert residual_root_of_parts(streamed(u, target, 7 * TILE)) == residual_root(u.numpy())


def test_weights_are_asked_for_one_after_the_other_while_they_are_hashed():
    weights = {"b": values(300, 70), "a": values(20, 64)}
    state = StateName(3, 4, bytes(32))
    arrays = HostArrays(weights)
    with ThreadPoolExecutor(2) as pool:
        found = pieces_of(arrays, state, pool)
    assert found == pieces_of({n: w.numpy() for n, w in weights.items()}, state)
    assert list(arrays) == ["b", "a"]
    assert len(arrays) == 2
