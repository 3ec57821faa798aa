"""The point that an audit has come to, in a folder: a later process goes on from it.

Owns: how often it is written, and whether what lies there is of this audit and whole.
Never: trusts a file: weights are hashed again, and their root is compared with the ledger's.
Next: `audit.py`; `troth_audit/replay/saved.py` for the form.

    <state>/audit.json         the point
    <state>/<root>.weights     the weights of that point, and of the newest stored root
"""

import time
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from troth_audit.replay.auditor import Replay
from troth_audit.replay.order import Order
from troth_audit.replay.replayed import State
from troth_audit.replay.saved import Saved
from troth_client.compression.codec import VerifiedPayload
from troth_client.run_files.files import read_file
from troth_client.runtime.files import atomic_write
from troth_client.state.audited import AuditedWeights

POINT_FILE: Final = "audit.json"
MAX_POINT_BYTES: Final = 64 * 2**20
REST_SECONDS: Final = 2.0
SHARE: Final = 20
"""Writing takes at most one part in so many of the time."""


class KeptPoint:
    """The newest point of one audit in a folder of its own."""

    def __init__(self, folder: Path, weights: AuditedWeights) -> None:
        """Take a folder, new or old. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._weights = folder, weights
        self._next = time.monotonic() + REST_SECONDS

    def load(self, order: Order) -> Saved | None:
        """Return the point from which this audit may go on; None for none, or a damaged one."""
        data = read_file(self._folder / POINT_FILE, MAX_POINT_BYTES)
        try:
            saved = None if data is None else Saved.model_validate_json(data)
        except (ValidationError, RecursionError):
            return None
        if saved is None or not saved.order.is_of(order):
            return None
        if not order.start <= saved.round <= order.end:
            return None
        root = bytes.fromhex(saved.root)
        is_there = self._weights.take_up(saved.round, saved.cursor, root)
        return saved if is_there and self._weights.root() == root else None

    def save(self, order: Order, replay: Replay[VerifiedPayload], state: State) -> None:
        """Write the point if it is time. Raises DiskFullError."""
        begun = time.monotonic()
        if begun < self._next or state.round == 0:
            return
        self._weights.save()
        text = replay.saved(order, state).model_dump_json().encode()
        atomic_write(self._folder / POINT_FILE, [text], durable=False)
        self._weights.forget_others()
        ended = time.monotonic()
        self._next = ended + max(REST_SECONDS, SHARE * (ended - begun))
