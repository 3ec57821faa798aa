"""The point that an audit has come to, in a folder: a later process goes on from it.

Owns: how often it is written, and whether what lies there is of this audit and whole.
Never: trusts a file: weights are hashed again, and their root is compared with the ledger's.
Next: `audit.py`; `troth_audit/replay/saved.py` for the form.

    <state>/audit.point        the point, a record with a seal
    <state>/<root>.weights     the weights of that point, and of the newest stored root
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from troth_audit.replay.auditor import Replay
from troth_audit.replay.order import Order
from troth_audit.replay.ports import Terms
from troth_audit.replay.replayed import State
from troth_audit.replay.saved import Saved
from troth_client.compression.codec import VerifiedPayload
from troth_client.runtime.files import DiskFullError, read_regular
from troth_client.state.audited import AuditedWeights
from troth_client.storage.sealed import DamagedFileError, Record, record_in, write_record

POINT_FILE: Final = "audit.point"
MAX_POINT_BYTES: Final = 64 * 2**20
_POINT: Final = "point"
REST_SECONDS: Final = 2.0
SHARE: Final = 20
"""Writing takes at most one part in so many of the time."""


class KeptPoint:
    """The newest point of one audit in a folder of its own, which the caller has locked."""

    def __init__(
        self, folder: Path, terms: Terms, weights: AuditedWeights, warn: Callable[[str], None]
    ) -> None:
        """Take a folder. `warn` is told why no more points are kept."""
        self._folder, self._weights, self._warn = folder, weights, warn
        self._has_failed = False
        self._terms = tuple(key.hex() for key in (terms.program, terms.run, terms.genesis_hash))
        self._next = time.monotonic() + REST_SECONDS

    def load(self, order: Order) -> Saved | None:
        """Return the point from which this audit may go on; None for none, or a damaged one."""
        saved = self._read()
        if saved is None:
            return None
        terms = saved.program, saved.run, saved.genesis_hash
        if terms != self._terms or not order.goes_on_from(saved.order):
            return None
        if saved.round > order.end:
            return None
        root = bytes.fromhex(saved.root)
        is_there = self._weights.take_up(saved.round, saved.cursor, root)
        return saved if is_there and self._weights.root() == root else None

    def save(self, replay: Replay[VerifiedPayload], state: State) -> None:
        """Write the point if it is time. On an error it stays as it was, and is kept no more."""
        begun = time.monotonic()
        if self._has_failed or begun < self._next or state.round == 0:
            return
        try:
            self._write(replay, state)
        except (DiskFullError, OSError) as error:
            self._has_failed = True
            self._warn(f"The audit goes on, but keeps no more of its state: {error}")
        ended = time.monotonic()
        self._next = ended + max(REST_SECONDS, SHARE * (ended - begun))

    def _read(self) -> Saved | None:
        path = self._folder / POINT_FILE
        try:
            found = record_in(read_regular(path, MAX_POINT_BYTES) or b"", path)
            return Saved.model_validate_json(str(found.fields[_POINT]))
        except (DamagedFileError, KeyError, ValidationError, RecursionError):
            return None

    def _write(self, replay: Replay[VerifiedPayload], state: State) -> None:
        self._weights.save()
        point = Record({_POINT: replay.saved(state).model_dump_json()}, {})
        write_record(self._folder / POINT_FILE, point, durable=False)
        stored = replay.weights.stored
        self._weights.forget_others(None if stored is None else stored.root)
