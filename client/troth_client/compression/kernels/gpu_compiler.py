"""Triton compiles entries, which a host launches, and the parts that they call.

Owns: the types of both, and the options of every compilation: no product is fused with a sum but
those of `tl.dot`.
Never: decides what is computed. Next: `gpu_encode.py`, `gpu_apply.py`.

With TRITON_INTERPRET=1 in the environment Triton compiles nothing, and numpy does the same on the
processor: so tests run without a GPU.
"""

import contextlib
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

import torch
import triton
import triton.language as tl

OPTIONS: Final = {"num_warps": 8, "enable_fp_fusion": False}
"""Eight warps are the least with which encode and apply keep all values in a thread's registers.

Encode without a momentum is the exception: Triton 3.9 stores up to 240 bytes of a thread.
"""
HASH_OPTIONS: Final = {"num_warps": 4, "enable_fp_fusion": False}
"""Four warps are a thread for each chunk of a program of `gpu_hash.py`."""

Function = TypeVar("Function", bound=Callable[..., object])


class Entry(Protocol):
    """A kernel: `entry[programs](*arguments, **OPTIONS)` launches it on the current device."""

    def __getitem__(self, programs: tuple[int]) -> Callable[..., object]:
        """Return what launches so many programs."""
        ...


def entry(function: Callable[..., object]) -> Entry:
    """Compile a function when it is first launched, or load what an earlier process compiled."""
    found: Entry = triton.jit(function)
    return found


def part(function: Function) -> Function:
    """Compile a function into the entries that call it."""
    found: Function = triton.jit(function)
    return found


def as_odd(number: int) -> int:
    """Return 2n + 3, in which an entry takes an n >= 0 whose divisors bring no faster code.

    Triton compiles an entry anew for an integer that is 1, and for one that 16 divides. No odd
    number from 3 on is either, so the start of a participant compiles all that its rounds launch.
    """
    return 2 * number + 3


@part
def from_odd(odd: tl.tensor) -> tl.tensor:
    """Return the n of `as_odd`."""
    return (odd - 3) >> 1


def on_device(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Launch on this device; the interpreter of Triton has no other than the processor."""
    if device.type != "cuda":
        return contextlib.nullcontext()
    where: contextlib.AbstractContextManager[object] = torch.cuda.device(device)
    return where
