"""The residual remembers what was not sent, in fp32, and only what was included is forgotten.

That its bits are those of a judge: tests/unit/attestation/test_selection.py.
"""

import pytest
import torch
from support.kernels import carried, momentum_of

from troth_client.compression.errors import TileShapeError
from troth_client.compression.residual import Carried, Moved, Residual
from troth_client.compression.topk import top_k
from troth_coordinator.rules.config import DemoSection, JudgeSection, RunConfig


def tiles(seed, count=3):
    return torch.randn(count, 64, 64, generator=torch.Generator().manual_seed(seed))


def test_the_rule_is_that_of_the_config():
    demo, judge = DemoSection(beta_micro=1, alpha_micro=2), JudgeSection(sent_floor_log2=33)
    assert Residual.of(RunConfig(demo=demo, judge=judge)) == Residual(1, 2, 33)


def test_accumulate_decays_and_adds_without_touching_its_inputs():
    before, gradient = carried(tiles(0), 8), tiles(1)
    rule = Residual(950_000, 200_000)
    moved = rule.accumulate(before, gradient)
    assert torch.allclose(moved.u, 0.95 * momentum_of(rule, before) + tiles(1))
    assert torch.allclose(moved.without, 0.95 * momentum_of(rule, before))
    assert torch.equal(before.u, tiles(0))
    assert torch.equal(gradient, tiles(1))


def test_a_zero_residual_gives_a_copy_of_the_gradient():
    gradient = tiles(2)
    moved = Residual(950_000).accumulate(None, gradient)
    assert torch.equal(moved.u, gradient)
    assert moved.without is None
    zero = Residual(950_000).accumulate(carried(torch.zeros_like(gradient), 8), gradient)
    assert torch.equal(zero.u, gradient)
    assert moved.u.data_ptr() != gradient.data_ptr()
    for one in (moved, zero):
        assert Residual(950_000).is_sent(one).tolist() == [True] * 3


def test_a_tile_that_its_gradient_did_not_move_is_not_sent():
    gradient = tiles(2)
    gradient[1] = 0
    gradient[2] = 2.0**-41
    rule = Residual(950_000)
    for before in (None, carried(tiles(0).clamp(-(2.0**-20), 2.0**-20), 8)):
        moved = rule.accumulate(before, gradient)
        assert rule.is_sent(moved).tolist() == [True, False, False]
        assert top_k(moved.u, 8).signs(rule.is_sent(moved)).indices[1:].any() == 0


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_tiles_on_both_sides_of_a_block_are_judged_alone(count):
    """One tile in three is sent, at the floor to the bit; the next one is just below it."""
    floor = 2.0**-40
    below = float(torch.nextafter(torch.tensor(floor), torch.tensor(0.0)))
    place = torch.arange(count)
    for sign in (1, -1):
        change = torch.zeros(count, 4096)
        change[place, (997 * place) % 4096] = torch.tensor([floor, below, 0.0])[place % 3] * sign
        change = change.view(count, 64, 64)
        expected = (place % 3 == 0).tolist()
        assert Residual(0).is_sent(Moved(change, None)).tolist() == expected
        without = torch.full_like(change, 2.0**-30)
        whole = without.clone()
        whole[change != 0] = change[change != 0]
        without[change != 0] = 0
        assert Residual(0).is_sent(Moved(whole, without)).tolist() == expected
    still = Moved(torch.zeros(count, 64, 64), torch.ones(count, 64, 64))
    assert Residual(0).is_sent(still).tolist() == [False] * count


def test_what_is_sent_is_that_of_whole_tensors_to_the_bit():
    u, without = tiles(5, 150), tiles(6, 150)
    u[::7], without[::5] = 0, 0
    u[::3] = without[::3] + 2.0**-24 * tiles(7, 150)[::3]
    for log2 in (20, 22, 23, 40):
        far = (u - without).abs().amax(dim=(1, 2)) >= 2.0**-log2
        expected = far & (u.abs().amax(dim=(1, 2)) > 0)
        found = Residual(0, sent_floor_log2=log2).is_sent(Moved(u, without))
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("alpha", "kept"), [(1_000_000, 0.0), (200_000, 0.8), (0, 1.0)])
def test_the_top_k_is_scaled_and_the_rest_stays(alpha, kept):
    u = tiles(3)
    indices = top_k(u, 8).indices
    without = Residual(950_000, alpha).decayed(Carried(u, indices)).view(3, -1)
    top_mask = torch.zeros(3, 4096, dtype=torch.bool).scatter_(
        1, torch.from_numpy(indices).long(), True
    )
    flat = u.view(3, -1)
    assert torch.equal(without[~top_mask], 0.95 * flat[~top_mask])
    assert torch.allclose(without[top_mask], 0.95 * kept * flat[top_mask])
    assert torch.equal(u, tiles(3))


def test_bf16_residuals_are_refused():
    with pytest.raises(TileShapeError, match="float32"):
        Residual(999_000).accumulate(carried(tiles(0).bfloat16(), 8), tiles(1))
    with pytest.raises(TileShapeError):
        Residual(999_000).accumulate(None, tiles(1).bfloat16())
