"""How a GPU multiplies matrices of fp32: in fp32, or in tf32, which keeps ten bits of each factor.

Owns: torch's setting for the whole process, for as long as blocks are under way.
Never: says which one a gradient takes. Next: `model/device.py`, which does.
"""

import contextlib
import threading
from collections.abc import Iterator

import torch

_MATMUL = torch.backends.cuda.matmul
_SETTING, _TF32, _FP32 = (
    ("fp32_precision", "tf32", "ieee")
    if hasattr(_MATMUL, "fp32_precision")
    else ("allow_tf32", True, False)  # before torch 2.9
)


class _Blocks:
    """The blocks under way in all threads: the newest one rules, the last one restores."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[object] = []
        self._before: object = None

    def begin(self, value: object) -> None:
        """Set a value for a block."""
        with self._lock:
            if not self._wanted:
                self._before = getattr(_MATMUL, _SETTING)
            self._wanted.append(value)
            setattr(_MATMUL, _SETTING, value)

    def end(self, value: object) -> None:
        """Leave a block that had set this value."""
        with self._lock:
            newest = self._wanted[::-1].index(value)
            del self._wanted[len(self._wanted) - 1 - newest]
            setattr(_MATMUL, _SETTING, self._wanted[-1] if self._wanted else self._before)


_BLOCKS = _Blocks()


@contextlib.contextmanager
def fp32_products(device: torch.device, *, in_tf32: bool = False) -> Iterator[None]:
    """Compute in full fp32 on a CUDA device inside the block, or in tf32 where that is asked for.

    So fp32 means fp32 also where a program or a variable of the environment allows tf32. Other
    devices have no such setting. Threads share it: those that compute at once must want the same.
    """
    if device.type != "cuda":
        yield
        return
    value = _TF32 if in_tf32 else _FP32
    _BLOCKS.begin(value)
    try:
        yield
    finally:
        _BLOCKS.end(value)
