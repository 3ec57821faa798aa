"""Where the heavy work runs, in which float format and in what portions.

Owns: the meaning of `--device` and `--micro-batch`, bf16 autocast over fp32 masters, and tf32 where
it is asked for.
Never: decides where weights are applied; the known-answer test of `compression/` does.
Next: `train/step.py`, which runs on the device.

Gradients may differ between devices, because audits compare them within a tolerance. So the
protocol allows any of PRECISIONS here, and nothing coarser (section 7).
"""

import contextlib
from dataclasses import dataclass, replace

import torch

from troth_client.model.device_kind import device_kind
from troth_client.model.errors import DeviceError
from troth_client.runtime.products import fp32_products

PRECISIONS = ("fp32", "tf32", "bf16")
"""The formats in which gradients are honest."""
_SHORT_FORMATS_FROM = 8, 0
"""The compute capability from which NVIDIA's cards have tf32 and bf16; below, torch emulates it."""


@dataclass(frozen=True)
class Device:
    """A torch device, whether the forward pass runs in bf16 autocast, whether fp32 is tf32.

    A participant never takes tf32; calibration compares it. `microbatch_sequences` is how many
    sequences are computed at once here, in place of the config's number; None for that number.
    """

    torch: torch.device
    is_mixed: bool
    is_tf32: bool = False
    microbatch_sequences: int | None = None

    @property
    def precision(self) -> str:
        """Return the name of the format: one of PRECISIONS."""
        if self.is_mixed:
            return "bf16"
        return "tf32" if self.is_tf32 else "fp32"

    def other_precision(self) -> "Device":
        """Return this device in the other format; the processor where it has no bf16."""
        if self.is_mixed:
            return replace(self, is_mixed=False)
        has_bf16 = "bf16" in precisions_of(self.torch)
        where = self.torch if has_bf16 else torch.device("cpu")
        return replace(self, torch=where, is_mixed=True, is_tf32=False)

    def at_once(self, configured: int) -> int:
        """Return how many sequences are computed at once, where the config says `configured`."""
        return self.microbatch_sequences or configured

    def products(self) -> contextlib.AbstractContextManager[None]:
        """Context of a forward and backward pass: how products of fp32 matrices are computed."""
        return fp32_products(self.torch, in_tf32=self.is_tf32)

    def autocast(self) -> contextlib.AbstractContextManager[object]:
        """Context of a forward pass: bf16 autocast where mixed, otherwise plain fp32."""
        if not self.is_mixed:
            return contextlib.nullcontext()
        return torch.autocast(self.torch.type, dtype=torch.bfloat16)


CPU = Device(torch.device("cpu"), is_mixed=False)
"""fp32 on the processor, in the config's microbatch: the reference."""


def precisions_of(device: torch.device) -> list[str]:
    """Return those of PRECISIONS that a device computes in; the device is here."""
    if device.type == "cpu":
        return ["fp32", "bf16"]
    if device.type != "cuda":
        return ["fp32"]
    if not torch.version.cuda:  # a card of AMD
        return ["fp32", "bf16"]
    is_new = torch.cuda.get_device_capability(device) >= _SHORT_FORMATS_FROM
    return list(PRECISIONS) if is_new else ["fp32"]


def in_precision(device: torch.device, name: str) -> Device:
    """Return the device in one of PRECISIONS; DeviceError where it does not have that one."""
    possible = precisions_of(device)
    if name not in possible:
        raise DeviceError(
            f"a precision of {device}: {', '.join(possible)}",
            repr(name),
            "Name one of these (hints.precision of the config; --precisions of troth calibrate)."
            " A card of NVIDIA has tf32 and bf16 from compute capability 8.0 on.",
        )
    return Device(device, is_mixed=name == "bf16", is_tf32=name == "tf32")


def choose_device(
    name: str = "auto", microbatch_sequences: int | None = None, precision: str = "auto"
) -> Device:
    """Device by name: `auto` is CUDA where there is one, else the CPU; `cuda:1` picks a card.

    The precision `auto` is fp32 on CPU and MPS, bf16 autocast on CUDA cards that have bf16 (fp32 on
    older ones). `microbatch_sequences` as in `Device`.
    Raises DeviceError for an unknown name, a device that is missing, a precision that it lacks.
    """
    kind = device_kind(name)
    if kind == "auto":
        kind = name = "cuda" if torch.cuda.is_available() else "cpu"
    found = CPU if kind == "cpu" else _accelerator(name, kind)
    if precision != "auto":
        found = in_precision(found.torch, precision)
    return replace(found, microbatch_sequences=microbatch_sequences)


def _accelerator(name: str, kind: str) -> Device:
    present = torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available()
    device = _parse(name) if present else None
    if device is None or (kind == "cuda" and (device.index or 0) >= torch.cuda.device_count()):
        raise DeviceError(
            f"the device {name!r}",
            f"torch {torch.__version__} without it",
            "Use --device auto, or install a torch build and a driver for that device.",
        )
    return Device(device, is_mixed="bf16" in precisions_of(device))


def _parse(name: str) -> torch.device | None:
    try:
        return torch.device(name)
    except RuntimeError:
        return None
