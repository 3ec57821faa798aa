"""Gives back the x87 registers that LiteSVM's compiled programs leave in use.

Owns: `empty_registers`. Never: touches the registers that other arithmetic uses (SSE, AVX).
Next: `execution.py`, which calls it after each transaction.
"""

import ctypes
import os
import platform
from typing import Final

_NUM_REGISTERS: Final = 8
_HAS_THEM: Final = os.name == "posix" and platform.machine().lower() in ("x86_64", "amd64")

# By the calling convention (System V psABI for AMD64, 3.2.3) a long double is returned in the top
# x87 register, and the caller takes it from there. This function returns none: each call takes one.
_take_one = (
    ctypes.CFUNCTYPE(ctypes.c_longdouble)(("getpagesize", ctypes.CDLL(None))) if _HAS_THEM else None
)


def empty_registers() -> None:
    """Free all x87 registers of this thread, in 2 µs; nothing to do on other processors.

    With some of them in use numpy's `//` gives NaN for any floats in this thread. One transaction
    in a hundred leaves them so.
    """
    if _take_one is not None:
        for _ in range(_NUM_REGISTERS):
            _take_one()
