"""The disk of a participant: what it may need, and what is free, before anything is paid.

Owns: the check before joining. Never: writes or deletes.
Next: `troth_client/state/retention.py` for the numbers.
"""

import shutil
from pathlib import Path

from troth_attestation.pieces import FP32_BYTES
from troth_cli.errors import DiskSpaceError
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_client.state.retention import Retention
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.params_view import ParamsView


def check_disk(folder: Path, config: RunConfig, params: ParamsView) -> str:
    """Return a warning if the disk may become full during the run; "" if it cannot.

    Raises DiskSpaceError if there is not even room to start.
    """
    layout = TileLayout.from_shapes(trainable_shapes(config.model))
    retention, weights = Retention.of(params), FP32_BYTES * layout.num_parameters
    payload = payload_length(layout.num_tiles, config.demo.k)
    most = retention.disk_bytes(weights, layout.num_tiles, payload, params.capacity)
    least = retention.least_bytes(weights)
    held = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free + held
    if free < least:
        raise DiskSpaceError(
            f"{_gigabytes(least)} free in {folder}, to start",
            _gigabytes(free),
            "Free some space, or name another folder with --state. Nothing was paid.",
        )
    if free >= most:
        return ""
    return (
        f"this run may need up to {_gigabytes(most)} in {folder}, and {_gigabytes(free)} are free;"
        " a full disk ends this participant"
    )


def _gigabytes(num_bytes: int) -> str:
    """Return a number of bytes for people."""
    return f"{num_bytes / 1e9:.2f} GB"
