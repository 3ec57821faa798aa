"""The kinds of device that a user may name.

Owns: the names. Never: looks for a device, or imports torch: the command line checks names at once.
Next: `device.py`, which opens the device.
"""

from typing import Final

from troth_client.model.errors import DeviceError

KINDS: Final = ("auto", "cpu", "cuda", "mps")


def device_kind(name: str) -> str:
    """Return the kind of a device like `cuda:1`; DeviceError for a kind that does not exist."""
    kind = name.partition(":")[0]
    if kind not in KINDS:
        raise DeviceError(
            f"a device out of {', '.join(KINDS)}", repr(name), "Use --device auto when in doubt."
        )
    return kind
