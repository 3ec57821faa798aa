"""Advice to users where memory does not suffice.

Owns: its texts, and what is given back then. Never: decides what is left out.
Next: `steps/produce.py`, which skips a round; `audit/evidence.py`, which judges without a gradient;
`participant/rounds.py` and `network/named_tasks.py`, which try anything else again.
"""

from typing import Final

import torch

from troth_client.runtime import recycled

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


def give_back() -> None:
    """Return memory that is kept for later, here and by PyTorch on a CUDA device, to the system."""
    recycled.give_back()
    torch.cuda.empty_cache()  # does nothing where CUDA is not in use
