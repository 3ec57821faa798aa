"""Where the heavy work runs and in which float format.

Owns: the meaning of `--device`, and bf16 autocast over fp32 masters.
Never: decides where weights are applied; the known-answer test of `compression/` does.
Next: `train/step.py`, which runs on the device.

Gradients may differ between devices, because audits compare them within a tolerance. So the
protocol allows any choice here.
"""

import contextlib
from dataclasses import dataclass

import torch

from troth_client.model.device_kind import device_kind
from troth_client.model.errors import DeviceError


@dataclass(frozen=True)
class Device:
    """A torch device and whether the forward pass runs in bf16 autocast."""

    torch: torch.device
    is_mixed: bool

    def other_precision(self) -> "Device":
        """Return this device in the other format; the processor where it has no bf16."""
        if self.is_mixed:
            return Device(self.torch, is_mixed=False)
        kind = self.torch.type
        has_bf16 = kind == "cpu" or (kind == "cuda" and torch.cuda.is_bf16_supported())
        return Device(self.torch if has_bf16 else torch.device("cpu"), is_mixed=True)

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """Context of a forward pass: bf16 autocast where mixed, otherwise plain fp32."""
        if not self.is_mixed:
            return contextlib.nullcontext()
        return torch.autocast(self.torch.type, dtype=torch.bfloat16)


CPU = Device(torch.device("cpu"), is_mixed=False)
"""fp32 on the processor: the reference."""


def choose_device(name: str = "auto") -> Device:
    """Device by name: `auto` is CUDA where there is one, else the CPU; `cuda:1` picks a card.

    fp32 on CPU and MPS, bf16 autocast on CUDA cards that have bf16 (fp32 on older ones).
    Raises DeviceError for an unknown name or a device that is missing.
    """
    kind = device_kind(name)
    if kind == "auto":
        return choose_device("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cpu":
        return CPU
    return _accelerator(name, kind)


def _accelerator(name: str, kind: str) -> Device:
    present = torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()
    device = _parse(name) if present else None
    if device is None or (kind == "cuda" and (device.index or 0) >= torch.cuda.device_count()):
        raise DeviceError(
            f"the device {name!r}",
            f"torch {torch.__version__} without it",
            "Use --device auto, or install a torch build and a driver for that device.",
        )
    return Device(device, is_mixed=kind == "cuda" and torch.cuda.is_bf16_supported())


def _parse(name: str) -> torch.device | None:
    try:
        return torch.device(name)
    except RuntimeError:
        return None
