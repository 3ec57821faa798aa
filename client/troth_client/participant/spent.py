"""Lamports spent for priority in an epoch, kept over restarts: the cap counts the epoch.

Owns: one small file of the state folder. Never: fails; without the file, an epoch begins anew.
Next: `troth_coordinator/chain/priority.py`, which counts; `process.py`, which calls this.
"""

import contextlib
import json
from functools import partial
from pathlib import Path
from typing import Final

from troth_client.runtime.files import DiskFullError, atomic_write
from troth_coordinator.chain.priority import EpochLamports

SPENT_FILE: Final = "priority.json"


def keep_spent(folder: Path, epoch: EpochLamports) -> None:
    """Take up what an earlier process spent in this epoch, and write what is spent from now on."""
    path = folder / SPENT_FILE
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        found = json.loads(path.read_bytes())
        if int(found["epoch"]) == epoch.epoch:
            epoch.spent += max(0, int(found["spent"]))
    epoch.on_paid = partial(_save, path)


def _save(path: Path, epoch: EpochLamports) -> None:
    record = json.dumps({"epoch": epoch.epoch, "spent": epoch.spent})
    with contextlib.suppress(OSError, DiskFullError):
        atomic_write(path, [record.encode()], durable=False)
