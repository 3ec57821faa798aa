"""The residual remembers what was not sent, in fp32, and only what was included is forgotten."""

import pytest
import torch

from troth_client.compression.errors import TileShapeError
from troth_client.compression.residual import Residual
from troth_client.compression.topk import select


def tiles(seed, count=3):
    return torch.randn(count, 64, 64, generator=torch.Generator().manual_seed(seed))


def test_accumulate_decays_and_adds_without_touching_its_inputs():
    residual, gradient = tiles(0), tiles(1)
    before = residual.clone(), gradient.clone()
    u = Residual(950_000).accumulate(residual, gradient)
    assert torch.allclose(u, 0.95 * before[0] + before[1])
    assert torch.equal(residual, before[0])
    assert torch.equal(gradient, before[1])


def test_a_zero_residual_gives_a_copy_of_the_gradient():
    gradient = tiles(2)
    u = Residual(950_000).accumulate(None, gradient)
    assert torch.equal(u, gradient)
    assert torch.equal(u, Residual(950_000).accumulate(torch.zeros_like(gradient), gradient))
    assert u.data_ptr() != gradient.data_ptr()


@pytest.mark.parametrize(("alpha", "kept"), [(1_000_000, 0.0), (200_000, 0.8), (0, 1.0)])
def test_sent_entries_are_scaled_and_the_others_stay(alpha, kept):
    u = tiles(3)
    u[1] = 0
    sent = select(u, 8)
    after = Residual(950_000, alpha).after_included(u, sent).view(3, -1)
    sent_mask = torch.zeros(3, 4096, dtype=torch.bool).scatter_(
        1, torch.from_numpy(sent.indices).long(), True
    )
    flat = u.view(3, -1)
    assert torch.equal(after[~sent_mask], flat[~sent_mask])
    assert torch.allclose(after[sent_mask], kept * flat[sent_mask])
    assert torch.equal(u, tiles(3).index_fill_(0, torch.tensor([1]), 0))


def test_bf16_residuals_are_refused():
    with pytest.raises(TileShapeError, match="float32"):
        Residual(999_000).accumulate(tiles(0).bfloat16(), tiles(1))
    with pytest.raises(TileShapeError):
        Residual(999_000).accumulate(None, tiles(1).bfloat16())
