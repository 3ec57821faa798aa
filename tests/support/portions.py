"""How many sequences are computed at once: noted at each forward pass of the real model.

Owns: the notes. Never: changes a pass. Next: `unit/participant/test_measuring.py`.
"""

import contextlib
from collections.abc import Iterator

from torch import Tensor
from torch.nn import Module
from torch.nn.modules.module import register_module_forward_pre_hook

from troth_client.model.llama import Llama


@contextlib.contextmanager
def portions() -> Iterator[list[int]]:
    """Collect the rows of each forward pass inside the block, in all threads of this process."""
    found: list[int] = []

    def note(module: Module, given: tuple[Tensor, ...]) -> None:
        if isinstance(module, Llama):
            found.append(len(given[0]))

    hook = register_module_forward_pre_hook(note)
    try:
        yield found
    finally:
        hook.remove()
