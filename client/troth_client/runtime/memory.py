"""Memory that does not suffice: however a machine says so, it is a MemoryError to its callers.

Owns: telling such an error from others, on every device. Never: decides what is left out.
Next: `base.py`, which computes under it; `../train/memory.py` for what a user is told.
"""

import contextlib
import errno
from collections.abc import Iterator
from typing import Final

_MESSAGES: Final = (
    *("not enough memory", "can't allocate", "out of memory", "bad_alloc"),
    *("STATUS_ALLOC_FAILED", "STATUS_NOT_INITIALIZED when calling `cublas"),
    "Storage size calculation overflowed",
    "can't start new thread",
)
"""How a RuntimeError says it.

In this order: PyTorch's CPU allocator, MPS, CUDA, the C++ library, CUDA's libraries, PyTorch for
more than any address space, and Python for the stack of a thread.

A thread makes its first product with a new handle of cuBLAS. On a full card that handle is not
initialized, and often no more is said.
"""


@contextlib.contextmanager
def as_memory_error() -> Iterator[None]:
    """Raise MemoryError for what inside the block says that memory did not suffice."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        raise MemoryError(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return what an error of a device says, in a line."""
    return next(iter(str(error).splitlines()), "")[:200] or type(error).__name__


def _is_out_of_memory(error: OSError | RuntimeError) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM  # of a file's mapping, say
    return any(text in str(error) for text in _MESSAGES)
