"""AdamW of the baselines: fused where torch has it, torch's default elsewhere."""

import pytest
import torch

from troth_client.train.adamw import adamw, is_fused


def stepped(optimizer, weight):
    weight.grad = torch.full_like(weight, 0.5)
    optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_fused_on_a_processor_and_steps_like_the_default(dtype):
    ours, other = (torch.ones(300, dtype=dtype, requires_grad=True) for _ in range(2))
    optimizer = adamw([ours], lr=0.1, betas=(0.9, 0.95), weight_decay=0.1)
    assert is_fused(optimizer)
    default = torch.optim.AdamW([other], lr=0.1, betas=(0.9, 0.95), weight_decay=0.1)
    assert not is_fused(default)
    assert torch.allclose(stepped(optimizer, ours), stepped(default, other))


@pytest.mark.parametrize(
    "parameter",
    [
        torch.ones(2, dtype=torch.complex64, requires_grad=True),
        torch.ones(2, device="meta", requires_grad=True),
    ],
    ids=["complex", "another device"],
)
def test_where_torch_has_no_fused_step_it_takes_its_default(parameter):
    optimizer = adamw([torch.ones(2, requires_grad=True), parameter], lr=0.1)
    assert not is_fused(optimizer)
    assert optimizer.defaults["lr"] == 0.1
    assert optimizer.defaults["foreach"] is None
