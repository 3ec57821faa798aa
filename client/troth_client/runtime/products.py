"""How a GPU multiplies matrices of fp32: in fp32, or in tf32, which keeps ten bits of each factor.

Owns: torch's setting for the whole process, for the length of a block.
Never: says which one a gradient takes. Next: `model/device.py`, which does.
"""

import contextlib
from collections.abc import Iterator

import torch

_MATMUL = torch.backends.cuda.matmul
_SETTING, _TF32, _FP32 = (
    ("fp32_precision", "tf32", "ieee")
    if hasattr(_MATMUL, "fp32_precision")
    else ("allow_tf32", True, False)  # before torch 2.9
)


@contextlib.contextmanager
def fp32_products(device: torch.device, *, in_tf32: bool = False) -> Iterator[None]:
    """Compute in full fp32 on a CUDA device inside the block, or in tf32 where that is asked for.

    So fp32 means fp32 also where a program or a variable of the environment allows tf32. Other
    devices have no such setting. Threads that compute at once share it: use tf32 in one alone.
    """
    if device.type != "cuda":
        yield
        return
    before = getattr(_MATMUL, _SETTING)
    setattr(_MATMUL, _SETTING, _TF32 if in_tf32 else _FP32)
    try:
        yield
    finally:
        setattr(_MATMUL, _SETTING, before)
