"""The disk of a participant: what it may need, and what is free, before anything is paid.

Owns: the check before joining. Never: writes or deletes.
Next: `troth_client/state/retention.py` for the numbers.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from troth_attestation.pieces import FP32_BYTES
from troth_cli.errors import DiskSpaceError
from troth_client.checkpoint.state_store import CHECKPOINTS_FOLDER
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_client.runtime.files import existing_part
from troth_client.state.retention import Retention
from troth_client.storage.store import RECORDS
from troth_client.transport.files import BLOBS_FOLDER
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.params_view import ParamsView

_FORESEEN: Final = (CHECKPOINTS_FOLDER, BLOBS_FOLDER)
"""The folders whose bytes `Retention.disk_bytes` counts, beside the records."""


def check_disk(folder: Path, config: RunConfig, params: ParamsView) -> str:
    """Return a warning if the disk may become full during the run; "" if it cannot.

    Raises DiskSpaceError if there is not even room to start.
    """
    layout = TileLayout.from_shapes(trainable_shapes(config.model))
    retention, weights = Retention.of(params), FP32_BYTES * layout.num_parameters
    payload = payload_length(layout.num_tiles, config.demo.k)
    most = retention.disk_bytes(weights, layout.num_tiles, payload, params.capacity)
    least = retention.least_bytes(weights)
    room = shutil.disk_usage(existing_part(folder)).free + held_bytes(folder)
    if room < least:
        raise DiskSpaceError(
            f"{_gigabytes(least)} free in {folder}, to start",
            _gigabytes(room),
            "Free some space, or name another folder with --state. Nothing was paid.",
        )
    if room >= most:
        return ""
    return (
        f"this run may need up to {_gigabytes(most)} in {folder}, and {_gigabytes(room)} are free"
        " or hold it already; a full disk ends this participant"
    )


def held_bytes(folder: Path) -> int:
    """Return how much of what a run may need is on the disk already.

    A state folder also holds what no run needs room for any more: the data set, an archive. Links
    are no bytes, and neither is what a link to another disk leads to.
    """
    total, disk = 0, existing_part(folder).stat().st_dev
    for file in _foreseen(folder):
        with contextlib.suppress(OSError):  # removed meanwhile, or closed to this user
            found = file.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_dev == disk:
                total += found.st_size
    return total


def _foreseen(folder: Path) -> Iterator[Path]:
    yield from folder.glob(RECORDS)
    for name in _FORESEEN:
        for inside, _folders, files in os.walk(folder / name):
            yield from (Path(inside, file) for file in files)


def _gigabytes(num_bytes: int) -> str:
    """Return a number of bytes for people."""
    return f"{num_bytes / 1e9:.2f} GB"
