"""Memory that does not suffice: how its errors look, and what is told about them.

Owns: telling such an error from others, on every device. Never: decides what is left out.
Next: `steps/produce.py`, which skips a round; `audit/evidence.py`, which judges without a gradient;
`participant/rounds.py` and `network/named_tasks.py`, which try anything else again.
"""

from typing import Final

import torch

ADVICE: Final = (
    "This round is left out and the next one is tried. Take a smaller --micro-batch, or end other"
    " programs that use this memory."
)
WAITING: Final = (
    "The weights stay as they were, and the step is tried again at the next look. End other"
    " programs that use this memory; a smaller --past-mib needs less."
)
TRYING: Final = (
    "Work for an audit, or beside the rounds, is tried again at the next look. End other programs"
    " that use this memory."
)
_MESSAGES: Final = (
    *("not enough memory", "can't allocate", "out of memory", "bad_alloc"),
    *("STATUS_ALLOC_FAILED", "STATUS_NOT_INITIALIZED when calling `cublas"),
    "can't start new thread",
)
"""How it is said in a plain RuntimeError: by PyTorch's CPU allocator, MPS, the C++ library, CUDA's,
and by Python for the stack of a thread.

A thread makes its first product with a new handle of cuBLAS. On a full card that handle is not
initialized, and often no more is said.
"""


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory did not suffice."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _MESSAGES)


def first_line(error: BaseException) -> str:
    """Return what an error of a device says, in a line."""
    return next(iter(str(error).splitlines()), "")[:200] or type(error).__name__


def give_back() -> None:
    """Return memory that PyTorch keeps for later on a CUDA device: others can use it now."""
    torch.cuda.empty_cache()  # does nothing where CUDA is not in use
