"""AdamW as torch does it fastest: the baseline of `troth bench` and of `troth profile`.

Owns: the choice of torch's way. Never: trains a run; that is DeMo's.
Next: `compression/released.py`, the other baseline.
"""

from collections.abc import Iterable
from typing import Final

import torch
from torch.nn import Parameter

_FUSED_ON: Final = frozenset({"cpu", "cuda"})
"""Kinds of devices with a fused step. Torch itself would refuse others at the first step only."""


def adamw(
    parameters: Iterable[torch.Tensor | Parameter],
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.01,
) -> torch.optim.AdamW:
    """Return torch's AdamW: fused, or torch's default where it has none for device and dtype."""
    own = list(parameters)
    has_fused = all(one.device.type in _FUSED_ON and one.is_floating_point() for one in own)
    return torch.optim.AdamW(
        own, lr=lr, betas=betas, weight_decay=weight_decay, fused=True if has_fused else None
    )


def is_fused(optimizer: torch.optim.AdamW) -> bool:
    """Tell whether a step of this AdamW is one fused kernel."""
    return bool(optimizer.defaults["fused"])
