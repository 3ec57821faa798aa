"""The float transform: orthonormal, per tile, and fp32 whatever surrounds it."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from troth_client.compression import dct
from troth_client.compression.basis import float_basis
from troth_client.compression.dct import dct2
from troth_client.compression.errors import TileShapeError


@pytest.mark.parametrize("tiles", [1, 127, 128, 129, 300])
def test_transform_is_b_x_bt_of_each_tile(tiles):
    x = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(tiles))
    basis = float_basis()
    exact = basis @ x.numpy().astype(np.float64) @ basis.T
    assert np.abs(dct2(x).numpy() - exact).max() < 2e-5


def test_energy_is_kept():
    x = torch.randn(5, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(dct2(x).norm(), x.norm(), rtol=1e-5)


def test_a_constant_tile_has_one_coefficient():
    y = dct2(torch.ones(1, 64, 64))
    assert y[0, 0, 0] == pytest.approx(64, rel=1e-6)
    y[0, 0, 0] = 0
    assert y.abs().max() < 1e-4


def test_autocast_does_not_reach_the_transform():
    x = torch.randn(3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(dct2(x), dct2(x.clone()))
        inside = dct2(x)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, dct2(x))


@pytest.mark.parametrize(
    "bad", [torch.zeros(64, 64), torch.zeros(2, 64, 63), torch.zeros(2, 64, 64).double()]
)
def test_other_shapes_and_dtypes_are_refused(bad):
    with pytest.raises(TileShapeError):
        dct2(bad)


@pytest.mark.parametrize("tiles", [1, 129, 300])
def test_in_place_it_gives_the_same_bits_in_the_same_memory(tiles):
    x = torch.randn(tiles, 64, 64, generator=torch.Generator().manual_seed(tiles))
    expected, place = dct2(x), x.data_ptr()
    found = dct2(x, in_place=True)
    assert torch.equal(found.view(torch.int32), expected.view(torch.int32))
    assert found.data_ptr() == x.data_ptr() == place


@pytest.mark.cuda
def test_the_transform_is_full_fp32_where_a_process_allows_tf32(monkeypatch):
    matmul, seen = torch.backends.cuda.matmul, []
    monkeypatch.setattr(dct, "two_sided", lambda *_tiles: seen.append(matmul.fp32_precision))
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with FakeTensorMode():
            dct.dct2(torch.empty((1, 64, 64), device="cuda"))
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before
    assert seen == ["ieee"]
