"""The one seam between compiled kernels and torch: kernels that answered right, or None and why.

Owns: the reasons against kernels. Never: raises because numba is missing, or because its cache
cannot be written: torch does the same work.
Next: `check.py` for the questions, `run.py` for the kernels.
"""

from torch import Tensor

from troth_client.compression.kernels.base import Kernels
from troth_client.compression.kernels.check import wrong_answer


def find_kernels(weights: Tensor, constants: tuple[float, float]) -> tuple[Kernels | None, str]:
    """Return kernels that passed the test, or None and the reason.

    `weights` and constants are those of the known-answer test. The first call on a machine compiles
    for some seconds; later processes load what it has compiled.
    """
    try:
        from numba.core.errors import NumbaError  # noqa: PLC0415

        from troth_client.compression.kernels import run  # noqa: PLC0415
    except (ImportError, RuntimeError) as error:  # not installed; no folder takes the cache
        return None, str(error)
    kernels = Kernels(run.encode_layout, run.update_layout)
    try:
        wrong = wrong_answer(kernels, weights, constants)
    except (NumbaError, OSError, RuntimeError) as error:
        wrong = f"{type(error).__name__}: {error}"
    return (None, wrong) if wrong else (kernels, "")
