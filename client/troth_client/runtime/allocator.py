"""How this process asks the system for memory: less often, and in one heap.

Owns: three settings of glibc's allocator. Never: changes what a computation returns.
Next: `troth_client/participant/process.py`, which calls this before its first thread starts;
`recycled.py` for larger blocks.

Training takes and returns the same megabytes in every pass. glibc gives each thread a heap of its
own, and hands freed memory back to the system. The system clears it before it is used again.
docs/results.md has what that cost.
"""

import ctypes
import os
from typing import Final

# The numbers of malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

LARGE_BYTES: Final = 32 << 20
"""Larger blocks go back to the system when they are freed; glibc allows no higher number."""
SPARE_BYTES: Final = 256 << 20
"""So much freed memory stays at hand."""


def keep_freed_memory() -> bool:
    """Let all threads share one heap that keeps what is freed; return whether that was possible.

    Call it before the first thread starts: heaps that exist stay. Without glibc nothing happens.
    """
    try:
        is_glibc = "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (AttributeError, ValueError):  # Windows has no confstr, musl and macOS not this name
        is_glibc = False
    if not is_glibc:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    chosen = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, LARGE_BYTES), (_TRIM_THRESHOLD, SPARE_BYTES))
    taken = [mallopt(name, value) for name, value in chosen]
    return all(taken)
