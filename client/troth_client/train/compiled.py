"""The forward and backward pass as kernels that `torch.compile` makes: `--compile`.

Owns: compiling before the first round, one comparison of each shape with the eager pass, the way
back to it.
Never: compiles what others must get to the bit (apply), nor what a judge recomputes: a judge's own
noise is calibrated on the eager pass.
Next: `learner.py`, which decides who uses it.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import torch
from torch import Tensor

from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.train.passes import Loss, Sums, differentiated, eager_pass, summed_loss

MOST_DISTANCE: Final = 0.05
"""The largest distance from the eager gradient, as a share of its norm; bf16 needs about 0.01."""
_REASON_CHARACTERS: Final = 300


class CompiledPass:
    """Compiled kernels for as long as they work; the eager pass from the first failure on.

    `report` gets the reason of a failure once. `backend` is one of `torch.compile`.
    """

    def __init__(
        self, report: Callable[[str], None], backend: str | Callable[..., object] = "inductor"
    ) -> None:
        # One shape or two occur: kernels for any shape would be slower.
        self._loss: Loss | None = torch.compile(summed_loss, dynamic=False, backend=backend)
        self._compared: set[torch.Size] = set()
        self._report = report

    @property
    def works(self) -> bool:
        """Whether nothing failed so far."""
        return self._loss is not None

    def __call__(self, model: Llama, tokens: Tensor, num_predictions: int, device: Device) -> Sums:
        """Compute one microbatch; give up where a shape's first result is not the eager one's."""
        if self._loss is not None:
            with self._giving_up():
                return self._checked(self._loss, model, (tokens, num_predictions), device)
        return eager_pass(model, tokens, num_predictions, device)

    def prepare(self, model: Llama, tokens: Tensor, device: Device) -> None:
        """Compile for the shape of `tokens`, and compare.

        Where memory does not suffice even for the eager pass, the round that needs it says so.
        """
        with contextlib.suppress(MemoryError), as_memory_error():
            self(model, tokens, tokens.shape[0], device)

    def _checked(self, loss: Loss, model: Llama, part: tuple[Tensor, int], device: Device) -> Sums:
        """Return the compiled result; the eager one of a shape that was not compared before."""
        compiled, shape = differentiated(loss, model, part, device), part[0].shape
        if shape in self._compared:
            return compiled
        eager = eager_pass(model, *part, device)
        self._compare(compiled, eager, shape)
        return eager

    def _compare(self, compiled: Sums, eager: Sums, shape: torch.Size) -> None:
        size = _norm(eager.gradients)
        if size == 0 or not math.isfinite(size):
            return  # weights that are still zero, or no longer finite, show nothing
        pairs = zip(compiled.gradients, eager.gradients, strict=True)
        distance = _norm(a - b for a, b in pairs) / size
        if distance <= MOST_DISTANCE:
            self._compared.add(shape)
        else:
            self._give_up(f"the gradient is {distance:.3g} of its norm away from the eager one")

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            with as_memory_error():
                yield
        except MemoryError as error:
            self._give_up(f"it needs more memory than there is: {first_line(error)}")
        except Exception as error:
            # A compiler and its kernels fail with errors of many classes, Triton's among them. An
            # error that is not theirs is raised again by the eager pass, which follows.
            told = " ".join(str(error).partition("\n\n")[0].split())
            self._give_up(told[:_REASON_CHARACTERS] or type(error).__name__)

    def _give_up(self, reason: str) -> None:
        self._loss = None
        self._report(reason)


def _norm(tensors: Iterable[Tensor]) -> float:
    """Return the norm over all tensors, which are taken one by one: together they are a model."""
    norms = torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])
    return float(torch.linalg.vector_norm(norms))
