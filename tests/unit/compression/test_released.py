"""The baseline of the benchmarks does what the released optimizer's description says."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from troth_client.compression import released
from troth_client.compression.released import ReleasedDeMo, Sparse

SHAPES = {"w": (128, 130), "norm": (70,)}
RATE = 0.5


def drawn(seed):
    source = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=source) for name, shape in SHAPES.items()}


def energy(parts):
    return sum(float(part.values.square().sum()) for part in parts.values())


def test_all_coefficients_hold_all_of_the_momentum_and_leave_nothing():
    one, gradient = ReleasedDeMo(drawn(1), 64 * 64, RATE), drawn(2)
    first = one.encode(gradient)
    # The transform keeps lengths; what was sent is gone from the momentum.
    assert energy(first) == pytest.approx(
        sum(float((RATE * part).square().sum()) for part in gradient.values()), rel=1e-4
    )
    assert energy(one.encode({name: torch.zeros(shape) for name, shape in SHAPES.items()})) < 1e-6


def test_the_largest_of_each_tile_are_sent_and_the_rest_stays():
    every = ReleasedDeMo(drawn(1), 64 * 64, RATE).encode(drawn(2))
    one = ReleasedDeMo(drawn(1), 3, RATE)
    found = one.encode(drawn(2))
    assert {name: tuple(part.indices.shape) for name, part in found.items()} == {
        "w": (2, 5, 3),
        "norm": (1, 2, 3),
    }, "the sides of a tile divide those of its tensor: 26 of 130, and 35 of 70"
    for name, part in found.items():
        largest = every[name].values.abs().topk(3).values
        assert torch.allclose(part.values.abs().sort(descending=True).values, largest, atol=1e-4)
    rest = energy(one.encode({name: torch.zeros(shape) for name, shape in SHAPES.items()}))
    assert 0 < rest < energy(every)


def test_weights_move_by_the_sign_of_the_mean_over_those_who_sent_a_coefficient():
    weights = {"w": torch.zeros(1, 2)}
    one = ReleasedDeMo(weights, 1, RATE)
    # Coefficient 0 is the sum of both values, coefficient 1 their difference.
    sums = [Sparse(torch.tensor([[[0]]]), torch.tensor([[[value]]])) for value in (3.0, -1.0)]
    difference = Sparse(torch.tensor([[[1]]]), torch.tensor([[[1.5]]]))
    one.apply([{"w": part} for part in (*sums, difference)])
    assert weights["w"].tolist() == [[-RATE, RATE]], "the sums are 1 on average, 2 together"
    one.apply([{"w": sums[0]}])
    assert weights["w"].tolist() == [[-2 * RATE, 0.0]]


@pytest.mark.cuda
def test_everything_stays_on_the_device_of_the_weights():
    """Tensors without values know their device, and refuse to meet those of another one."""
    released._basis.cache_clear()
    try:
        with FakeTensorMode():
            there = {name: torch.empty(shape, device="cuda") for name, shape in SHAPES.items()}
            one = ReleasedDeMo(there, 4, RATE)
            sent = one.encode(there)
            one.apply([sent, sent])
        assert {part.values.device.type for part in sent.values()} == {"cuda"}
    finally:
        released._basis.cache_clear()
