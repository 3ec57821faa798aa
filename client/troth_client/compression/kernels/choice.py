"""The one seam between compiled kernels and torch: kernels that answered right, and what they lack.

Owns: the reasons against kernels. Never: raises because a compiler is missing, fails, or finds no
folder for its cache: torch does the same work. Files that numba has saved are loaded under a seal
only; a damaged library that Triton has saved may still end the process.
Next: `check.py` for the questions, `run.py` and `gpu_run.py` for the kernels, `saved.py`.
"""

from dataclasses import replace
from pickle import PickleError
from subprocess import SubprocessError

import torch
from torch import Tensor

from troth_client.compression.kernels.base import MOST_K, USUAL_K, Kernels
from troth_client.compression.kernels.check import wrong_answer, wrong_hashes

Found = tuple[Kernels | None, str]
"""Kernels, or None; why there are none, or what they leave to the host, or ""."""
ON_HOST = "the processor hashes weights and momentum"
_ABSENT = (ImportError, RuntimeError, OSError)
"""How a compiler says that it is not there: not installed, no folder for its cache, no LLVM."""
_UNREADABLE = (
    *(EOFError, PickleError, LookupError, AttributeError, TypeError, ValueError),
    ImportError,  # a library that was cut off, or lies where none may be loaded from
)
"""How a damaged file of a compiler's cache shows itself, on both paths."""
_FAILURES = (OSError, RuntimeError, SubprocessError, *_UNREADABLE)
"""Other errors in which a compiler of either path may end."""


def find_kernels(
    device: torch.device, weights: Tensor, constants: tuple[float, float], k: int = USUAL_K
) -> Found:
    """Return kernels for a device that passed the test on it, or None and the reason.

    `weights` and constants are those of the known-answer test, `k` is the run's. The first call on
    a machine compiles for some seconds; later processes load what it has compiled.
    """
    find = find_compiled if device.type == "cpu" else find_triton
    return find(device, weights, constants, k)


def find_compiled(
    device: torch.device, weights: Tensor, constants: tuple[float, float], k: int = USUAL_K
) -> Found:
    """Return the kernels that numba compiles for a processor."""
    try:
        from numba.core.errors import NumbaError  # noqa: PLC0415

        from troth_client.compression.kernels import run, saved  # noqa: PLC0415
    except _ABSENT as error:
        return None, str(error)
    kernels = Kernels(run.encode_layout, run.update_layout, asked_k=(MOST_K, k))
    try:
        saved.clear(run.ENTRIES)
        wrong = wrong_answer(kernels, weights, constants, device)
        if not wrong:
            saved.seal(run.ENTRIES)
    except (NumbaError, *_FAILURES) as error:
        wrong = _said(error)
    return (None, wrong) if wrong else (kernels, "")


def has_compiled() -> bool:
    """Whether an earlier process has compiled the kernels of the processor: then they load soon."""
    try:
        from troth_client.compression.kernels import run, saved  # noqa: PLC0415

        return all(saved.is_sealed(entry) for entry in run.ENTRIES)
    except _ABSENT:
        return False


def find_triton(
    device: torch.device, weights: Tensor, constants: tuple[float, float], k: int = USUAL_K
) -> Found:
    """Return the kernels that Triton compiles for a GPU, or interprets on a processor.

    Without leaf hashes where only these are wrong, or do not compile: the host has them, too.
    """
    try:
        from triton.errors import TritonError  # noqa: PLC0415

        from troth_client.compression.kernels import gpu_apply, gpu_leaves, gpu_run  # noqa: PLC0415
    except _ABSENT as error:
        return None, str(error)
    kernels = Kernels(
        *(gpu_run.encode_layout, gpu_run.update_layout, device.type, gpu_apply.MAX_FIELDS),
        gpu_leaves.leaf_hashes,
        asked_k=(MOST_K, k),
    )
    try:
        wrong = wrong_answer(kernels, weights, constants, device)
    except (TritonError, *_FAILURES) as error:
        wrong = _said(error)
    if wrong:
        return None, wrong
    try:
        wrong = wrong_hashes(gpu_leaves.leaf_hashes, device)
    except (TritonError, *_FAILURES) as error:
        wrong = _said(error)
    return (replace(kernels, leaf_hashes=None), f"{ON_HOST}: {wrong}") if wrong else (kernels, "")


def _said(error: Exception) -> str:
    found = f"{type(error).__name__}: {error}"
    if isinstance(error, _UNREADABLE):
        return f"a file of the compiler's cache may be damaged ({found}); remove the cache"
    return found
